"""Tasks of a database say whom each message is for or from, also those that move nothing themselves."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from cluster_analysis.sources.db.task_peers_db import read_task_peers
from cluster_analysis.sources.rank import read_rank
from cluster_analysis.tables.schema import PEER_VARIANT
from cluster_run.facts import Fact
from cluster_simulate.api import JobSpec, simulate, write_run
from tests.analysis.sources.builders import source_of
from tests.analysis.sources.hand_made_databases import BEGIN, NS, database_capture, profiler_db, read

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
