"""Writes a run as torch_npu does: text, or databases of the same rows (msprof-analyze.md, section 1)."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.models.format import group_number, write_json
from benchmarks.models.queues.events import Course
from benchmarks.models.queues.job import Job
from benchmarks.models.queues.shape import KERNELS, RECEIVE, Item, Wire

_BEGUN_MS = 1_764_246_877_000.0
_FIRST_STEP = 20
_TRANSPORTS = ("HCCS", "RDMA", "PCIE", "SDMA", "SIO")
_STEP_COLUMNS = (
    "Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
    "Communication(Not Overlapped and Exclude Receive),Preparing"
)
_TIME_COLUMNS = {
    "Start Timestamp(us)": "start_timestamp",
    "Elapse Time(ms)": "elapse_time",
    "Transit Time(ms)": "transit_time",
    "Wait Time(ms)": "wait_time",
    "Synchronization Time(ms)": "synchronization_time",
    "Idle Time(ms)": "idle_time",
}
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
#: Types of kernels, their share of a layer's time, and how many there are.
_TYPES = {
    "forward": (
        ("MatMulV2", 0.55, 8),
        ("FlashAttentionScore", 0.25, 1),
        ("RmsNorm", 0.12, 3),
        ("Add", 0.08, 5),
    ),
    "backward": (("MatMulV2", 0.5, 16), ("FlashAttentionScoreGrad", 0.3, 1), ("RmsNormGrad", 0.2, 3)),
    "optimizer": (("ApplyFusedAdamW", 0.8, 20), ("Mul", 0.2, 20)),
}
Span = tuple[float, float]


def write(job: Job, course: Course, folder: Path) -> None:
    """Write all ranks' captures as they lie in a run directory."""
    shape = job.shape
    for rank in range(shape.n_ranks):
        host = shape.host(rank) + 1
        capture = (
            folder
            / "cluster_profiler"
            / str(host)
            / "profiler"
            / f"gpu{host}_{9000 + rank}_2026010112_ascend_pt"
        )
        output = capture / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        _Rank(job, course, rank).write(capture, output)
    lines = [f"203.0.113.{host + 1} {host + 1}\n" for host in range(shape.host(shape.n_ranks - 1) + 1)]
    (folder / "host_ips_mapping.txt").write_text("".join(lines))


class _Rank:
    """The files of one rank."""

    def __init__(self, job: Job, course: Course, rank: int) -> None:
        self.job, self.course, self.rank = job, course, rank
        self.skew_ms, self.drift = job.skews[job.shape.host(rank)]
        self.dice = random.Random(f"queues/{job.seed}/files/{rank}")
        self.keys = {name: f"group_name_{n}" for n, name in enumerate(job.groups)}
        self.hashes = {name: group_number(key) for name, key in self.keys.items()}
        self.counts: dict[str, int] = {}

    def write(self, capture: Path, output: Path) -> None:
        shape = self.job.shape
        steps = [(str(step + _FIRST_STEP), *self._sums(step)) for step in range(shape.steps)]
        calls = [(f"step{step + _FIRST_STEP}", self._calls(step)) for step in range(shape.steps)]
        if shape.form == "text":
            self._text(output, steps, calls)
        else:
            self._database(output, steps, calls)
        groups = {
            self.keys[name]: {
                "group_name": "default_group" if name == "world" else name[:2],
                "group_rank": ranks.index(self.rank),
                "global_ranks": list(ranks),
            }
            for name, ranks in self.job.groups.items()
            if self.rank in ranks
        }
        write_json(capture / "profiler_metadata.json", {"parallel_group_info": groups})
        level = {"config": {"experimental_config": {"_profiler_level": "Level1"}}, "rank_id": self.rank}
        write_json(capture / f"profiler_info_{self.rank}.json", level)

    def _clock_ms(self, at_ms: float) -> float:
        return _BEGUN_MS + self.skew_ms + at_ms * (1 + self.drift)

    # -- rows -------------------------------------------------------------------------------------------
    def _sums(self, step: int) -> tuple[float, ...]:
        """One row of step times, in µs."""
        items, course = self.job.own[self.rank, step], self.course
        kernels = [one for number in items for one in self._kernels(number)]
        calls = [(course.start[n], course.end[n]) for n in items if self.job.items[n].kind != KERNELS]
        bubble = sum(course.end[n] - course.start[n] for n in items if self.job.items[n].kind == RECEIVE)
        computing, communication = _length(kernels), _length(calls)
        whole = _length(kernels + calls)
        first = min(course.start[n] for n in items)
        span = max(course.end[n] for n in items) - first
        alone = whole - computing
        values = (computing, alone, communication - alone, communication, span - whole, span - bubble, bubble)
        rest = (alone - bubble, first - course.begun[self.rank, step])
        return tuple(1000 * one for one in (*values, *rest))

    def _kernels(self, number: int) -> list[Span]:
        """Kernels of a layer as four spans, with what is idle in it between them."""
        start, end, busy = (one[number] for one in (self.course.start, self.course.end, self.course.busy))
        if not busy:
            return []
        pause = (end - start - busy) / 4
        return [
            (start + part * (busy / 4 + pause), start + part * (busy / 4 + pause) + busy / 4)
            for part in range(4)
        ]

    def _calls(self, step: int) -> list[tuple[str, str, Item, dict[str, float], list[tuple[Wire, float]]]]:
        """Every call of a step: its name, its group, what it is, its times, and what its own links took."""
        found = []
        for number in self.job.own[self.rank, step]:
            item = self.job.items[number]
            if item.kind == KERNELS:
                continue
            meeting = self.job.meetings[item.meeting]
            code = self.hashes[meeting.group]
            self.counts[code] = self.counts.get(code, -1) + 1
            timed = zip(meeting.wires, self.course.wires[item.meeting], strict=True)
            wires = [one for one in timed if self.rank == one[0].source or item.kind == RECEIVE]
            start, elapse = self.course.start[number], self.course.end[number] - self.course.start[number]
            transit = wait = 0.0
            if self.job.shape.has_wait_fields:
                transit = min(elapse, max((one for _, one in wires), default=0.0))
                wait = max(0.0, elapse - transit - self.dice.uniform(0.005, 0.03))
            times = (self._clock_ms(start) * 1000, elapse, transit, wait, wait, elapse - transit - wait)
            name = f"hcom_{item.what}__{code[-3:]}_{self.counts[code]}_1"
            found.append((name, code, item, dict(zip(_TIME_COLUMNS, times, strict=True)), wires))
        return found

    def _samples(self, calls: Sequence[Any]) -> dict[tuple[str, str, str], list[tuple[str, Wire, float]]]:
        """All that went over each link, by level, kind and group, and ends in the group."""
        found: dict[tuple[str, str, str], list[tuple[str, Wire, float]]] = {}
        for name, code, item, _, wires in calls:
            ranks = self.job.groups[self.job.meetings[item.meeting].group]
            for wire, time in wires:
                ends = f"{ranks.index(wire.source)}-{ranks.index(wire.target)}"
                key = (_level(item), f"{item.what}@{code}", ends)
                found.setdefault(key, []).append((name, wire, time))
        return found

    # -- files ------------------------------------------------------------------------------------------
    def _text(self, output: Path, steps: Sequence[tuple[Any, ...]], calls: Sequence[tuple[str, Any]]) -> None:
        rows = [",".join([row[0], *(f"{one:.3f}" for one in row[1:])]) for row in steps]
        (output / "step_trace_time.csv").write_text("\n".join([f"Step,{_STEP_COLUMNS}", *rows]) + "\n")
        (output / "op_statistic.csv").write_text(self._operators())
        communication: dict[str, Any] = {}
        matrix: dict[str, Any] = {}
        for key, found in calls:
            communication[key] = {"p2p": {}, "collective": {}}
            matrix[key] = {"p2p": {}, "collective": {}}
            for name, code, item, times, wires in found:
                widths = {one: _width(one, wires) for one in _TRANSPORTS}
                entry = {"Communication Time Info": times, "Communication Bandwidth Info": widths}
                communication[key][_level(item)][f"{name}@{code}"] = entry
            for (level, what, ends), some in self._samples(found).items():
                for variant, name, size, time, kind in self._chosen(what, some):
                    row = {"Transport Type": kind, "Transit Size(MB)": size, "Transit Time(ms)": time}
                    row |= {"Bandwidth(GB/s)": round(size / time, 4), "Op Name": name}
                    matrix[key][level].setdefault(variant, {})[ends] = row
        write_json(output / "communication.json", communication)
        write_json(output / "communication_matrix.json", matrix)

    def _database(
        self, output: Path, steps: Sequence[tuple[Any, ...]], calls: Sequence[tuple[str, Any]]
    ) -> None:
        rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in _TABLES}
        rows["StepTraceTime"] = list(steps)
        for key, found in calls:
            for name, code, item, times, wires in found:
                place = (key, _level(item))
                rows["CommAnalyzerTime"].append((name, code, *times.values(), *place))
                for kind in ("HCCS", "RDMA"):
                    own = [(wire.size_mb, time) for wire, time in wires if wire.kind == kind]
                    if own:
                        size, time = sum(one for one, _ in own), sum(one for _, one in own)
                        width = (kind, size, time, size / time, 0, own[0][0], len(own), time)
                        rows["CommAnalyzerBandwidth"].append((name, code, *width, *place))
            for (level, what, ends), some in self._samples(found).items():
                for variant, name, size, time, kind in self._chosen(what, some):
                    plain, _, code = variant.partition("@")
                    carried = (kind, size, time, size / time, key, level, name)
                    rows["CommAnalyzerMatrix"].append((plain, code, *ends.split("-"), *carried))
        with closing(sqlite3.connect(output / "analysis.db")) as database:
            database.execute("PRAGMA synchronous = OFF")
            for name, columns in _TABLES.items():
                database.execute(f"CREATE TABLE {name} ({columns})")
                marks = ", ".join("?" * (columns.count(",") + 1))
                database.executemany(f"INSERT INTO {name} VALUES ({marks})", rows[name])
            database.commit()

    def _chosen(
        self, what: str, some: list[tuple[str, Wire, float]]
    ) -> list[tuple[str, str, float, float, str]]:
        """The fastest, middle and slowest calls over a link, and the sum of all."""
        plain, _, code = what.partition("@")
        kind = "reduce" if plain == "reduceScatter" else plain.lower()
        some.sort(key=lambda one: one[2] / one[1].size_mb)
        places = [("top1", 0), ("middle", len(some) // 2)]
        places += [(f"bottom{n}", -n) for n in (1, 2, 3) if len(some) >= n]
        carrier = some[0][1].kind
        rows = [
            (f"{kind}-{name}@{code}", some[at][0], some[at][1].size_mb, some[at][2], carrier)
            for name, at in places
        ]
        size, time = sum(one[1].size_mb for one in some), sum(one[2] for one in some)
        return [*rows, (f"{kind}-total@{code}", "", size, time, carrier)]

    def _operators(self) -> str:
        sums: dict[str, list[float]] = {}
        for step in range(self.job.shape.steps):
            for number in self.job.own[self.rank, step]:
                busy = self.course.busy[number] * 1000
                for name, share, n in _TYPES[self.job.items[number].what] if busy else ():
                    mean = busy * share / n
                    row = sums.setdefault(name, [0.0, 0.0, mean, mean])
                    sums[name] = [row[0] + n, row[1] + busy * share, min(row[2], mean), max(row[3], mean)]
        whole = sum(row[1] for row in sums.values())
        lines = [
            "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"
        ]
        for name, (count, total, low, high) in sums.items():
            numbers = (total, low, total / count, high, 100 * total / whole)
            cells = ",".join(f"{one:.3f}" for one in numbers)
            lines.append(f"{self.rank % self.job.shape.per_host},{name},AI_CORE,{count:.0f},{cells}")
        return "\n".join(lines) + "\n"


def _width(kind: str, wires: Sequence[tuple[Wire, float]]) -> dict[str, Any]:
    real = "HCCS" if kind == "SDMA" else kind
    own = [(wire.size_mb, time) for wire, time in wires if wire.kind == real]
    size, time = sum(one for one, _ in own), sum(one for _, one in own)
    return {
        "Transit Size(MB)": size,
        "Transit Time(ms)": time,
        "Bandwidth(GB/s)": round(size / time, 4) if time else 0,
        "Large Packet Ratio": 0,
        "Size Distribution": {f"{own[0][0]:.6f}": [len(own), time]} if own and kind != "SDMA" else {},
    }


def _level(item: Item) -> str:
    return "p2p" if item.what in ("send", "receive") else "collective"


def _length(spans: list[Span]) -> float:
    """Return how long at least one span lasts."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total
