"""Traps that measured files hold and that no other test names: each test says the fact."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pyarrow as pa
import pytest

from cluster_analysis.discovery.discover import discover
from cluster_analysis.tables.model import Capture
from cluster_analysis.tables.rank_tables import RankTables
from cluster_analysis.topology.build import build_topology, map_links
from cluster_analysis.topology.use import group_use
from cluster_run.ids import Rank
from tests.analysis.one_rank import metadata_of, read_rank
from tests.analysis.said import advice, notes_of, reason
from tests.analysis.sources.builders import (
    GROUP,
    LINKS,
    OPS,
    STEP_ROW,
    LinkRow,
    Op,
    source_of,
    write_analysis_db,
    write_capture,
    write_info,
)
from tests.analysis.sources.hand_made_databases import BEGIN, NS, database_capture, profiler_db
from tests.analysis.sources.test_r1 import OPERATORS, STEP_1, STEP_2, hccl, trace
from tests.analysis.sources.test_r1 import read as read_r1


def write_gpu(root: Path) -> None:
    (root / "step_trace_raw_3_detail_time.csv").write_text(trace(STEP_1, STEP_2))
    (root / "gpu_cluster_analyse_data-parallel_1_8_3.csv").write_text(
        "computation_time,communication_alone_time\n18,1\n18.5,1.5\n18.5,1.5\n"
    )
    (root / "gpu_op_type_info_3.csv").write_text(
        "op_type,type_occurrences,total_time(us),total_proportion,avg_time(us)\nMatMul,4,100.0,1.0,25.0\n"
    )


def test_files_of_gpus_have_the_same_columns_and_kernels_in_microseconds(tmp_path: Path) -> None:
    write_gpu(tmp_path)
    (source,) = discover(tmp_path).sources
    tables = read_rank(source)
    assert (source.rank, tables.problems) == (3, ())
    assert tables.steps["computing_us"].to_pylist() == [18_000.0, 18_500.0]
    (kernel,) = tables.operators.to_pylist()
    assert (kernel["op_type"], kernel["n_calls"], kernel["total_us"], kernel["avg_us"]) == (
        "MatMul",
        4,
        100.0,
        25.0,
    )


def test_memory_of_r1_is_in_gib_and_was_never_measured(tmp_path: Path) -> None:
    path = tmp_path / "memory_usage_summary_2.json"
    path.write_text(json.dumps({"capacity": 32.0, "peak_mem": 1.5, "static_mem": 0.5, "allocations": 9}))
    trace_path = tmp_path / "step_trace_raw_2_detail_time.csv"
    trace_path.write_text(trace(STEP_1, STEP_2))
    source = source_of(tmp_path, 2, "mindspore_r1/text", r1_memory=path, r1_step_trace=trace_path)
    figures = {row["metric"]: row["value"] for row in read_rank(source).figures["counters"].to_pylist()}
    assert figures["memory_theoretical_peak_bytes"] == 1.5 * 2**30
    assert figures["memory_capacity_bytes"] == 32 * 2**30


def test_costs_of_hccl_raw_are_sums_over_streams_and_are_not_used(tmp_path: Path) -> None:
    text = hccl(("1", OPERATORS))
    plain = read_r1(tmp_path, trace(STEP_1, STEP_2), r1_hccl=text)
    # Microseconds in one writer, milliseconds in the other: whatever stands there changes nothing.
    other = read_r1(tmp_path, trace(STEP_1, STEP_2), r1_hccl=text.replace(",1.5,2.5,", ",86000000,1e9,"))
    for name in ("steps", "collectives", "links"):
        assert getattr(plain, name).equals(getattr(other, name))


def test_hccl_raw_may_have_other_steps_than_the_trace(tmp_path: Path) -> None:
    # MindSpore writes at most 500 communication files, so that later steps have no links.
    tables = read_r1(tmp_path, trace(STEP_1, STEP_2), r1_hccl=hccl(("2", OPERATORS), ("7", OPERATORS)))
    assert set(tables.links["step"].to_pylist()) == {2, 7}
    assert tables.steps["step"].to_pylist() == [1, 2]
    assert tables.problems == ()


def test_a_link_of_r1_from_a_rank_to_itself_is_no_copy_on_the_chip(tmp_path: Path) -> None:
    # A receive comes from another card, and still its link is called 0-0.
    tables = read_r1(tmp_path, trace(STEP_1), r1_hccl=hccl(("1", OPERATORS)))
    receive = [row for row in tables.links.to_pylist() if row["op_type"] == "receive"]
    assert {row["transport"] for row in receive} == {"SDMA"}
    source = source_of(tmp_path, 2, "mindspore_r1/text", r1_hccl=tmp_path / "hccl_raw_2.csv")
    topology, _ = build_topology(
        Capture((source,), (Rank(2),)), {}, group_use(tables.collectives, tables.links)
    )
    mapped, _ = map_links(tables.links, topology)
    assert {row["src_rank"] for row in mapped.to_pylist() if row["op_type"] == "receive"} == {None}


def test_one_hash_under_both_levels_is_one_group(tmp_path: Path) -> None:
    both = (Op(f"hcom_allReduce__210_0_1@{GROUP}"), Op(f"hcom_send__210_1_1@{GROUP}", is_p2p=True))
    links = {"step50": [LinkRow(f"allreduce-top1@{GROUP}", 0, other) for other in (0, 1)]}
    for rank in (0, 1):
        write_capture(tmp_path, rank, ops={"step50": both}, links=links if rank == 0 else {"step50": []})
    capture = discover(tmp_path)
    tables = {source.rank: read_rank(source) for source in capture.sources}
    use = pa.concat_tables([group_use(one.collectives, one.links) for one in tables.values()])
    topology, _ = build_topology(capture, {rank: metadata_of(one) for rank, one in tables.items()}, use)
    assert list(topology.groups) == [GROUP]


def test_a_single_card_of_mindspore_says_its_rank_in_profiler_info_json(tmp_path: Path) -> None:
    capture = write_capture(tmp_path, 0, suffix="ascend_ms", has_info=False)
    (capture / "profiler_info.json").write_text('{"rank_id": "6", "ms_version": "2.4.0"}')
    assert [source.rank for source in discover(tmp_path).sources] == [6]


def test_a_database_without_a_rank_in_its_name_takes_it_from_profiler_info(tmp_path: Path) -> None:
    output = database_capture(tmp_path)
    profiler_db(output / "ascend_pytorch_profiler.db")
    (output.parent / "profiler_info_0.json").unlink()
    assert "rank is not known" in discover_problems(tmp_path)
    write_info(output.parent, 4)
    assert [source.rank for source in discover(tmp_path).sources] == [4]


def discover_problems(root: Path) -> str:
    write_capture(root / "other", 9)
    problems = discover(root).problems
    shutil.rmtree(root / "other")
    return " ".join(reason(problem) for problem in problems)


def test_processes_without_rank_id_all_say_rank_0_and_are_no_sessions(tmp_path: Path) -> None:
    for process in range(4):
        name = f"node1_{2000 + process}_2025010912345600{process}_ascend_ms"
        write_capture(tmp_path, 0, name)
    capture = discover(tmp_path)
    assert [source.rank for source in capture.sources] == [0]
    (problem,) = capture.problems
    assert reason(problem).startswith("4 captures of this rank")
    assert "RANK_ID" in advice(problem)


def test_sessions_of_one_process_may_follow_each_other_quickly(tmp_path: Path) -> None:
    for session in range(3):
        write_capture(tmp_path, 0, f"node1_2000_2025010912345{session}000_ascend_ms")
    capture = discover(tmp_path)
    assert capture.problems == ()
    assert notes_of(capture)[0].startswith("3 windows of the same processes are judged together")


def test_changes_in_a_write_ahead_log_are_told_and_not_read(tmp_path: Path) -> None:
    output = database_capture(tmp_path)
    write_analysis_db(output / "analysis.db", {"step50": OPS}, {"step50": LINKS}, {"50": STEP_ROW})
    (output / "analysis.db-wal").write_bytes(b"x" * 100)
    tables = read_rank(source_of(output.parent))
    assert tables.steps.num_rows == 1
    assert {reason(problem) for problem in tables.problems} == {
        "a write-ahead log of 100 bytes lies beside it: its changes are not read"
    }
    assert (output / "analysis.db-wal").read_bytes() == b"x" * 100


def with_communication_tasks(path: Path, rows: list[tuple[int, int, int, int, int]]) -> None:
    """Add tasks `(globalTaskId, srcRank, dstRank, size, linkType)` of the first operator."""
    profiler_db(path)
    with sqlite3.connect(path) as base:
        base.execute("ALTER TABLE COMMUNICATION_OP ADD COLUMN opId INTEGER")
        base.execute("UPDATE COMMUNICATION_OP SET opId = rowid")
        base.execute("INSERT INTO STRING_IDS VALUES (9, 'Memcpy')")
        base.execute(
            "CREATE TABLE COMMUNICATION_TASK_INFO (globalTaskId INTEGER, taskType INTEGER, srcRank INTEGER, "
            "dstRank INTEGER, size INTEGER, linkType INTEGER, opId INTEGER)"
        )
        for number, source, destination, size, link in rows:
            start = BEGIN + 40 * NS
            base.execute("INSERT INTO TASK VALUES (?, ?, ?, 0)", (start, start + 2 * NS, number))
            base.execute(
                "INSERT INTO COMMUNICATION_TASK_INFO VALUES (?, 9, ?, ?, ?, ?, 1)",
                (number, source, destination, size, link),
            )
    base.close()


def read_tasks(root: Path, rows: list[tuple[int, int, int, int, int]]) -> RankTables:
    output = database_capture(root)
    with_communication_tasks(output / "ascend_pytorch_profiler_0.db", rows)
    return read_rank(source_of(output.parent))


NOBODY = 4294967295


def test_tasks_of_level_0_have_neither_peer_nor_size_and_make_no_links(tmp_path: Path) -> None:
    tables = read_tasks(tmp_path, [(100, NOBODY, NOBODY, -1, 0), (101, NOBODY, NOBODY, -1, 1)])
    assert tables.links.num_rows == 0


def test_a_task_without_a_peer_works_on_its_own_ranks_memory(tmp_path: Path) -> None:
    tables = read_tasks(tmp_path, [(100, 0, NOBODY, 4096, 1), (101, 0, 1, 8192, 1), (102, 0, 1, 8192, 1)])
    found = {(row["src_local"], row["dst_local"]): row for row in tables.links.to_pylist()}
    assert found[0, 0]["transport"] == "LOCAL"
    assert (found[0, 1]["transport"], found[0, 1]["size_bytes"], found[0, 1]["time_us"]) == (
        "HCCS",
        16384.0,
        4.0,
    )


def test_a_task_between_ranks_that_no_job_has_is_told_and_makes_no_link(tmp_path: Path) -> None:
    tables = read_tasks(tmp_path, [(100, 0, 3_000_000_000, 4096, 1), (101, 0, 1, 8192, 1)])
    assert [(row["src_local"], row["dst_local"]) for row in tables.links.to_pylist()] == [(0, 1)]
    assert "left out: 1 link between ranks that no job has" in [reason(one) for one in tables.problems]


@pytest.mark.parametrize(
    ("metadata", "rank"),
    [
        ({"distributed_args": {"world_size": 10**12}}, 10**12 - 1),
        ({"parallel_group_info": {"a": {"global_ranks": [0, 10**10]}}}, 10**10),
        ({"parallel_group_info": {"a": {"global_ranks": [-1, 1]}}}, -1),
    ],
)
def test_a_rank_that_no_job_has_is_damage_and_makes_no_job_of_that_size(
    tmp_path: Path, metadata: object, rank: int
) -> None:
    write_capture(tmp_path, 0, metadata=metadata)
    capture = discover(tmp_path)
    assert capture.expected_ranks == (0,)
    (problem,) = read_rank(capture.sources[0]).problems
    assert (problem.file, reason(problem)) == (
        "profiler_metadata.json",
        f"it names rank {rank}, which no job has",
    )


def test_a_rank_of_more_than_six_digits_in_a_name_is_no_rank(tmp_path: Path) -> None:
    write_capture(tmp_path, 0)
    write_capture(tmp_path, 5_000_000_000)
    capture = discover(tmp_path)
    assert [source.rank for source in capture.sources] == [0]
    (problem,) = capture.problems
    assert "its rank is not known" in reason(problem)


def test_the_size_of_a_job_is_what_most_of_three_ranks_say(tmp_path: Path) -> None:
    for rank, size in enumerate((804, 4, 4)):
        write_capture(tmp_path, rank, metadata={"distributed_args": {"world_size": size}})
    assert discover(tmp_path).expected_ranks == (0, 1, 2, 3)
