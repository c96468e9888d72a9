"""Ranks that are read together give what each gives alone, and a bad one costs itself only."""

from __future__ import annotations

import gc
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import weakref
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_analysis.discovery.discover import discover
from cluster_analysis.engine.tasks import Batch, BatchSummary, Wanted, read_batch
from cluster_analysis.sources.compiled.reader import CHOICE, compiled
from cluster_analysis.sources.db.sqlite import kept_open, open_database
from cluster_analysis.sources.errors import BadFileError, unheard
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


@pytest.fixture(scope="module")
def databases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("databases") / "run"
    job = ("--quiet", "--form", "db", "--tp", "2", "--pp", "2", "--dp", "1", "--steps", "2")
    subprocess.run([sys.executable, "-m", "cluster_simulate", path, *job], cwd=ROOT, check=True, timeout=50)
    return path


@pytest.fixture
def job_of_databases(databases: Path, tmp_path: Path) -> Path:
    path = tmp_path / "run"
    shutil.copytree(databases, path)
    (path / "manifest.json").unlink(missing_ok=True)
    return path


def read_in_one_batch(sources: Sequence[RankSource]) -> tuple[Ready, list[object]]:
    with kept_open():
        ready = read_together(sources, with_spans=True)
        return ready, [said(read_rank(source, ready=ready)) for source in sources]


@pytest.mark.parametrize("reader", ["auto", "python"])
def test_databases_that_are_read_together_give_what_each_gives_alone(
    job_of_databases: Path, monkeypatch: pytest.MonkeyPatch, reader: str
) -> None:
    sources = discover(job_of_databases).sources
    alone = [said(read_rank(source)) for source in sources]
    monkeypatch.setenv(CHOICE, reader)
    ready, together = read_in_one_batch(sources)
    assert together == alone
    assert len(ready.communications) == len(ready.links) == len(ready.metadata) == len(sources)
    small = {one.files[role] for one in sources for role in ("analysis_db", "metadata")}
    assert ready.small.keys() == small
    paths = {source.files["profiler_db"] for source in sources}
    assert set(ready.of_tasks) == {
        (what, path) for what in ("kernels", "operators", "peers") for path in paths
    }
    assert all(table is not None for table in ready.of_tasks.values())


@pytest.mark.parametrize(
    ("damage", "n_ready"),
    [
        ("DROP TABLE CommAnalyzerMatrix", (4, 3, 4)),
        ("ALTER TABLE StepTraceTime RENAME COLUMN computing TO other", (4, 4, 3)),
        ("ALTER TABLE CommAnalyzerTime RENAME COLUMN step TO other", (3, 4, 4)),
        ("DELETE FROM CommAnalyzerBandwidth", (3, 4, 4)),
        ("UPDATE CommAnalyzerTime SET elapse_time = 'no number' WHERE rowid = 1", (3, 4, 4)),
        ("UPDATE CommAnalyzerTime SET elapse_time = NULL WHERE rowid = 1", (3, 4, 4)),
        ("UPDATE CommAnalyzerMatrix SET transit_size = -1 WHERE rowid = 1", (4, 0, 4)),
        ("UPDATE CommAnalyzerMatrix SET step = 'x' WHERE rowid = 1", (4, 0, 4)),
        ("INSERT INTO CommAnalyzerTime SELECT * FROM CommAnalyzerTime LIMIT 3", (0, 4, 4)),
        ("INSERT INTO StepTraceTime SELECT * FROM StepTraceTime LIMIT 1", (4, 4, 0)),
        ("UPDATE CommAnalyzerBandwidth SET transit_size = transit_size + rowid", (4, 4, 4)),
    ],
)
def test_an_odd_database_among_ranks_is_told_as_it_is_alone(
    job_of_databases: Path, damage: str, n_ready: tuple[int, int, int]
) -> None:
    sources = discover(job_of_databases).sources
    with closing(sqlite3.connect(sources[1].files["analysis_db"])) as connection, connection:
        connection.execute(damage)
    ready, together = read_in_one_batch(sources)
    assert together == [said(read_rank(source)) for source in sources]
    n_steps = sum(one.files["analysis_db"] in ready.small for one in sources)
    assert (len(ready.communications), len(ready.links), n_steps) == n_ready


@pytest.mark.parametrize(
    ("damage", "n_ready"),
    [
        ("DROP TABLE COMPUTE_TASK_INFO", (3, 4)),
        ("DROP TABLE STRING_IDS", (3, 3)),
        ("DELETE FROM COMPUTE_TASK_INFO", (3, 4)),
        ("DELETE FROM STRING_IDS WHERE id % 3 = 0", (3, 3)),
        ("UPDATE STRING_IDS SET id = id * 1000003", (3, 3)),
        ("UPDATE STRING_IDS SET value = 'the same' WHERE value LIKE 'aclnn%'", (4, 4)),
        ("UPDATE STRING_IDS SET value = replace(value, 'send', 'SEND')", (4, 4)),
        ("ALTER TABLE COMPUTE_TASK_INFO ADD COLUMN opState INTEGER DEFAULT 0", (3, 4)),
        ("UPDATE TASK SET endNs = startNs - 1 WHERE rowid % 7 = 0", (3, 4)),
        ("UPDATE TASK SET endNs = 'late' WHERE rowid = 9", (3, 4)),
        ("UPDATE TASK SET startNs = -9223372036854775807 WHERE globalTaskId = 1", (3, 4)),
        ("UPDATE TASK SET globalTaskId = NULL WHERE rowid % 5 = 0", (4, 4)),
        ("UPDATE TASK SET globalTaskId = globalTaskId * 3000", (4, 4)),
        ("UPDATE COMPUTE_TASK_INFO SET taskType = 987654", (3, 4)),
        ("DELETE FROM COMMUNICATION_TASK_INFO", (4, 4)),
        ("DELETE FROM COMMUNICATION_OP", (4, 3)),
        ("UPDATE COMMUNICATION_OP SET opId = opId * 100000", (4, 3)),
        ("UPDATE COMMUNICATION_OP SET opName = NULL WHERE opId = 3", (4, 3)),
        ("UPDATE COMMUNICATION_OP SET startNs = startNs + 1000000000000", (4, 4)),
        ("UPDATE COMMUNICATION_TASK_INFO SET dstRank = 4294967295 WHERE rowid % 3 = 0", (4, 4)),
        ("UPDATE COMMUNICATION_TASK_INFO SET srcRank = -1 WHERE rowid % 3 = 0", (4, 4)),
        ("UPDATE COMMUNICATION_TASK_INFO SET dstRank = 12345678 WHERE rowid % 2 = 0", (4, 4)),
        ("UPDATE COMMUNICATION_TASK_INFO SET dstRank = 'x' WHERE rowid = 1", (4, 3)),
        ("INSERT INTO COMMUNICATION_TASK_INFO SELECT * FROM COMMUNICATION_TASK_INFO", (4, 4)),
        ("DELETE FROM STEP_TIME", (4, 4)),
        ("UPDATE STEP_TIME SET endNs = startNs", (4, 4)),
    ],
)
@pytest.mark.parametrize("reader", ["auto", "python"])
def test_odd_tasks_among_ranks_are_told_as_they_are_alone(
    job_of_databases: Path,
    monkeypatch: pytest.MonkeyPatch,
    reader: str,
    damage: str,
    n_ready: tuple[int, int],
) -> None:
    sources = discover(job_of_databases).sources
    with closing(sqlite3.connect(sources[1].files["profiler_db"])) as connection, connection:
        connection.execute(damage)
    alone = [said(read_rank(source)) for source in sources]
    monkeypatch.setenv(CHOICE, reader)
    ready, together = read_in_one_batch(sources)
    assert together == alone
    assert tuple(sum(what == one for what, _ in ready.of_tasks) for one in ("kernels", "peers")) == n_ready


@pytest.mark.parametrize("damage", ["cut off", "other bytes", "gone", "empty"])
def test_a_damaged_database_among_ranks_is_told_as_it_is_alone(job_of_databases: Path, damage: str) -> None:
    sources = discover(job_of_databases).sources
    path = Path(sources[1].files["analysis_db"])
    content = path.read_bytes()
    path.unlink()
    if damage != "gone":
        kept = {"cut off": content[: len(content) // 2], "empty": b""}
        path.write_bytes(kept.get(damage, bytes(100) + content[100:]))
    _, together = read_in_one_batch(sources)
    assert together == [said(read_rank(source)) for source in sources]


def test_a_database_that_is_kept_open_for_several_ranks_is_closed_with_its_own(
    job_of_databases: Path,
) -> None:
    path = Path(discover(job_of_databases).sources[0].files["analysis_db"])
    with kept_open():
        with open_database(path, unheard) as of_several:
            assert of_several.rows("SELECT 1") == [(1,)]
        with kept_open(), open_database(path, unheard) as of_one:
            assert of_one is of_several
        with pytest.raises(BadFileError):
            of_several.rows("SELECT 1")


def test_a_closed_database_and_its_columns_are_gone_without_a_look_for_cycles(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE TASK (startNs INTEGER)")
        connection.execute("INSERT INTO TASK VALUES (7)")
        connection.commit()
    gc.collect()
    gc.disable()
    try:
        with open_database(path, unheard) as database:
            assert database.rows("SELECT startNs FROM TASK") == [(7,)]
            cells = database.cells("TASK", "startNs")[0]
            gone = weakref.ref(database), weakref.ref(cells)
        del database, cells
        assert [one() for one in gone] == [None, None]
    finally:
        gc.enable()


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
