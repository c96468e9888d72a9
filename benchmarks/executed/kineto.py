"""Maps Kineto traces of CPU jobs to the files of a run directory: one rank's trace to one rank's text files.

| Kineto | here |
| --- | --- |
| `ProfilerStep#N` | step N |
| `kernel/…` and `aten::…` of all threads | computing; by type in op_statistic.csv |
| `gloo:all_reduce` of the threads that carry it | `hcom_allReduce` in the rank's data-parallel group |
| `gloo:send` and `gloo:recv` that go on at once | one `hcom_batchSendRecv` in its pipeline |
| one of these alone | `hcom_send`, `hcom_receive` |

Times are µs of the machine's clock. What calls carried, and over which links, no CPU trace tells.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.models.format import group_number

_HEADER = (
    "Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,"
    "Communication(Not Overlapped and Exclude Receive),Preparing"
)
_MESSAGES = {"gloo:send": "send", "gloo:recv": "receive"}
Span = tuple[float, float]


@dataclass(frozen=True)
class Call:
    """One call of one rank, in µs."""

    what: str
    start_us: float
    end_us: float

    @property
    def group(self) -> str:
        """Return the kind of the group that it is in."""
        return "dp" if self.what == "allReduce" else "pp"


class RankTrace:
    """One rank's trace. `groups` are the members of its groups by kind."""

    def __init__(self, rank: int, trace: dict[str, Any], groups: dict[str, list[int]]) -> None:
        self.rank, self.groups = rank, groups
        events = [one for one in trace["traceEvents"] if one.get("ph") == "X"]
        self.steps = {
            int(one["name"].partition("#")[2]): _span(one)
            for one in events
            if one["name"].startswith("ProfilerStep#")
        }
        self.kernels = [
            (one["name"], *_span(one)) for one in events if one["name"].startswith(("kernel/", "aten::"))
        ]
        self.calls = sorted(self._calls(events), key=lambda one: one.start_us)

    @staticmethod
    def _calls(events: list[dict[str, Any]]) -> Iterator[Call]:
        for one in events:
            if one["name"] == "gloo:all_reduce":
                yield Call("allReduce", *_span(one))
        messages = sorted((*_span(one), _MESSAGES[one["name"]]) for one in events if one["name"] in _MESSAGES)
        while messages:
            start, end, what = messages.pop(0)
            if messages and messages[0][0] < end and messages[0][2] != what:
                _, other_end, _ = messages.pop(0)
                what, end = "batchSendRecv", max(end, other_end)
            yield Call(what, start, end)

    def step_of(self, at_us: float) -> int | None:
        """Return the step in which a time lies."""
        return next((step for step, (start, end) in self.steps.items() if start <= at_us < end), None)

    def step_times(self, step: int) -> list[float]:
        """Return one row of step_trace_time.csv, by torch_npu's definitions."""
        kernels = [(start, end) for _, start, end in self.kernels if self.step_of(start) == step]
        calls = [one for one in self.calls if self.step_of(one.start_us) == step]
        spans = [(one.start_us, one.end_us) for one in calls]
        computing, communication, whole = length(kernels), length(spans), length(kernels + spans)
        first, last = min(kernels + spans)[0], max(end for _, end in kernels + spans)
        bubble = sum(one.end_us - one.start_us for one in calls if one.what == "receive")
        alone, stage = whole - computing, last - first - bubble
        return [computing, alone, communication - alone, communication, last - first - whole, stage, bubble,
                alone - bubble, first - self.steps[step][0]]  # fmt: skip

    def write(self, capture: Path) -> None:
        """Write the files of this rank."""
        output = capture / "ASCEND_PROFILER_OUTPUT"
        output.mkdir(parents=True)
        rows = [f"{step}," + ",".join(f"{one:.3f}" for one in self.step_times(step)) for step in self.steps]
        (output / "step_trace_time.csv").write_text("\n".join([_HEADER, *rows]) + "\n")
        (output / "op_statistic.csv").write_text(self._operators())
        (output / "communication.json").write_text(json.dumps(self._communication()))
        (capture / f"profiler_info_{self.rank}.json").write_text(json.dumps({"rank_id": self.rank}))
        groups = {
            _key(kind, ranks): {
                "group_name": kind,
                "group_rank": ranks.index(self.rank),
                "global_ranks": ranks,
            }
            for kind, ranks in self.groups.items()
        }
        (capture / "profiler_metadata.json").write_text(json.dumps({"parallel_group_info": groups}))

    def _communication(self) -> dict[str, Any]:
        found: dict[str, Any] = {f"step{step}": {"p2p": {}, "collective": {}} for step in self.steps}
        counts: dict[str, int] = {}
        for call in self.calls:
            step = self.step_of(call.start_us)
            code = group_number(_key(call.group, self.groups[call.group]))
            counts[code] = counts.get(code, -1) + 1
            if step is None:
                continue
            elapse_ms = (call.end_us - call.start_us) / 1000
            times = {
                "Start Timestamp(us)": call.start_us,
                "Elapse Time(ms)": elapse_ms,
                "Transit Time(ms)": 0.0,
                "Wait Time(ms)": 0.0,
                "Synchronization Time(ms)": 0.0,
                "Idle Time(ms)": elapse_ms,
            }
            level = "collective" if call.what == "allReduce" else "p2p"
            name = f"hcom_{call.what}__{code[-3:]}_{counts[code]}_1@{code}"
            entry = {"Communication Time Info": times, "Communication Bandwidth Info": {}}
            found[f"step{step}"][level][name] = entry
        return found

    def _operators(self) -> str:
        sums: dict[str, list[float]] = {}
        for name, start, end in self.kernels:
            if name.startswith("kernel/") and self.step_of(start) is not None:
                sums.setdefault(name.partition("/")[2], []).append(end - start)
        whole = sum(map(sum, sums.values()))
        lines = ["OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)"]
        for name, some in sums.items():
            total = sum(some)
            numbers = (total, min(some), total / len(some), max(some), 100 * total / whole)
            lines.append(f"{name},AI_CORE,{len(some)}," + ",".join(f"{one:.3f}" for one in numbers))
        return "\n".join(lines) + "\n"


def _key(kind: str, ranks: list[int]) -> str:
    return f"{kind}_{'_'.join(map(str, ranks))}"


def _span(event: dict[str, Any]) -> Span:
    return float(event["ts"]), float(event["ts"]) + float(event["dur"])


def length(spans: list[Span]) -> float:
    """Return how long at least one span lasts."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def write_run(traces: list[RankTrace], folder: Path, per_host: int) -> None:
    """Write all ranks as they lie in a run directory, `per_host` of them on each host."""
    for one in traces:
        host = one.rank // per_host + 1
        place = folder / "cluster_profiler" / str(host) / "profiler"
        one.write(place / f"cpu{host}_{one.rank}_20260101120000000_ascend_pt")
    n_hosts = len(traces) // per_host
    lines = [f"203.0.113.{host} {host}\n" for host in range(1, n_hosts + 1)]
    (folder / "host_ips_mapping.txt").write_text("".join(lines))
