"""What profilers write since 2026, made after the tables of their released sources."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from cluster_analysis.api import analyse
from cluster_analysis.discovery.discover import discover
from cluster_analysis.sources.db.counters_db import read_link_counters
from cluster_analysis.sources.db.profiler_db import read_task_steps
from cluster_analysis.sources.errors import unheard
from cluster_analysis.tables.hccl_names import link_name
from cluster_analysis.topology.hosts import seated
from tests.analysis.one_rank import metadata_of, read_rank
from tests.analysis.real.captures import DATA, needs_captures
from tests.analysis.runs import simulated
from tests.analysis.said import reason
from tests.analysis.sources.builders import (
    OPS,
    OUTPUT,
    STEP_ROW,
    source_of,
    write_analysis_db,
    write_capture,
)
from tests.analysis.sources.hand_made_databases import changed
from tests.analysis.sources.twins import assert_twins

TWO_RANKS = {"tp": 2, "pp": 1, "dp": 1}
NOTHING = {
    "Transit Size(MB)": 0,
    "Transit Time(ms)": 0,
    "Bandwidth(GB/s)": 0,
    "Large Packet Ratio": 0,
    "Size Distribution": {},
}


def under_another_name(path: Path, name: str) -> None:
    """Write a communication.json as of links UB: what HCCS carried stands under another name."""
    document = json.loads(path.read_text())
    for step in document.values():
        for level in step.values():
            for operator in level.values():
                entries = operator["Communication Bandwidth Info"]
                carried = entries.get("HCCS", NOTHING)
                entries |= {one: dict(NOTHING) for one in ("HCCS", "PCIE", "SIO", "SDMA")} | {name: carried}
    path.write_text(json.dumps(document))


of_both_writers = pytest.mark.parametrize("name", ["SDMA", "UB"])


@of_both_writers
def test_what_links_without_a_column_carried_is_taken_from_the_entry_that_has_it(
    tmp_path: Path, name: str
) -> None:
    capture = write_capture(tmp_path, 0)
    communication = capture / OUTPUT / "communication.json"
    tables = read_rank(discover(tmp_path).sources[0])
    before = tables.collectives
    under_another_name(communication, name)
    others = read_rank(discover(tmp_path).sources[0])
    after = others.collectives
    assert others.packets.equals(tables.packets)
    assert before["payload_bytes"].null_count == len(OPS)
    for name in ("op_name", "hccs_bytes", "hccs_us", "rdma_bytes", "rdma_us"):
        assert after[name].to_pylist() == before[name].to_pylist(), name
    near = {one.name.partition("@")[0] for one in OPS if one.transport == "HCCS"}
    known = zip(after["op_name"].to_pylist(), after["payload_bytes"].to_pylist(), strict=True)
    assert {name for name, size in known if size is not None} == near


@of_both_writers
def test_columns_tell_of_such_links_too(tmp_path: Path, name: str) -> None:
    source = discover(write_capture(tmp_path, 0).parent).sources[0]
    under_another_name(Path(source.files["communication"]), name)
    assert assert_twins(source, "communication")


@of_both_writers
@pytest.mark.parametrize("framework", ["pt", "ms"])
def test_a_database_tells_of_such_links_too(tmp_path: Path, framework: str, name: str) -> None:
    run = simulated(tmp_path / "run", form="db", framework=framework, **TWO_RANKS, steps=2)
    source = discover(run).sources[0]
    before = read_rank(source)
    database = "analysis_db" if framework == "pt" else "communication_db"
    changed(
        Path(source.files[database]),
        "DELETE FROM CommAnalyzerBandwidth WHERE transport_type = 'SDMA'",
        f"UPDATE CommAnalyzerBandwidth SET transport_type = '{name}' WHERE transport_type = 'HCCS'",
    )
    after = read_rank(source)
    assert sum(before.collectives["hccs_bytes"].to_pylist()) > 0
    assert after.collectives.equals(before.collectives)
    assert after.packets.equals(before.packets)


@pytest.fixture(scope="module", params=["SDMA", "UB"])
def slow_port(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job of 16 ranks on two hosts; the links of rank 5 inside its host take three times as long."""
    fault, path = "slow_nic:3@5,via=hccs", tmp_path_factory.mktemp("slow") / "run"
    run = simulated(path, fault, tp=1, pp=1, dp=16, steps=3)
    for path in run.rglob("communication.json"):
        under_another_name(path, request.param)
    return run


def found_in(run: Path) -> tuple[str, tuple[int, ...]]:
    document = analyse(run, scheduler="threads").document
    (finding,) = (one for one in document.findings if one.severity != "info")
    assert finding.cost_ms_per_step == pytest.approx(93, rel=0.1)
    return finding.links[0].transport if finding.links else "", tuple(finding.ranks)


def test_a_slow_port_of_ub_is_found_by_the_matrix_and_named(slow_port: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(slow_port, run)
    for path in run.rglob("communication_matrix.json"):
        path.write_text(path.read_text().replace('"HCCS"', '"UB"'))
    transport, ranks = found_in(run)
    assert (transport, 5 in ranks) == ("UB", True)


def test_a_slow_port_of_ub_is_found_without_a_matrix_too(slow_port: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(slow_port, run, ignore=shutil.ignore_patterns("communication_matrix.json"))
    _, ranks = found_in(run)
    assert 5 in ranks


@pytest.mark.parametrize(
    ("number", "name"), [(0, "LOCAL"), (5, "HCCS"), (7, "UB"), (8, "UBoE"), (42, "link 42")]
)
def test_every_kind_of_link_has_a_name(number: int, name: str) -> None:
    assert link_name(number) == name


def test_links_of_new_kinds_in_a_database_are_read_and_named(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", form="db", **TWO_RANKS, steps=1)
    names = {}
    for number in (1, 7, 8, 42):
        for path in run.rglob("ascend_pytorch_profiler_*.db"):
            changed(path, f"UPDATE COMMUNICATION_TASK_INFO SET linkType = {number} WHERE linkType <> 3")
        for path in run.rglob("analysis.db"):
            path.unlink()
        links = read_rank(discover(run).sources[0]).links
        names[number] = set(links["transport"].drop_null().to_pylist()) - {"LOCAL"}
    assert names == {1: {"HCCS"}, 7: {"UB"}, 8: {"UBoE"}, 42: {"link 42"}}


def test_text_and_databases_of_one_rank_side_by_side_are_read_once(tmp_path: Path) -> None:
    capture = write_capture(tmp_path, 3)
    alone = read_rank(discover(tmp_path).sources[0])
    output = capture / OUTPUT
    write_analysis_db(output / "analysis.db", {"step50": OPS}, {}, {"50": STEP_ROW})
    (output / "ascend_pytorch_profiler_3.db").write_bytes(b"")
    found = discover(tmp_path)
    (source,) = found.sources
    assert (source.rank, source.kind) == (3, "ascend_pt/text")
    both = read_rank(source)
    for name in ("steps", "collectives", "links"):
        assert getattr(both, name).equals(getattr(alone, name)), name


def test_the_host_that_a_database_names_counts_beside_metadata_in_text(tmp_path: Path) -> None:
    for rank in range(4):
        capture = write_capture(
            tmp_path, rank, f"localhost_{rank}_20250109123456000_ascend_pt", metadata={"distributed_args": {}}
        )
        changed(
            capture / OUTPUT / f"ascend_pytorch_profiler_{rank}.db",
            "CREATE TABLE HOST_INFO (hostUid TEXT, hostName TEXT)",
            f"INSERT INTO HOST_INFO VALUES ('uid-{rank // 2}', 'localhost')",
            "CREATE TABLE RANK_DEVICE_MAP (rankId INTEGER, deviceId INTEGER)",
            f"INSERT INTO RANK_DEVICE_MAP VALUES ({rank}, {rank % 2})",
        )
    found = discover(tmp_path)
    seats = seated(found, {one.rank: metadata_of(read_rank(one)) for one in found.sources})
    assert seats.hosts == {0: "1", 1: "1", 2: "2", 3: "2"}


def test_a_capture_that_is_still_being_parsed_is_told(tmp_path: Path) -> None:
    for rank in range(3):
        capture = write_capture(tmp_path, rank)
        if rank < 2:
            (capture / OUTPUT / "analyse.done").touch()
    (problem,) = discover(tmp_path).problems
    assert (problem.kind, problem.rank) == ("still_parsed", 2)
    assert "analyse.done" in reason(problem)


def test_versions_that_do_not_write_that_file_are_not_told_to_wait(tmp_path: Path) -> None:
    for rank in range(3):
        write_capture(tmp_path, rank)
    assert discover(tmp_path).problems == ()


def test_directories_of_the_platform_are_no_captures(tmp_path: Path) -> None:
    write_capture(tmp_path, 0)
    (tmp_path / "PLATFORM_20260601120000123/host/data").mkdir(parents=True)
    (tmp_path / "PLATFORM_20260601120000123/host/data/numa.bin").write_bytes(b"x")
    found = discover(tmp_path)
    assert ([one.rank for one in found.sources], found.problems) == ([0], ())


@pytest.mark.parametrize("columns", ["Block Dim", "Block Num", "Block Num,Mix Block Num"])
def test_kernels_are_read_whatever_the_last_columns_are_called(tmp_path: Path, columns: str) -> None:
    capture = write_capture(tmp_path, 0)
    head = "Step Id,Device_id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),"
    last = "24,N/A" if "," in columns else "24"
    rows = [f'50,0,aclnn{at},MatMulV2,AI_CORE,"{1000 + at}.5\t",2.5,0,{last}' for at in range(3)]
    (capture / OUTPUT / "kernel_details.csv").write_text("\n".join([head + columns, *rows, ""]))
    tables = read_rank(discover(tmp_path).sources[0])
    assert tables.operators.to_pylist()[0]["n_calls"] == 3
    assert tables.problems == ()


def test_ranges_of_mstx_on_the_device_are_steps_where_no_table_has_any(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", form="db", **TWO_RANKS, steps=3)
    for path in run.rglob("analysis.db"):
        path.unlink()
    before = [read_rank(one).steps for one in discover(run).sources]
    for path in run.rglob("ascend_pytorch_profiler_*.db"):
        marked_by_mstx(path)
    after = [read_rank(one).steps for one in discover(run).sources]
    assert [one["step"].to_pylist() for one in after] == [one["step"].to_pylist() for one in before]
    for name in ("computing_us", "communication_us", "free_us"):
        assert [one[name].to_pylist() for one in after] == [one[name].to_pylist() for one in before], name


def marked_by_mstx(path: Path) -> None:
    """Mark steps in a database as torch_npu of June 2026 does, in place of STEP_TIME."""
    with sqlite3.connect(path) as base:
        times = base.execute("SELECT id, startNs, endNs FROM STEP_TIME").fetchall()
        base.execute("DROP TABLE STEP_TIME")
        base.execute(
            "CREATE TABLE MSTX_EVENTS (startNs INTEGER, endNs INTEGER, message INTEGER, connectionId INTEGER)"
        )
        columns = [row[1] for row in base.execute("PRAGMA table_info(TASK)")]
        (text,) = base.execute("SELECT MAX(id) FROM STRING_IDS").fetchone()
        for at, (number, begin, end) in enumerate(times, 1):
            name = f"ProfilerStep#{number}" if at % 2 else f"step {number}"
            base.execute("INSERT INTO STRING_IDS VALUES (?, ?)", (text + at, name))
            base.execute(
                "INSERT INTO MSTX_EVENTS VALUES (?, ?, ?, ?)", (begin, end, text + at, 4_000_000_000 + at)
            )
            for first, last in ((begin, begin), (end, end)):
                known = {"startNs": first, "endNs": last, "connectionId": 4_000_000_000 + at}
                row = [known.get(column, -1) for column in columns]
                base.execute(f"INSERT INTO TASK VALUES ({','.join('?' * len(row))})", row)
    base.close()


def test_columns_that_cann_9_added_or_gave_another_meaning_change_nothing(tmp_path: Path) -> None:
    run = simulated(tmp_path / "run", form="db", **TWO_RANKS, steps=2)
    source = discover(run).sources[0]
    before = read_rank(source)
    added = {
        "COMPUTE_TASK_INFO": ("blockNum", "mixBlockNum", "gridDim", "blockDim"),
        "COMMUNICATION_OP": ("rankSize",),
        "AICORE_FREQ": ("dieId",),
    }
    with sqlite3.connect(source.files["profiler_db"]) as base:
        for table, names in added.items():
            known = {row[1] for row in base.execute(f"PRAGMA table_info({table})")}
            for name in names:
                if name not in known:
                    base.execute(f"ALTER TABLE {table} ADD COLUMN {name} INTEGER DEFAULT 7")
    base.close()
    after = read_rank(source)
    assert after.problems == before.problems
    for name in ("steps", "collectives", "links", "operators"):
        assert getattr(after, name).equals(getattr(before, name)), name
    assert after.figures["counters"].equals(before.figures["counters"])


# Tables that CANN 9 and the sampling options write: unions of tasks, counters of cards and ports.
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
    run = simulated(tmp_path / "run", form="db", **TWO_RANKS, steps=3)
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
    changed(path, *(f"DROP TABLE {table}" for table in absent.split(", ")))
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
    run = simulated(tmp_path / "run", form="db", **TWO_RANKS, steps=1)
    source = discover(run).sources[0]
    path = Path(source.files["profiler_db"])
    with_hardware_tables(path)
    found = {tuple(row[name] for name in ("metric", "label", "value")) for row in
             read_rank(source).figures["counters"].to_pylist()}  # fmt: skip
    assert found >= COUNTED
    assert assert_twins(source_of(tmp_path, 0, "ascend_pt/db", profiler_db=path), "profiler_db")
