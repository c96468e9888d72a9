"""Databases of MindSpore: `ascend_mindspore_profiler_{rank}.db` and `communication_analyzer.db`.

Tables as msprof-analyze.md, section 1.8, and a real capture have them. They hold no step times: these are in
the tasks. The analyzer's tables have neither step nor type, and one row an operator and link.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from benchmarks.models.paths.record import Called, Recorder
from benchmarks.models.paths.text import FIRST_STEP, transport

_PROFILER = (
    "CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY, value TEXT)",
    "CREATE TABLE TASK (startNs INTEGER, endNs INTEGER, deviceId INTEGER, connectionId INTEGER, "
    "globalTaskId INTEGER, globalPid INTEGER, taskType INTEGER, contextId INTEGER, streamId INTEGER, "
    "taskId INTEGER, modelId INTEGER)",
    "CREATE TABLE COMPUTE_TASK_INFO (name INTEGER, globalTaskId INTEGER PRIMARY KEY, blockDim INTEGER, "
    "mixBlockDim INTEGER, taskType INTEGER, opType INTEGER)",
    "CREATE TABLE COMMUNICATION_OP (opName INTEGER, startNs INTEGER, endNs INTEGER, connectionId INTEGER, "
    "groupName INTEGER, opId INTEGER PRIMARY KEY, relay INTEGER, retry INTEGER, dataType INTEGER, "
    "algType INTEGER, count NUMERIC, opType INTEGER)",
    "CREATE TABLE STEP_TIME (id INTEGER, startNs INTEGER, endNs INTEGER)",
    "CREATE TABLE RANK_DEVICE_MAP (rankId INTEGER, deviceId INTEGER)",
)
_ANALYZER = (
    "CREATE TABLE CommAnalyzerTime (hccl_op_name TEXT, group_name TEXT, start_timestamp NUMERIC, "
    "elapse_time NUMERIC, transit_time NUMERIC, wait_time NUMERIC, synchronization_time NUMERIC, "
    "idle_time NUMERIC)",
    "CREATE TABLE CommAnalyzerBandwidth (hccl_op_name TEXT, group_name TEXT, transport_type TEXT, "
    "transit_size NUMERIC, transit_time NUMERIC, bandwidth NUMERIC, large_packet_ratio NUMERIC, "
    "package_size NUMERIC, count NUMERIC, total_duration NUMERIC)",
    "CREATE TABLE CommAnalyzerMatrix (hccl_op_name TEXT, group_name TEXT, src_rank TEXT, dst_rank TEXT, "
    "transport_type TEXT, transit_size NUMERIC, transit_time NUMERIC, bandwidth NUMERIC, op_name TEXT)",
)


class _Strings:
    """Texts and the numbers that stand for them."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.known.setdefault(text, len(self.known))


def write_rank(recorder: Recorder, rank: int, output: Path) -> None:
    """Write both databases of one rank."""
    calls = recorder.calls(rank)
    _write_profiler(recorder, rank, calls, output / f"ascend_mindspore_profiler_{rank}.db")
    _write_analyzer(calls, output / "communication_analyzer.db")


def _ns(at_ms: float) -> int:
    return round(at_ms * 1e6)


def _write_profiler(recorder: Recorder, rank: int, calls: list[Called], path: Path) -> None:
    text, device = _Strings(), rank % recorder.job.shape.per_host
    tasks: list[tuple[object, ...]] = []
    kernels = []
    for block in recorder.blocks(rank):
        at = block.start_ms
        for name, share, _ in block.kernels:
            end = at + (block.end_ms - block.start_ms) * share
            number = len(tasks)
            kind = text("AI_CORE")
            row = (_ns(at), _ns(end), device, number, number, 1, kind, 0, 2, number, 4294967295)
            tasks.append(row)
            kernels.append((text(f"{name}{number}"), number, 24, 0, kind, text(name)))
            at = end
    operators = [
        (text(one.name), _ns(one.start_ms), _ns(one.end_ms), 0, text(one.group), number, 0, 0, 4,
         text("NA"), 0, text(f"hcom_{one.what}_"))
        for number, one in enumerate(calls)
    ]  # fmt: skip
    with _created(path, _PROFILER) as database:
        _insert(database, "TASK", tasks)
        _insert(database, "COMPUTE_TASK_INFO", kernels)
        _insert(database, "COMMUNICATION_OP", operators)
        _insert(database, "STEP_TIME", _steps(recorder, rank))
        _insert(database, "RANK_DEVICE_MAP", [(rank, device)])
        _insert(database, "STRING_IDS", [(number, value) for value, number in text.known.items()])


def _steps(recorder: Recorder, rank: int) -> list[tuple[int, int, int]]:
    """Return where each step begins and ends on the rank's clock."""
    begins = [recorder.clock(rank, recorder.solution.points[one]) for one in recorder.job.begun[rank]]
    last = max(recorder.solution.points[entry.end] for entry in recorder.by_rank[rank])
    ends = [*begins[1:], recorder.clock(rank, last)]
    return [
        (step + FIRST_STEP, _ns(begin), _ns(end))
        for step, (begin, end) in enumerate(zip(begins, ends, strict=True))
    ]


def _write_analyzer(calls: list[Called], path: Path) -> None:
    times, widths, matrix = [], [], []
    for one in calls:
        elapse = one.end_ms - one.start_ms
        times.append((one.name, one.group, one.start_ms * 1000.0, elapse, 0.0, 0.0, 0.0, elapse))
        for kind in ("HCCS", "RDMA"):
            own = [wire for wire in one.wires if transport(wire) == kind]
            if own:
                size, time_ms = sum(wire.size_mb for wire in own), sum(wire.time_ms for wire in own)
                row = (kind, size, time_ms, size / time_ms, 0, own[0].size_mb, len(own), time_ms)
                widths.append((one.name, one.group, *row))
        for wire in one.wires:
            ends = (str(one.members.index(wire.source)), str(one.members.index(wire.target)))
            width = wire.size_mb / wire.time_ms
            carried = (transport(wire), wire.size_mb, wire.time_ms, width, one.name)
            matrix.append((one.name, one.group, *ends, *carried))
    with _created(path, _ANALYZER) as database:
        _insert(database, "CommAnalyzerTime", times)
        _insert(database, "CommAnalyzerBandwidth", widths)
        _insert(database, "CommAnalyzerMatrix", matrix)


@contextmanager
def _created(path: Path, tables: tuple[str, ...]) -> Iterator[sqlite3.Connection]:
    """Open a new database, made whole or not at all: nobody needs it to survive a power cut."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA synchronous = OFF")
        for statement in tables:
            database.execute(statement)
        yield database
        database.commit()


def _insert(database: sqlite3.Connection, table: str, rows: Sequence[tuple[object, ...]]) -> None:
    if rows:
        marks = ", ".join("?" * len(rows[0]))
        database.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
