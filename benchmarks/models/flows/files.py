"""Writes a run as torch_npu does: one `*_ascend_pt` directory a rank, with text files or `analysis.db`.

Times in communication.json are ms, starts µs, sizes MB of 10^6 bytes; a matrix has ranks local to its group.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.models.flows.program import Program
from benchmarks.models.flows.rows import FIRST_STEP, CallRow, RankRows, code_of_groups, owned, samples_of
from benchmarks.models.flows.run import Course
from benchmarks.models.format import write_json

_TRANSPORTS = ("HCCS", "PCIE", "RDMA", "SDMA", "SIO")
_STEP_COLUMNS = (
    "Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
    "Communication(Not Overlapped and Exclude Receive),Preparing"
)
_NAMES = {"tp": "tp", "cp": "cp", "dp": "dp_cp", "pp": "pp", "ep": "exp", "world": "default_group"}
_STEP = "step TEXT, type TEXT"
#: Tables of `analysis.db` as torch_npu declares them.
_TABLES = {
    "StepTraceTime": (
        "step TEXT, computing NUMERIC, communication_not_overlapped NUMERIC, overlapped NUMERIC, "
        "communication NUMERIC, free NUMERIC, stage NUMERIC, bubble NUMERIC, "
        "communication_not_overlapped_and_exclude_receive NUMERIC, preparing NUMERIC"
    ),
    "CommAnalyzerTime": (
        "hccl_op_name TEXT, group_name TEXT, start_timestamp NUMERIC, elapse_time NUMERIC, "
        f"transit_time NUMERIC, wait_time NUMERIC, synchronization_time NUMERIC, idle_time NUMERIC, {_STEP}"
    ),
    "CommAnalyzerBandwidth": (
        "hccl_op_name TEXT, group_name TEXT, transport_type TEXT, transit_size NUMERIC, "
        "transit_time NUMERIC, bandwidth NUMERIC, large_packet_ratio NUMERIC, package_size NUMERIC, "
        f"count NUMERIC, total_duration NUMERIC, {_STEP}"
    ),
    "CommAnalyzerMatrix": (
        "hccl_op_name TEXT, group_name TEXT, src_rank TEXT, dst_rank TEXT, transport_type TEXT, "
        f"transit_size NUMERIC, transit_time NUMERIC, bandwidth NUMERIC, {_STEP}, op_name TEXT"
    ),
}


def write(program: Program, course: Course, folder: Path) -> None:
    """Write all ranks' captures as they lie in a run directory."""
    wiring = program.wiring
    for rank, own in enumerate(owned(program)):
        host = wiring.host(rank) + 1
        place = folder / "cluster_profiler" / str(host) / "profiler"
        capture = place / f"worker{host}_{7000 + rank}_20260101120000000_ascend_pt"
        (capture / "ASCEND_PROFILER_OUTPUT").mkdir(parents=True)
        _RankFiles(program, RankRows(program, course, rank, own)).write(capture)
    lines = [f"198.51.100.{host + 1} {host + 1}\n" for host in range(program.shape.n_hosts)]
    (folder / "host_ips_mapping.txt").write_text("".join(lines))


class _RankFiles:
    """The files of one rank."""

    def __init__(self, program: Program, rows: RankRows) -> None:
        self.program, self.rows, self.rank = program, rows, rows.rank
        self.codes = code_of_groups(program)
        self.steps = range(program.shape.steps)

    def write(self, capture: Path) -> None:
        """Write what the profiler leaves in a capture."""
        output = capture / "ASCEND_PROFILER_OUTPUT"
        times = [(str(step + FIRST_STEP), *self.rows.step_times(step)) for step in self.steps]
        calls = [list(self.rows.calls(step)) for step in self.steps]
        (self._text if self.program.shape.form == "text" else self._database)(output, times, calls)
        level = {"config": {"experimental_config": {"_profiler_level": "Level1"}}, "rank_id": self.rank}
        write_json(capture / f"profiler_info_{self.rank}.json", level)
        write_json(capture / "profiler_metadata.json", self._metadata())

    def _metadata(self) -> dict[str, Any]:
        shape = self.program.shape
        groups = {
            f"group_name_{n}": {
                "group_name": _NAMES[name.partition("/")[0]],
                "group_rank": ranks.index(self.rank),
                "global_ranks": list(ranks),
            }
            for n, (name, ranks) in enumerate(self.program.groups.items())
            if self.rank in ranks
        }
        sizes = {
            "tensor_model_parallel_size": shape.tensor,
            "pipeline_model_parallel_size": shape.stages,
            "data_parallel_size": shape.data,
            "context_parallel_size": shape.context,
            "expert_model_parallel_size": shape.experts,
            "rank": self.rank,
            "world_size": shape.n_ranks,
        }
        return {"parallel_group_info": groups} | ({"distributed_args": sizes} if shape.has_sizes else {})

    def _ends(self, group: str, source: int, target: int) -> tuple[str, str]:
        ranks = self.program.groups[group]
        return str(ranks.index(source)), str(ranks.index(target))

    # -- text -------------------------------------------------------------------------------------------
    def _text(self, output: Path, times: list[tuple[Any, ...]], calls: list[list[CallRow]]) -> None:
        rows = [",".join([row[0], *(f"{one:.3f}" for one in row[1:])]) for row in times]
        (output / "step_trace_time.csv").write_text("\n".join([f"Step,{_STEP_COLUMNS}", *rows]) + "\n")
        (output / "op_statistic.csv").write_text(self._operators())
        communication: dict[str, Any] = {}
        matrix: dict[str, Any] = {}
        for step, found in zip(self.steps, calls, strict=True):
            key = f"step{step + FIRST_STEP}"
            communication[key], matrix[key] = {"p2p": {}, "collective": {}}, {"p2p": {}, "collective": {}}
            for call in found:
                communication[key][_level(call.is_message)][f"{call.name}@{self.codes[call.group]}"] = _entry(
                    call
                )
            for is_message, variant, group, one, name in samples_of(found):
                row = {
                    "Transport Type": one.transport,
                    "Transit Size(MB)": one.size_mb,
                    "Transit Time(ms)": one.time_ms,
                    "Bandwidth(GB/s)": round(one.size_mb / one.time_ms, 4),
                    "Op Name": name,
                }
                place = matrix[key][_level(is_message)].setdefault(f"{variant}@{self.codes[group]}", {})
                place["-".join(self._ends(group, one.source, one.target))] = row
        write_json(output / "communication.json", communication)
        write_json(output / "communication_matrix.json", matrix)

    def _operators(self) -> str:
        found = self.rows.kernels()
        whole = sum(row[1] for row in found.values())
        lines = [
            "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"
        ]
        for name, (count, total, low, high) in found.items():
            numbers = (total, low, total / count, high, 100 * total / whole)
            cells = ",".join(f"{one:.3f}" for one in numbers)
            lines.append(f"{self.rank % self.program.shape.per_host},{name},AI_CORE,{count:.0f},{cells}")
        return "\n".join(lines) + "\n"

    # -- databases --------------------------------------------------------------------------------------
    def _database(self, output: Path, times: list[tuple[Any, ...]], calls: list[list[CallRow]]) -> None:
        rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in _TABLES}
        rows["StepTraceTime"] = times
        for step, found in zip(self.steps, calls, strict=True):
            key = f"step{step + FIRST_STEP}"
            for call in found:
                code, place = self.codes[call.group], (key, _level(call.is_message))
                spans = (call.elapse_ms, call.transit_ms, call.wait_ms, call.wait_ms, call.idle_ms)
                rows["CommAnalyzerTime"].append((call.name, code, call.start_ms * 1000, *spans, *place))
                for kind in _TRANSPORTS:
                    own = [one for one in call.links if one.transport == kind]
                    if own:
                        size, time = sum(one.size_mb for one in own), sum(one.time_ms for one in own)
                        width = (kind, size, time, size / time, 0, own[0].size_mb, len(own), time)
                        rows["CommAnalyzerBandwidth"].append((call.name, code, *width, *place))
            for is_message, variant, group, one, name in samples_of(found):
                carried = (one.transport, one.size_mb, one.time_ms, one.size_mb / one.time_ms)
                ends = self._ends(group, one.source, one.target)
                level = _level(is_message)
                row = (variant, self.codes[group], *ends, *carried, key, level, name)
                rows["CommAnalyzerMatrix"].append(row)
        with closing(sqlite3.connect(output / "analysis.db")) as database:
            database.execute("PRAGMA synchronous = OFF")
            for table, columns in _TABLES.items():
                database.execute(f"CREATE TABLE {table} ({columns})")
                marks = ", ".join("?" * (columns.count(",") + 1))
                database.executemany(f"INSERT INTO {table} VALUES ({marks})", rows[table])
            database.commit()


def _level(is_message: bool) -> str:
    return "p2p" if is_message else "collective"


def _entry(call: CallRow) -> dict[str, Any]:
    return {
        "Communication Time Info": {
            "Start Timestamp(us)": call.start_ms * 1000,
            "Elapse Time(ms)": call.elapse_ms,
            "Transit Time(ms)": call.transit_ms,
            "Wait Time(ms)": call.wait_ms,
            "Synchronization Time(ms)": call.wait_ms,
            "Idle Time(ms)": call.idle_ms,
        },
        "Communication Bandwidth Info": {kind: _width(kind, call) for kind in _TRANSPORTS},
    }


def _width(kind: str, call: CallRow) -> dict[str, Any]:
    own = [one for one in call.links if one.transport == ("HCCS" if kind == "SDMA" else kind)]
    size, time = sum(one.size_mb for one in own), sum(one.time_ms for one in own)
    sizes: dict[str, list[float]] = {}
    for one in own:
        row = sizes.setdefault(f"{one.size_mb:.6f}", [0, 0.0])
        row[:] = row[0] + 1, row[1] + one.time_ms
    return {
        "Transit Size(MB)": size,
        "Transit Time(ms)": time,
        "Bandwidth(GB/s)": round(size / time, 4) if time else 0,
        "Large Packet Ratio": 0,
        "Size Distribution": {} if kind == "SDMA" else sizes,
    }
