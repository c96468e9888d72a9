"""A host leaves out the rows of a database that the analysis does not ask for, and nothing changes by it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cluster_analysis.sources.columns.database import database_of
from cluster_analysis.sources.db.task_links_db import read_task_peers
from cluster_analysis.tables.schema import PEER_VARIANT
from cluster_reduce.database_rows import condition_of
from cluster_reduce.form import SUFFIX
from cluster_run.facts import Fact
from cluster_simulate.api import JobSpec, simulate, write_run
from tests.analysis.one_rank import read_rank
from tests.analysis.sources.builders import source_of
from tests.analysis.sources.hand_made_databases import BEGIN, NS, database_capture, profiler_db, read
from tests.analysis.sources.twins import as_columns, assert_twins

TABLES = {
    "TASK": ("startNs", "endNs", "globalTaskId", "taskType", "connectionId"),
    "COMPUTE_TASK_INFO": ("globalTaskId", "name", "opType", "taskType", "inputShapes", "outputShapes"),
    "COMMUNICATION_TASK_INFO": ("globalTaskId", "taskType", "srcRank", "dstRank", "linkType", "size", "opId"),
    "COMMUNICATION_OP": ("opId", "opName", "groupName", "startNs", "endNs"),
    "PYTORCH_API": ("startNs", "endNs", "name"),
    "CANN_API": ("startNs", "endNs", "type", "name", "connectionId"),
    "AICORE_FREQ": ("freq", "timestampNs"),
    "GC_RECORD": ("startNs", "endNs"),
}
TEXTS = (
    "MatMul", "AI_CORE", "Memcpy", "Reduce_Inline", "MEMCPY_ASYNC", "aten::copy_", "aten::copyX", "aten::add",
    "enumerate(DataLoader)#_next", "aclrtSynchronizeStream", "launch", "hcom_allReduce__1_0_1", "group",
    "Cast", "hcom_send__1_0_1",
)  # fmt: skip
#: Numbers of texts, of tasks and of calls; times of the same few µs, so that all of them meet.
NUMBER, TIME = st.integers(0, len(TEXTS) + 1), st.integers(0, 40).map(lambda one: one * 500)
ODD = st.sampled_from([None, "7", "soon", -1, 2.5, b"x", 1 << 62])


def cells(name: str) -> st.SearchStrategy[object]:
    usual = TIME if name.endswith("Ns") else NUMBER
    return st.one_of(usual, usual, usual, usual, usual, ODD)


ROWS = st.fixed_dictionaries(
    {table: st.lists(st.tuples(*map(cells, names)), max_size=8) for table, names in TABLES.items()}
)


def write(path: Path, rows: dict[str, list[tuple[object, ...]]], without: str = "") -> None:
    path.with_name(path.name + SUFFIX).unlink(missing_ok=True)
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY, value TEXT)")
        base.executemany("INSERT INTO STRING_IDS VALUES (?, ?)", enumerate(TEXTS))
        base.execute("CREATE TABLE ENUM_API_TYPE (id INTEGER PRIMARY KEY, name TEXT)")
        base.executemany("INSERT INTO ENUM_API_TYPE VALUES (?, ?)", [(0, "acl"), (1, "node")])
        base.execute("CREATE TABLE STEP_TIME (id INTEGER, startNs INTEGER, endNs INTEGER)")
        base.executemany("INSERT INTO STEP_TIME VALUES (?, ?, ?)", [(1, 0, 9_000), (2, 9_001, 30_000)])
        for table, names in TABLES.items():
            kept = [name for name in names if f"{table}.{name}" != without]
            kind = "" if table == "PYTORCH_API" else " INTEGER"
            if table != without:
                base.execute(f"CREATE TABLE {table} ({', '.join(name + kind for name in kept)})")
                places = [names.index(name) for name in kept]
                base.executemany(
                    f"INSERT INTO {table} VALUES ({', '.join('?' * len(kept))})",
                    [[row[place] for place in places] for row in rows[table]],
                )
    base.close()


#: A number as text beside one that is none: the row that holds the other is not asked for.
MIXED = {**{table: [] for table in TABLES}, "PYTORCH_API": [(0, 0, 0), (0, "7", 5)]}
MIXED["COMMUNICATION_OP"] = [(0, 0, 0, 500, 1_000)]


@pytest.mark.slow
@given(ROWS)
@example(MIXED)
def test_whatever_rows_are_left_out_the_tables_are_the_same(
    tmp_path: Path, rows: dict[str, list[tuple[object, ...]]]
) -> None:
    path = tmp_path / "ascend_pytorch_profiler_0.db"
    write(path, rows)
    assert_twins(source_of(tmp_path, 0, "ascend_pt/db", profiler_db=path), "profiler_db")


USUAL: dict[str, list[tuple[object, ...]]] = {
    "TASK": [
        (500, 1_500, 1, 1, 1), (2_000, 2_500, 2, 2, 2), (3_000, 3_500, 3, 4, 3), (4_000, 4_500, 4, 10, 4),
        (9_000, 8_000, 5, 10, 5), (5_000, 39_000, 6, 10, 6),
    ],
    "COMPUTE_TASK_INFO": [(1, 0, 0, 1, 13, 13)],
    "COMMUNICATION_TASK_INFO": [(2, 2, 0, 1, 1, 64, 1), (4, 10, 0, 1, 1, 64, 1)],
    "COMMUNICATION_OP": [(1, 11, 12, 1_800, 2_600)],
    "PYTORCH_API": [("100", "400", 5), ("100", "500", 7), ("0", "200", 8)],
    "CANN_API": [(300, 400, 0, 10, 1), (1_600, 1_700, 0, 9, 2)],
    "AICORE_FREQ": [(1800, 0), (1000, 7_000)],
    "GC_RECORD": [(1_550, 1_580)],
}  # fmt: skip


def test_only_rows_that_are_asked_for_travel(tmp_path: Path) -> None:
    path = tmp_path / "ascend_pytorch_profiler_0.db"
    write(path, USUAL)
    assert as_columns(path)
    base, _ = database_of(path.with_name(path.name + SUFFIX))
    tasks = [row[0] for row in base.execute("SELECT globalTaskId FROM TASK ORDER BY rowid")]
    assert tasks == [1, 2, 3, 5, 6], "a kernel, a copy between ranks, one of memory, without a time, the last"
    texts = {row[0] for row in base.execute("SELECT value FROM STRING_IDS")}
    assert set(TEXTS) - texts == {"Reduce_Inline", "aten::copyX", "aten::add", "hcom_send__1_0_1"}
    counts = [
        base.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0] for name in ("PYTORCH_API", "CANN_API")
    ]
    assert counts == [2, 2]
    base.close()


@pytest.mark.parametrize(
    "without", [*TABLES, *(f"{table}.{name}" for table in ("TASK", "PYTORCH_API") for name in TABLES[table])]
)
def test_a_database_that_lacks_something_gives_the_same(tmp_path: Path, without: str) -> None:
    path = tmp_path / "ascend_pytorch_profiler_0.db"
    write(path, USUAL, without)
    assert assert_twins(source_of(tmp_path, 0, "ascend_pt/db", profiler_db=path), "profiler_db")


def test_a_table_whose_condition_needs_what_is_not_there_travels_with_all_its_rows() -> None:
    assert condition_of("pytorch_api", {"pytorch_api": frozenset({"name"})}) == ""
    assert condition_of("meta_data", {"meta_data": frozenset({"name"})}) == ""


# Tasks of a database say whom each message is for or from, also those that move nothing themselves.
NOBODY = 4294967295
NAME = "ascend_pytorch_profiler_0.db"
ALL_REDUCE, RECEIVE = 1, 2


def with_tasks(path: Path, tasks: list[tuple[int, object, object]]) -> Path:
    """A database with waits `(operator, srcRank, dstRank)`; its second operator is a receive."""
    profiler_db(path)
    with sqlite3.connect(path) as base:
        base.execute("ALTER TABLE COMMUNICATION_OP ADD COLUMN opId INTEGER")
        base.execute("UPDATE COMMUNICATION_OP SET opId = rowid")
        base.execute("INSERT INTO STRING_IDS VALUES (9, 'Notify_Wait')")
        base.execute(
            "CREATE TABLE COMMUNICATION_TASK_INFO (globalTaskId INTEGER, taskType INTEGER, srcRank INTEGER, "
            "dstRank INTEGER, size INTEGER, linkType INTEGER, opId INTEGER)"
        )
        for number, (operator, *ends) in enumerate(tasks, 100):
            start = BEGIN + 72 * NS
            base.execute("INSERT INTO TASK VALUES (?, ?, ?, 0)", (start, start + NS, number))
            base.execute(
                "INSERT INTO COMMUNICATION_TASK_INFO VALUES (?, 9, ?, ?, 0, 1, ?)", (number, *ends, operator)
            )
    base.close()
    return path


def no_remark(why: Fact, *also: Fact) -> None:
    raise AssertionError(why)


def peers(path: Path) -> set[tuple[str, int, int]]:
    table = read_task_peers(path, 0, no_remark)
    return (
        set()
        if table is None
        else {(row["op_name"], row["src_local"], row["dst_local"]) for row in table.to_pylist()}
    )


def test_a_wait_of_a_receive_names_its_sender(tmp_path: Path) -> None:
    path = with_tasks(tmp_path / NAME, [(RECEIVE, 0, 3), (RECEIVE, 0, 3), (ALL_REDUCE, 0, 1)])
    assert peers(path) == {("hcom_receive__210_1_1", 0, 3)}


@pytest.mark.parametrize("ends", [(NOBODY, NOBODY), (0, NOBODY), (0, 0), (None, 1), ("one", 2), (-1, 2)])
def test_tasks_without_a_peer_name_nobody(tmp_path: Path, ends: tuple[object, object]) -> None:
    assert peers(with_tasks(tmp_path / NAME, [(RECEIVE, *ends)])) == set()


def test_what_only_names_a_peer_is_no_measured_link(tmp_path: Path) -> None:
    output = database_capture(tmp_path)
    with_tasks(output / NAME, [(RECEIVE, 0, 3)])
    (row,) = read(output).links.to_pylist()
    assert (row["variant"], row["is_p2p"], row["step"]) == (PEER_VARIANT, True, 50)
    assert row["size_bytes"] is row["time_us"] is row["transport"] is None


def test_the_tasks_of_every_send_of_a_simulated_job_name_the_rank_it_is_for(tmp_path: Path) -> None:
    spec = JobSpec(tp=2, pp=4, dp=1, steps=1, ranks_per_host=4)
    job = simulate(spec, [], seed=1)
    write_run(job, tmp_path / "run", "db")
    found: dict[int, set[tuple[int, int]]] = {}
    for path in sorted((tmp_path / "run").rglob("ascend_pytorch_profiler_*.db")):
        rank = int(path.stem.rpartition("_")[2])
        tables = read_rank(source_of(path.parent.parent, rank, "ascend_pt/db", profiler_db=path))
        links = [row for row in tables.links.to_pylist() if row["variant"] == PEER_VARIANT]
        sends = [row for row in tables.collectives.to_pylist() if row["op_type"] == "send"]
        assert {row["op_name"] for row in links} == {row["op_name"] for row in sends}
        found[rank] = {(row["src_local"], row["dst_local"]) for row in links}
    # Ranks 0, 2, 4 and 6 are the four stages of one pipeline, and count among themselves from 0 on.
    assert [found[rank] for rank in (0, 2, 4, 6)] == [{(0, 1)}, {(1, 0), (1, 2)}, {(2, 1), (2, 3)}, {(3, 2)}]
