"""Ranks that are read together give what each gives alone, and a bad one costs itself only."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_analysis.discovery.discover import discover
from cluster_analysis.engine.tasks import Batch, BatchSummary, Wanted, read_batch
from cluster_analysis.sources.compiled.reader import CHOICE, compiled
from cluster_analysis.sources.rank import read_rank
from cluster_analysis.sources.together.read_together import read_together
from cluster_analysis.sources.together.ready import Ready
from cluster_analysis.tables.model import RankSource
from cluster_analysis.tables.rank_tables import RankTables
from cluster_reduce.form import SUFFIX
from cluster_reduce.reduction import reduced
from tests.analysis.copies import replace

ROOT = Path(__file__).parents[3]
LARGE = ("communication.json", "communication_matrix.json")
TABLES = ("steps", "collectives", "links", "operators", "packets", "sums", "spans")


@pytest.fixture(scope="module")
def text_job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("job") / "run"
    job = ("--quiet", "--tp", "2", "--pp", "2", "--dp", "1", "--steps", "2")
    subprocess.run([sys.executable, "-m", "cluster_simulate", path, *job], cwd=ROOT, check=True, timeout=50)
    return path


@pytest.fixture
def job(text_job: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = tmp_path / "run"
    shutil.copytree(text_job, path)
    (path / "manifest.json").unlink(missing_ok=True)
    if request.param == "columns":
        for file in [file for name in LARGE for file in path.rglob(name)]:
            file.with_name(file.name + SUFFIX).write_bytes(reduced(os.fsencode(file)))
            file.unlink()
    return path


def of_both_forms(test: object) -> object:
    return pytest.mark.parametrize("job", ["text", "columns"], indirect=True)(test)


def said(tables: RankTables) -> object:
    found = {name: getattr(tables, name).to_pylist() for name in TABLES}
    figures = {name: table.to_pylist() for name, table in tables.figures.items()}
    return found, figures, tables.metadata, tables.problems, tables.notes


def files_of(source: RankSource, role: str) -> Path:
    path = Path(source.files[role])
    return path if path.exists() else path.with_name(path.name + SUFFIX)


@of_both_forms
def test_ranks_that_are_read_together_give_what_each_gives_alone(job: Path) -> None:
    sources = discover(job).sources
    ready = read_together(sources, with_spans=True)
    for source in sources:
        assert said(read_rank(source, ready=ready)) == said(read_rank(source))
    paths = {
        files[role] for files in (one.files for one in sources) for role in ("step_trace", "op_statistic")
    }
    assert paths <= set(ready.small)
    assert len(ready.links) == len(ready.communications) == len(sources)


@of_both_forms
def test_by_python_alone_ranks_that_are_read_together_give_the_same(
    job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = discover(job).sources
    wanted = [said(read_rank(source)) for source in sources]
    monkeypatch.setenv(CHOICE, "python")
    ready = read_together(sources, with_spans=True)
    assert [said(read_rank(source, ready=ready)) for source in sources] == wanted


@of_both_forms
@pytest.mark.parametrize(
    "role", ["communication", "matrix", "step_trace", "op_statistic", "api_statistic", "metadata"]
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
    ready = read_together(sources, with_spans=True)
    together = [said(read_rank(source, ready=ready)) for source in sources]
    assert together == [said(read_rank(source)) for source in sources]


@pytest.mark.parametrize("job", ["text"], indirect=True)
@pytest.mark.parametrize("variables", [[1], {}, {"B": "2", "A": None}, {"A": {"C": 1}}, "\\ud800", None])
def test_odd_variables_among_ranks_are_told_as_they_are_alone(job: Path, variables: object) -> None:
    sources = discover(job).sources
    path = files_of(sources[1], "metadata")
    path.write_text(json.dumps({**json.loads(path.read_text()), "ENV_VARIABLES": variables}))
    ready = read_together(sources, with_spans=True)
    together = [said(read_rank(source, ready=ready)) for source in sources]
    assert together == [said(read_rank(source)) for source in sources]
    assert len(ready.metadata) == len(sources)


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


def test_nothing_is_ready_of_no_rank() -> None:
    assert read_together((), with_spans=True) == Ready()


@settings(max_examples=100, deadline=None)
@given(
    values=st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=20),
    is_delta=st.booleans(),
    begin=st.integers(-(2**40), 2**40),
    step=st.integers(1, 2**20),
)
def test_compiled_numbers_of_planes_are_those_of_numpy(
    values: list[int], is_delta: bool, begin: int, step: int
) -> None:
    module = compiled()
    if module is None:
        pytest.skip("there is no compiled reader")
    whole = np.array(values, np.int64)
    folded = (whole.astype(np.uint64) << np.uint64(1)) ^ (whole >> 63).astype(np.uint64)
    planes = folded.astype("<u8").view(np.uint8).reshape(-1, 8).T.tobytes()
    with np.errstate(over="ignore"):
        wanted = (whole.cumsum() if is_delta else whole) * np.int64(step) + np.int64(begin)
    assert (
        np.frombuffer(module.numbers(planes, 8, is_delta, begin, step), np.int64).tolist() == wanted.tolist()
    )


INT32, INT64 = np.int32, np.int64


@pytest.mark.parametrize(
    ("part_ends", "stem_ends", "places", "numbers"),
    [
        ([1, 9], [2], [0], [5]),
        ([2, 1], [2], [0], [5]),
        ([-1, 2], [2], [0], [5]),
        ([1, 2], [3], [0], [5]),
        ([1, 2], [0], [0], [5]),
        ([1, 2], [2], [1], [5]),
        ([1, 2], [2], [-1], [5]),
        ([1, 2], [2], [0], [-5]),
        ([1, 2], [2], [0], []),
    ],
)
def test_names_that_cannot_be_are_refused(
    part_ends: list[int], stem_ends: list[int], places: list[int], numbers: list[int]
) -> None:
    module = compiled()
    if module is None:
        pytest.skip("there is no compiled reader")
    given_bytes = (
        np.array(values, kind).tobytes()
        for values, kind in ((part_ends, INT32), (stem_ends, INT32), (places, INT64), (numbers, INT64))
    )
    assert module.filled(b"ab", *given_bytes) is None


def test_planes_that_do_not_fit_are_refused() -> None:
    module = compiled()
    if module is None:
        pytest.skip("there is no compiled reader")
    for n_planes in (0, 2, 9):
        assert module.numbers(b"abc", n_planes, False, 0, 1) is None
    assert pa.py_buffer(module.numbers(b"", 1, False, 0, 1)).size == 0
