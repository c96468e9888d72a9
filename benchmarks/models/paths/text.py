"""Text files of MindSpore 2.x, one `*_ascend_ms` directory a rank (mindinsight.md, section 7).

Single sends and receives stand under `collective`, batches under `p2p`, as MindSpore files them; groups have
no names that say what they are for, and nothing says how the job is parallel.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.models.format import write_json
from benchmarks.models.paths.lengths import Sent
from benchmarks.models.paths.record import Called, Recorder, StepSums

FIRST_STEP = 100
TRANSPORTS = ("HCCS", "RDMA", "PCIE", "SIO", "SDMA")
_COLUMNS = (
    "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
    "Communication(Not Overlapped and Exclude Receive),Preparing"
)


def write_rank(recorder: Recorder, rank: int, output: Path) -> None:
    """Write the text files of one rank."""
    calls = recorder.calls(rank)
    with_wait = recorder.job.shape.wait_fields == "full"
    communication: dict[str, Any] = {}
    for step in range(recorder.job.shape.steps):
        levels: dict[str, dict[str, Any]] = {"p2p": {}, "collective": {}}
        for call in calls:
            if call.step == step:
                level = "p2p" if call.what == "batchSendRecv" else "collective"
                levels[level][f"{call.name}@{call.group}"] = _entry(call, with_wait)
        communication[f"step{step + FIRST_STEP}"] = levels
    write_json(output / "communication.json", communication)
    write_json(output / "communication_matrix.json", _matrix(recorder, calls))
    rows = [_COLUMNS, *(_row(one) for one in recorder.sums(rank))]
    (output / "step_trace_time.csv").write_text("\n".join(rows) + "\n")
    (output / "op_statistic.csv").write_text(_operators(recorder, rank))


def _row(sums: StepSums) -> str:
    step, *values = vars(sums).values()
    return ",".join([str(step + FIRST_STEP), *(f"{one:.3f}" for one in values)])


def _entry(call: Called, with_wait: bool) -> dict[str, Any]:
    elapse = call.end_ms - call.start_ms
    transit = min(elapse, max((one.time_ms for one in call.wires), default=0.0)) if with_wait else 0.0
    wait = max(0.0, elapse - transit - 0.01) if with_wait else 0.0
    busy = transit + wait
    return {
        "Communication Time Info": {
            "Start Timestamp(us)": call.start_ms * 1000.0,
            "Elapse Time(ms)": elapse,
            "Transit Time(ms)": transit,
            "Wait Time(ms)": wait,
            "Synchronization Time(ms)": wait,
            "Idle Time(ms)": elapse - busy,
            "Wait Time Ratio": round(wait / busy, 4) if busy else 0,
            "Synchronization Time Ratio": round(wait / busy, 4) if busy else 0,
        },
        "Communication Bandwidth Info": {name: _carried(name, call.wires) for name in TRANSPORTS},
    }


def transport(wire: Sent) -> str:
    """Return the name of a wire's kind."""
    return "HCCS" if wire.is_near else "RDMA"


def _carried(name: str, wires: list[Sent]) -> dict[str, Any]:
    own = [one for one in wires if name in (transport(one), "SDMA" if one.is_near else "")]
    size, time_ms = sum(one.size_mb for one in own), sum(one.time_ms for one in own)
    packets = {} if name == "SDMA" or not own else {str(own[0].size_mb): [len(own), time_ms]}
    return {
        "Transit Size(MB)": size,
        "Transit Time(ms)": time_ms,
        "Bandwidth(GB/s)": round(size / time_ms, 4) if time_ms else 0,
        "Large Packet Ratio": 0,
        "Size Distribution": packets,
    }


def _matrix(recorder: Recorder, calls: list[Called]) -> dict[str, Any]:
    """Return the samples of each kind of operator, group and link: best, middle, worst and their sum."""
    steps: dict[str, Any] = {}
    for step in range(recorder.job.shape.steps):
        levels: dict[str, dict[str, Any]] = {"p2p": {}, "collective": {}}
        rows: dict[tuple[str, str, str, str], list[tuple[float, float, str, str]]] = {}
        for call in calls:
            for wire in call.wires if call.step == step else ():
                ends = f"{call.members.index(wire.source)}-{call.members.index(wire.target)}"
                level = "p2p" if call.what == "batchSendRecv" else "collective"
                key = (level, call.what, call.group, ends)
                rows.setdefault(key, []).append((wire.size_mb, wire.time_ms, transport(wire), call.name))
        for (level, what, group, ends), found in rows.items():
            kind = "reduce" if what == "reduceScatter" else what.lower()
            found.sort(key=lambda one: one[0] / one[1], reverse=True)
            picked = [("top1", found[0]), ("middle", found[len(found) // 2]), ("bottom1", found[-1])]
            picked += [(f"bottom{n}", found[-n]) for n in (2, 3) if len(found) >= n]
            size, time_ms = sum(one[0] for one in found), sum(one[1] for one in found)
            picked.append(("total", (size, time_ms, found[0][2], "")))
            for variant, one in picked:
                levels[level].setdefault(f"{kind}-{variant}@{group}", {})[ends] = _sample(*one)
        steps[f"step{step + FIRST_STEP}"] = levels
    return steps


def _sample(size_mb: float, time_ms: float, kind: str, name: str) -> dict[str, Any]:
    row: dict[str, Any] = {
        "Transport Type": kind,
        "Transit Size(MB)": size_mb,
        "Transit Time(ms)": time_ms,
        "Bandwidth(GB/s)": round(size_mb / time_ms, 4),
    }
    return {**row, "op_name": name} if name else row


def _operators(recorder: Recorder, rank: int) -> str:
    sums: dict[str, list[float]] = {}
    for block in recorder.blocks(rank):
        for name, share, count in block.kernels:
            sums.setdefault(name, []).extend(
                [(block.end_ms - block.start_ms) * share * 1000.0 / count] * count
            )
    lines = [
        "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"
    ]
    whole = sum(map(sum, sums.values()))
    for name, times in sums.items():
        total = sum(times)
        device = rank % recorder.job.shape.per_host
        lines.append(
            f"{device},{name},AI_CORE,{len(times)},{total:.3f},{min(times):.3f},{total / len(times):.3f},"
            f"{max(times):.3f},{100 * total / whole:.3f}"
        )
    return "\n".join(lines) + "\n"
