"""Ranks that are read together give what each gives alone, and a bad one costs itself only."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_analysis.discovery.discover import discover
from cluster_analysis.engine.tasks import Batch, BatchSummary, Wanted, read_batch
from cluster_analysis.sources.communication_tables import CommunicationTables
from cluster_analysis.sources.errors import BadFileError, NotTogetherError, not_together
from cluster_analysis.sources.rank import read_ranks
from cluster_analysis.sources.text.communication_json import read_communication, read_matrix
from cluster_analysis.tables import schema
from cluster_analysis.tables.model import RankSource, Selection
from cluster_reduce.form import SUFFIX
from cluster_reduce.reduction import reduced
from cluster_run.facts import Fact
from cluster_run.ids import Step
from tests.analysis.copies import replace
from tests.analysis.runs import simulated
from tests.analysis.sources.test_compiled_reader import MATRIX, OPERATORS, SPOILERS

LARGE = ("communication.json", "communication_matrix.json")
#: Of these files alone a host makes columns; all others are the same in both forms.
OF_BOTH_FORMS = [(form, role) for role in ("communication", "matrix") for form in ("text", "columns")]
SMALL_ROLES = ("step_trace", "op_statistic", "metadata")
TABLES = ("steps", "operators", "packets", "iterations", "uses", "totals")


@pytest.fixture(scope="module")
def text_job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulated(tmp_path_factory.mktemp("job") / "run", tp=2, pp=2, dp=1, steps=2)


@pytest.fixture(scope="module")
def job_of_columns(text_job: Path) -> Path:
    path = text_job.parent / "columns"
    shutil.copytree(text_job, path)
    for file in [file for name in LARGE for file in path.rglob(name)]:
        file.with_name(file.name + SUFFIX).write_bytes(reduced(os.fsencode(file)))
        file.unlink()
    return path


@pytest.fixture
def job(text_job: Path, job_of_columns: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A run of its own for a test, whose files it may change."""
    return shutil.copytree(job_of_columns if request.param == "columns" else text_job, tmp_path / "run")


def of_both_forms(test: object) -> object:
    return pytest.mark.parametrize("job", ["text", "columns"], indirect=True)(test)


def said(batches: Sequence[Sequence[RankSource]], *steps: int) -> tuple[Any, ...]:
    """All that is read of the ranks, of batch after batch; of some steps alone."""
    wanted = Wanted(Selection(steps=frozenset(map(Step, steps)) if steps else None))
    read = [read_batch(Batch(0, tuple(sources)), wanted) for sources in batches]
    summaries, bulks = zip(*read, strict=True)
    small = {name: [row for one in summaries for row in getattr(one, name).to_pylist()] for name in TABLES}
    figures = {
        name: [row for one in summaries for row in one.figures[name].to_pylist()] for name in schema.FIGURES
    }
    metadata = {rank: one for summary in summaries for rank, one in summary.metadata.items()}
    problems = [problem for one in summaries for problem in one.problems]
    notes = {note for one in summaries for note in one.notes}
    steps = sorted({step for bulk in bulks for step in bulk.by_step})
    parts = {step: [bulk.by_step[step] for bulk in bulks if step in bulk.by_step] for step in steps}
    large = {
        (step, name): [row for part in own for row in getattr(part, name).to_pylist()]
        for step, own in parts.items()
        for name in ("collectives", "links")
    }
    spans = [row for bulk in bulks for row in bulk.spans.to_pylist()]
    return small, figures, metadata, problems, notes, large, spans


def each_alone(sources: Sequence[RankSource], *steps: int) -> tuple[Any, ...]:
    return said([[one] for one in sources], *steps)


def files_of(source: RankSource, role: str) -> Path:
    path = Path(source.files[role])
    return path if path.exists() else path.with_name(path.name + SUFFIX)


@of_both_forms
def test_ranks_that_are_read_together_give_what_each_gives_alone(job: Path) -> None:
    sources = discover(job).sources
    read = read_ranks(sources, None, with_spans=True)
    assert tuple(read.metadata) == tuple(one.rank for one in sources)
    assert said([sources]) == each_alone(sources)


@of_both_forms
@pytest.mark.parametrize("steps", [(10,), (10, 11), (99,)])
def test_chosen_steps_are_read_together_too(job: Path, steps: tuple[int, ...]) -> None:
    sources = discover(job).sources
    read = read_ranks(sources, frozenset(map(Step, steps)), with_spans=True)
    assert set(read.steps["step"].to_pylist()) <= set(steps)
    assert said([sources], *steps) == each_alone(sources, *steps)


@pytest.mark.parametrize("job", ["text"], indirect=True)
def test_a_last_row_whose_line_has_no_end_is_read_by_both_readers(job: Path) -> None:
    sources = discover(job).sources
    before = each_alone(sources)
    for source in sources:
        path = files_of(source, "op_statistic")
        path.write_bytes(path.read_bytes().rstrip(b"\r\n"))
    assert said([sources]) == each_alone(sources)
    small, figures, metadata, problems, *others = each_alone(sources)
    assert (small, figures, metadata, [], *others) == before
    assert {problem.why.kind for problem in problems} == {"last_cell_in_doubt"}


@pytest.mark.many
@pytest.mark.parametrize(
    ("job", "role"),
    [*OF_BOTH_FORMS, *(("text", one) for one in (*SMALL_ROLES, "api_statistic"))],
    indirect=["job"],
)
@pytest.mark.parametrize("damage", ["cut off", "other bytes", "gone"])
def test_a_damaged_file_among_ranks_is_told_as_it_is_alone(job: Path, role: str, damage: str) -> None:
    sources = discover(job).sources
    path = files_of(sources[1], role)
    content = path.read_bytes()
    path.unlink()
    if damage == "cut off":
        path.write_bytes(content[: len(content) // 2])
    elif damage == "other bytes":
        path.write_bytes(content.replace(b"0", b"-", 5))
    assert said([sources]) == each_alone(sources)


@pytest.mark.many
@pytest.mark.parametrize(
    ("job", "role"), [*OF_BOTH_FORMS, *(("text", one) for one in SMALL_ROLES)], indirect=["job"]
)
def test_ranks_of_which_one_or_all_lack_a_file_are_told_as_each_alone(job: Path, role: str) -> None:
    sources = discover(job).sources
    others = [
        replace(one, files={name: path for name, path in one.files.items() if name != role})
        for one in sources
    ]
    assert read_ranks(others, None, with_spans=True).metadata, "what all lack, no batch minds"
    assert said([others]) == each_alone(others)
    some = [sources[0], *others[1:]]
    if role != "metadata":
        with pytest.raises(NotTogetherError):
            read_ranks(some, None, with_spans=True)
    assert said([some]) == each_alone(some)


@pytest.mark.parametrize("job", ["text"], indirect=True)
@pytest.mark.parametrize("variables", [[1], {}, {"B": "2", "A": None}, {"A": {"C": 1}}, "\\ud800", None])
def test_odd_variables_among_ranks_are_told_as_they_are_alone(job: Path, variables: object) -> None:
    sources = discover(job).sources
    path = files_of(sources[1], "metadata")
    path.write_text(json.dumps({**json.loads(path.read_text()), "ENV_VARIABLES": variables}))
    assert said([sources]) == each_alone(sources)


@of_both_forms
def test_a_path_that_no_file_has_costs_one_rank_of_its_batch(job: Path) -> None:
    sources = discover(job).sources
    files = {**sources[1].files, "communication": "\0", "matrix": "\0"}
    batch = Batch(0, (sources[0], replace(sources[1], files=files), *sources[2:]))
    summary, _ = read_batch(batch, Wanted())
    assert {problem.rank for problem in summary.problems} == {sources[1].rank}
    assert rows_of_rank(summary, sources[0].rank) == rows_of_rank(
        read_batch(Batch(0, sources), Wanted())[0], sources[0].rank
    )


def rows_of_rank(summary: BatchSummary, rank: int) -> list[dict[str, object]]:
    return [row for row in summary.totals.to_pylist() if row["rank"] == rank]


# Files of several ranks that the compiled reader takes at once, and its exact sums.
def never(*why: Fact) -> None:
    raise AssertionError(f"nothing is to be told of a plain file: {why}")


@pytest.mark.parametrize("with_spans", [True, False])
@given(data=st.data())
def test_files_with_a_spoiled_one_among_them_give_what_each_gives_alone_or_are_refused(
    tmp_path: Path, with_spans: bool, data: st.DataObject
) -> None:
    files = [(str(tmp_path / f"{rank}.json"), rank) for rank in range(3)]
    for content, read in (
        (OPERATORS, partial(read_communication, with_spans=with_spans)),
        (MATRIX, read_matrix),
    ):
        spoiled = bytearray(content)
        place = data.draw(st.integers(0, len(spoiled)))
        spoiled[place : place + data.draw(st.integers(0, 12))] = data.draw(st.sampled_from(SPOILERS))
        for (path, _), own in zip(files, (content, spoiled, content), strict=True):
            Path(path).write_bytes(own)
        try:
            found = read(files, not_together)
        except (NotTogetherError, BadFileError):
            continue
        assert rows_of(found) == rows_of(*(read([one], never) for one in files))


def rows_of(*read: CommunicationTables | pa.Table) -> list[object]:
    """The rows of all tables."""
    found = [
        (one.collectives, one.packets, one.spans) if isinstance(one, CommunicationTables) else (one,)
        for one in read
    ]
    return [[row for table in tables for row in table.to_pylist()] for tables in zip(*found, strict=True)]
