"""Damage anywhere in a collected run: every number is that of the good file, or its rank is named.

The runs are the simulator's, in every form that profilers write. Damage in numbers is damage that only the
manifest's hashes can see: a flipped digit is a digit.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_analysis.cli import main as analyse
from cluster_analysis.discovery.discover import discover
from cluster_analysis.tables.model import Capture
from cluster_analysis.tables.rank_tables import RankTables
from cluster_run import layout
from cluster_run.ids import Rank
from cluster_simulate.api import JobSpec, simulate, write_run
from cluster_simulate.job.spec import Framework
from tests.analysis.one_rank import metadata_of, read_rank
from tests.analysis.runs import simulated
from tests.analysis.said import reason
from tests.simulate.jobs import VARIETY

pytestmark = pytest.mark.slow
FORMS = {
    "PyTorch as text": ("text", "pt"),
    "PyTorch as databases": ("db", "pt"),
    "MindSpore as text": ("text", "ms"),
    "MindSpore as databases": ("db", "ms"),
    "MindSpore r1.x": ("r1", "ms"),
}
TABLES = ("steps", "collectives", "links", "packets", "operators", "iterations")
SPEC = JobSpec(tp=1, pp=2, dp=2, microbatches=2, steps=2, segments=1, ranks_per_host=2)
FUZZ = settings(max_examples=4)
Rows = dict[str, list[dict[str, object]]]


@dataclass(frozen=True)
class Run:
    """A good run: its files, and what reading makes of each rank."""

    root: Path
    content: dict[Path, bytes]
    rows: dict[Rank, Rows]


@pytest.fixture(scope="module", params=FORMS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The same small job in one of the forms."""
    form, framework = FORMS[request.param]
    root = tmp_path_factory.mktemp("runs") / "run"
    write_run(simulate(SPEC, (), 5), root, form, framework)
    capture, tables = read(root)
    assert capture.problems == ()
    assert len(tables) == 4
    files = sorted(path for path in (root / layout.PROFILER_TREE_NAME).rglob("*") if path.is_file())
    return Run(
        root, {path: path.read_bytes() for path in files}, {rank: rows(one) for rank, one in tables.items()}
    )


def read(root: Path) -> tuple[Capture, dict[Rank, RankTables]]:
    capture = discover(root)
    return capture, {source.rank: read_rank(source) for source in capture.sources}


def rows(tables: RankTables) -> Rows:
    found: Rows = {}
    for name, table in ({one: getattr(tables, one) for one in TABLES} | dict(tables.figures)).items():
        found[name] = sorted(table.to_pylist(), key=lambda row: [str(value) for value in row.values()])
    found["metadata"] = [{"metadata": metadata_of(tables)}]
    return found


def assert_right_or_named(run: Run, damaged: Path) -> None:
    """Every rank has the good run's numbers, or a problem names it; the damaged file's is named."""
    capture, tables = read(run.root)
    problems = [*capture.problems, *(one for table in tables.values() for one in table.problems)]
    named = {problem.rank for problem in problems}
    for rank, expected in run.rows.items():
        if rank not in named:
            assert rows(tables[rank]) == expected, f"rank {rank} has other numbers and is not named"
    assert len(named) == 1, f"{damaged} is damaged, and {named} are named"
    assert {problem.file for problem in problems} >= {damaged.name}
    assert all(reason(problem) for problem in problems)


@contextmanager
def put_back(path: Path, content: dict[Path, bytes]) -> Iterator[bytes]:
    """Give a file's content, and put it back with its times whatever is written meanwhile."""
    good, times = content.get(path) or path.read_bytes(), path.stat()
    assert path.read_bytes() == good, f"{path} was changed by what ran before"
    try:
        yield good
    finally:
        path.write_bytes(good)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


@FUZZ
@given(data=st.data())
def test_a_file_cut_off_anywhere_costs_its_rank_only_and_is_named(run: Run, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from([*run.content]))
    with put_back(path, run.content) as good:
        path.write_bytes(good[: data.draw(st.integers(0, len(good) - 1))])
        assert_right_or_named(run, path)


@FUZZ
@given(data=st.data())
def test_flipped_bytes_anywhere_are_never_a_number_of_an_unnamed_rank(run: Run, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from([*run.content]))
    with put_back(path, run.content) as good:
        bad = bytearray(good)
        positions = st.lists(st.integers(0, len(bad) - 1), min_size=1, max_size=4, unique=True)
        for position in data.draw(positions):
            bad[position] ^= data.draw(st.integers(1, 255))
        path.write_bytes(bytes(bad))
        assert_right_or_named(run, path)


@FUZZ
@given(data=st.data())
def test_text_that_is_no_number_anywhere_is_never_a_number(run: Run, data: st.DataObject) -> None:
    text_files = [path for path in run.content if path.suffix in (".json", ".csv")]
    path = data.draw(st.sampled_from(text_files))
    with put_back(path, run.content) as good:
        digits = [i for i, byte in enumerate(good) if chr(byte).isdigit() and not chr(good[i - 1]).isdigit()]
        at = data.draw(st.sampled_from(digits))
        end = next(
            (i for i in range(at, len(good)) if not (chr(good[i]).isdigit() or good[i] in b".e-+")), len(good)
        )
        bad = data.draw(
            st.sampled_from([b"NaN", b"Infinity", b"-", b"1e999", b"null", b'"12"', b"[]", b"true"])
        )
        path.write_bytes(good[:at] + bad + good[end:])
        assert_right_or_named(run, path)


def test_a_run_without_its_manifest_still_names_a_file_that_was_cut_off(run: Run) -> None:
    manifest = run.root / layout.MANIFEST_NAME
    with put_back(manifest, run.content):
        manifest.unlink()
        for path in {re.sub(r"\d", "", path.name): path for path in run.content}.values():
            with put_back(path, run.content) as good:
                # In the middle of a line: a text that ends between two lines cannot be told from a whole one.
                cut = good[: len(good) * 2 // 3].rstrip(b"\n}] ") + (b"" if path.suffix == ".db" else b"1")
                path.write_bytes(cut)
                assert_right_or_named(run, path)


def analysed(root: Path, out: Path) -> tuple[int, dict[str, object]]:
    code = analyse([str(root), "--output", str(out), "--no-report", "-q"])
    return code, json.loads((out / layout.FINDINGS_NAME).read_bytes())


def test_a_rank_whose_step_times_are_lost_is_not_called_healthy(tmp_path: Path) -> None:
    write_run(simulate(VARIETY["plain"], (), 6), tmp_path / "run", "text", "pt")
    code, document = analysed(tmp_path / "run", tmp_path / "out")
    assert (code, document["verdict"]) == (0, "healthy")
    next((tmp_path / "run").rglob("step_trace_time.csv")).write_bytes(b"")
    code, document = analysed(tmp_path / "run", tmp_path / "out")
    assert (code, document["verdict"]) == (3, "unknown")


def test_a_file_that_was_deleted_after_collecting_is_collected_and_not_profiled_again(tmp_path: Path) -> None:
    write_run(simulate(VARIETY["plain"], (), 5), tmp_path / "run", "text", "pt")
    next((tmp_path / "run").rglob("communication_matrix.json")).unlink()
    code, document = analysed(tmp_path / "run", tmp_path / "out")
    (problem,) = cast("list[dict[str, object]]", document["problems"])
    assert (code, problem["file"], problem["advice_kind"]) == (
        3,
        "communication_matrix.json",
        "collect_again",
    )
    assert (problem["kind"], problem["also"]) == ("matrix_not_there", [{"kind": "gone_since"}])


@pytest.mark.parametrize("framework", ["pt", "ms"])
@pytest.mark.parametrize("share", [0.1, 0.8])
def test_a_damaged_database_costs_its_rank_and_not_the_analysis(
    tmp_path: Path, framework: Framework, share: float
) -> None:
    write_run(simulate(SPEC, (), 5), tmp_path / "run", "db", framework)
    name = "analysis.db" if framework == "pt" else "communication_analyzer.db"
    path = sorted((tmp_path / "run").rglob(name))[1]
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    code, document = analysed(tmp_path / "run", tmp_path / "out")
    assert code == 3
    assert {problem["rank"] for problem in document["problems"]} == {1}  # type: ignore[attr-defined]
    assert (tmp_path / "out/cluster_analysis.db").stat().st_size > 0


@pytest.mark.slow
@pytest.mark.parametrize("form", ["text", "db"])
def test_hosts_with_the_files_of_an_earlier_run_of_the_same_job_are_not_called_healthy(
    tmp_path: Path, form: str
) -> None:
    sizes = {"tp": 2, "pp": 1, "dp": 8, "steps": 6, "ranks_per_host": 8}
    run, earlier = (simulated(tmp_path / str(seed), seed=seed, form=form, **sizes) for seed in (1, 2))
    assert analysed(run, tmp_path / "good")[1]["verdict"] == "healthy"
    shutil.rmtree(run / "cluster_profiler" / "2")
    shutil.copytree(earlier / "cluster_profiler" / "2", run / "cluster_profiler" / "2")
    found = analysed(run, tmp_path / "out")[1]
    assert found["verdict"] == "unknown"
    assert "other_times" in json.dumps(found)
