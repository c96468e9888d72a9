"""Tables that CANN 9 and the sampling options write: unions of tasks, counters of cards and ports."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from cluster_analysis.discovery.discover import discover
from cluster_analysis.sources.db.counters_db import read_link_counters
from cluster_analysis.sources.db.profiler_db import read_task_steps
from cluster_analysis.sources.errors import unheard
from cluster_analysis.sources.rank import read_rank
from cluster_simulate.cli import main as simulate
from tests.analysis.real.captures import DATA, needs_captures
from tests.analysis.sources.builders import source_of
from tests.analysis.sources.twins import assert_twins

REAL = DATA / "resnet-2of8-pt-db/rank0_ascend_pt/ASCEND_PROFILER_OUTPUT/ascend_pytorch_profiler_0.db"


def union(spans: list[tuple[int, int]]) -> list[list[int]]:
    merged: list[list[int]] = []
    for begin, end in sorted(spans):
        if merged and begin <= merged[-1][1]:
            merged[-1][1] = max(end, merged[-1][1])
        else:
            merged.append([begin, end])
    return merged


def with_unions_for_tasks(path: Path) -> None:
    """Put the unions of a database's tasks in their place, as msprof computes them."""
    with sqlite3.connect(path) as base:
        computing = base.execute(
            "SELECT startNs, endNs FROM TASK JOIN COMPUTE_TASK_INFO USING (globalTaskId)"
        ).fetchall()
        communication = base.execute("SELECT startNs, endNs FROM COMMUNICATION_OP").fetchall()
        base.execute("CREATE TABLE OVERLAP_ANALYSIS (id INTEGER PRIMARY KEY, deviceId, startNs, endNs, type)")
        for kind, spans in ((0, computing), (1, communication)):
            for begin, end in union(spans):
                base.execute("INSERT INTO OVERLAP_ANALYSIS VALUES (NULL, 0, ?, ?, ?)", (begin, end, kind))
        base.execute("DROP TABLE COMPUTE_TASK_INFO")
    base.close()


def test_unions_of_tasks_give_the_step_times_that_the_tasks_give(tmp_path: Path) -> None:
    run = tmp_path / "run"
    sizes = ["--tp", "2", "--pp", "1", "--dp", "1", "--steps", "3", "--form", "db"]
    assert simulate(["-q", *sizes, str(run)]) == 0
    for path in run.rglob("ascend_pytorch_profiler_*.db"):
        by_tasks = read_task_steps(path, 0, False, unheard)
        with_unions_for_tasks(path)
        by_unions = read_task_steps(path, 0, False, unheard)
        assert by_tasks is not None
        assert by_unions is not None
        assert by_tasks.num_rows == 3
        assert by_unions.equals(by_tasks)


@needs_captures
@pytest.mark.parametrize("absent", ["COMPUTE_TASK_INFO", "COMPUTE_TASK_INFO, COMMUNICATION_OP"])
def test_a_real_table_of_unions_gives_computing_communication_overlap_and_free_exactly(
    tmp_path: Path, absent: str
) -> None:
    path = tmp_path / REAL.name
    shutil.copy(REAL, path)
    by_tasks = read_task_steps(path, 0, False, unheard)
    with sqlite3.connect(path) as base:
        for table in absent.split(", "):
            base.execute(f"DROP TABLE {table}")
    base.close()
    by_unions = read_task_steps(path, 0, False, unheard)
    assert by_unions is not None
    assert by_tasks is not None
    assert by_unions.equals(by_tasks)
    stated = dict.fromkeys(range(4), 0)
    with sqlite3.connect(path) as base:
        stated.update(base.execute("SELECT type, SUM(endNs - startNs) FROM OVERLAP_ANALYSIS GROUP BY type"))
    base.close()
    (row,) = by_unions.to_pylist()
    names = ("computing_us", "communication_us", "communication_not_overlapped_us", "free_us")
    assert [round(row[name] * 1e3) for name in names] == [stated[kind] for kind in range(4)]


TABLES = {
    "NETDEV_STATS (timestampNs, macTxPfcPkt, macRxPfcPkt, macRxBadByte, roceTxErrPkt, roceNewPktRty)":
        [(1, 5, 4, 32, 10, 3), (2, 0, 1, 0, 0, 2)],
    "ROCE (deviceId, timestampNs, rxErrors, rxDropped)": [(0, 1, 1, 0), (0, 2, 4, 0)],
    "HCCS (deviceId, timestampNs, txThroughput, rxThroughput)": [(0, 1, 2.5e10, 0), (0, 2, 1e10, 0)],
    "UB (deviceId, portId, timestampNs, rxUdmaBind, txUdmaBind)": [(0, 3, 1, 0, 7e9), (0, 4, 1, 0, 9e9)],
    "SIO (deviceId, name, timestampNs, rxDat, txDat)": [(0, 77, 1, 5.0, 6.0)],
    "CCU (deviceId, globalTaskId, name, startNs, endNs)": [(0, 1, 2, 1_000, 3_500), (0, 2, 2, 9, 8)],
}  # fmt: skip
COUNTED = {
    ("mac_pause_frames_count", "macTxPfcPkt", 5.0), ("mac_pause_frames_count", "macRxPfcPkt", 5.0),
    ("mac_bad_bytes", "macRxBadByte", 32.0), ("roce_bad_packets_count", "roceTxErrPkt", 10.0),
    ("roce_resent_packets_count", "roceNewPktRty", 5.0), ("nic_errors_count", "ROCE rxErrors", 4.0),
    ("nic_dropped_count", "ROCE rxDropped", 0.0), ("hccs_peak_bytes_per_s", "txThroughput 0", 2.5e10),
    ("ub_peak_bytes_per_s", "txUdmaBind 3", 7e9), ("ub_peak_bytes_per_s", "txUdmaBind 4", 9e9),
    ("sio_peak_bytes_per_s", "rxDat 77", 5.0), ("sio_peak_bytes_per_s", "txDat 77", 6.0),
    ("ccu_operators_us", "", 2.5),
}  # fmt: skip


def with_hardware_tables(path: Path) -> None:
    with sqlite3.connect(path) as base:
        for table, rows in TABLES.items():
            base.execute(f"CREATE TABLE {table}")
            marks = ", ".join("?" * len(rows[0]))
            base.executemany(f"INSERT INTO {table.partition(' ')[0]} VALUES ({marks})", rows)
    base.close()


def test_counters_of_cards_are_summed_and_those_of_ports_give_their_best(tmp_path: Path) -> None:
    path = tmp_path / "ascend_pytorch_profiler_0.db"
    with_hardware_tables(path)
    assert set(read_link_counters(path, unheard)) == COUNTED


def test_a_host_sends_hardware_tables_as_columns_too(tmp_path: Path) -> None:
    run = tmp_path / "run"
    sizes = ["--tp", "2", "--pp", "1", "--dp", "1", "--steps", "1", "--form", "db"]
    assert simulate(["-q", *sizes, str(run)]) == 0
    (run / "manifest.json").unlink()
    source = discover(run).sources[0]
    path = Path(source.files["profiler_db"])
    with_hardware_tables(path)
    found = {tuple(row[name] for name in ("metric", "label", "value")) for row in
             read_rank(source).figures["counters"].to_pylist()}  # fmt: skip
    assert found >= COUNTED
    assert assert_twins(source_of(tmp_path, 0, "ascend_pt/db", profiler_db=path), "profiler_db")
