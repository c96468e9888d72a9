"""What a profiler would have recorded of one rank: step times, calls, links, kernels.

Times are ms here; of calls by this host's clock. What each link carried is summed up by phases in a call.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.models.flows.ops import COLLECTIVE, EXCHANGE, FUSED, KERNELS, Op
from benchmarks.models.flows.program import Program
from benchmarks.models.flows.run import Course
from benchmarks.models.format import group_number

FIRST_STEP = 5
_BEGUN_MS = 1_764_246_877_000.0
#: Types of kernels, their share of an operation's time, and how many there are.
_TYPES = {
    "attention forward": (("FlashAttentionScore", 0.55, 1), ("MatMulV3", 0.38, 2), ("RmsNorm", 0.07, 1)),
    "attention backward": (
        ("FlashAttentionScoreGrad", 0.6, 1), ("MatMulV3", 0.33, 4), ("RmsNormGrad", 0.07, 1),
    ),
    "dense forward": (("MatMulV3", 0.82, 3), ("SwiGlu", 0.1, 1), ("Add", 0.08, 2)),
    "dense backward": (("MatMulV3", 0.84, 6), ("SwiGluGrad", 0.1, 1), ("Add", 0.06, 3)),
    "experts forward": (("GroupedMatmul", 0.85, 3), ("SwiGlu", 0.1, 1), ("MoeTokenPermute", 0.05, 1)),
    "experts backward": (("GroupedMatmul", 0.88, 6), ("SwiGluGrad", 0.12, 1)),
    "norm": (("LpNormV2", 0.9, 12), ("Mul", 0.1, 12)),
    "update": (("ApplyAdamWV2", 0.85, 24), ("Cast", 0.15, 24)),
    "dispatch": (("MoeDistributeDispatchV2", 1.0, 1),),
    "combine": (("MoeDistributeCombineV2", 1.0, 1),),
}  # fmt: skip
Span = tuple[float, float]


@dataclass(frozen=True)
class Carried:
    """What one call moved over one link. `source` and `target` are global ranks, sizes MB."""

    source: int
    target: int
    transport: str
    size_mb: float
    time_ms: float


@dataclass(frozen=True)
class CallRow:
    """One call of one rank. Its times are a start by the host's clock, elapse, transit, waiting, idle."""

    name: str
    what: str
    group: str
    is_message: bool
    start_ms: float
    elapse_ms: float
    transit_ms: float
    wait_ms: float
    idle_ms: float
    links: tuple[Carried, ...]


class RankRows:
    """The rows of one rank."""

    def __init__(self, program: Program, course: Course, rank: int, own: list[int]) -> None:
        self.program, self.course, self.rank, self.own = program, course, rank, own
        self.skew_ms, self.drift = program.skews[program.wiring.host(rank)]
        self.dice = random.Random(f"flows/{program.seed}/files/{rank}")
        self.codes = code_of_groups(program)
        self.counts: dict[str, int] = {}
        self.by_step: dict[int, list[int]] = {}
        for number in own:
            self.by_step.setdefault(program.ops[number].step, []).append(number)

    def step_times(self, step: int) -> tuple[float, ...]:
        """Return one row of step times in µs, in the order of the file."""
        ops, course = self.program.ops, self.course
        begun, *numbers = self.by_step[step]
        kernels = [self._busy(n) for n in numbers if ops[n].kind in (KERNELS, FUSED)]
        calls = [self._span(n) for n in numbers if ops[n].kind in (COLLECTIVE, EXCHANGE)]
        bubble = sum(course.end[n] - course.start[n] for n in numbers if ops[n].what == "receive")
        computing, communication, whole = length(kernels), length(calls), length(kernels + calls)
        first = min(course.start[n] for n in numbers)
        span = max(course.end[n] for n in numbers) - first
        alone = whole - computing
        row = (computing, alone, communication - alone, communication, span - whole, span - bubble, bubble,
               alone - bubble, first - course.start[begun])  # fmt: skip
        return tuple(1000 * one for one in row)

    def _span(self, number: int) -> Span:
        return self.course.start[number], self.course.end[number]

    def _busy(self, number: int) -> Span:
        start, end = self._span(number)
        return (
            (start, end)
            if self.program.ops[number].kind == FUSED
            else (start, start + self.course.busy[number])
        )

    def calls(self, step: int) -> Iterator[CallRow]:
        """Return every call of a step that was not lost."""
        shape = self.program.shape
        for number in self.by_step[step]:
            op = self.program.ops[number]
            if op.kind not in (COLLECTIVE, EXCHANGE):
                continue
            code = self.codes[op.group]
            self.counts[code] = self.counts.get(code, -1) + 1
            is_lost = bool(shape.lost_share) and self.dice.random() < shape.lost_share
            links = tuple(self._links(number, op))
            start, elapse = self.course.start[number], self.course.end[number] - self.course.start[number]
            transit = wait = 0.0
            if shape.wait_fields == "full" or (shape.wait_fields == "mixed" and self.dice.random() < 0.6):
                transit = min(elapse, _transit(links, op.kind == EXCHANGE))
                wait = max(0.0, elapse - transit - self.dice.uniform(0.005, 0.03))
            if is_lost:
                continue
            yield CallRow(
                f"hcom_{op.what}__{code[-3:]}_{self.counts[code]}_1", op.what, op.group, op.kind == EXCHANGE,
                _BEGUN_MS + self.skew_ms + start * (1 + self.drift), elapse, transit, wait,
                elapse - transit - wait, links,
            )  # fmt: skip

    def _links(self, number: int, op: Op) -> Iterator[Carried]:
        """Return what this rank sent in a call, and of messages what it received: once each link."""
        moved = self.course.moved.get(number if op.kind == EXCHANGE else -1 - op.call, ())
        sums: dict[tuple[int, int], list[float]] = {}
        for source, target, size, began, ended in moved:
            if source == self.rank or op.kind == EXCHANGE:
                row = sums.setdefault((source, target), [0.0, 0.0])
                row[0] += size
                row[1] += ended - began
        for (source, target), (size, time) in sums.items():
            yield Carried(source, target, self.program.wiring.transport(source, target), size, time)

    def kernels(self) -> dict[str, tuple[float, float, float, float]]:
        """Return count, total, least and most µs of each type of kernels over the capture."""
        sums: dict[str, list[float]] = {}
        for number in self.own:
            op = self.program.ops[number]
            if op.kind not in (KERNELS, FUSED):
                continue
            start, end = self._busy(number)
            for name, share, count in _TYPES[op.what]:
                time = (end - start) * share * 1000
                row = sums.setdefault(name, [0.0, 0.0, time / count, time / count])
                row[:] = row[0] + count, row[1] + time, min(row[2], time / count), max(row[3], time / count)
        return {name: (row[0], row[1], row[2], row[3]) for name, row in sums.items()}


def _transit(links: tuple[Carried, ...], is_message: bool) -> float:
    """Return how long a rank moved data: phases follow each other, the links of one go on at once."""
    if is_message:
        return max((one.time_ms for one in links), default=0.0)
    longest: dict[str, float] = {}
    for one in links:
        longest[one.transport] = max(longest.get(one.transport, 0.0), one.time_ms)
    return sum(longest.values())


def code_of_groups(program: Program) -> dict[str, str]:
    """Return the number by which operators' names and files know each group."""
    return {name: group_number(f"group_name_{n}") for n, name in enumerate(program.groups)}


def samples_of(calls: list[CallRow]) -> Iterator[tuple[bool, str, str, Carried, str]]:
    """Return the matrix of a step: by kind of call, group and link fastest, middle and slowest, and the sum.

    Each row is whether it is of messages, the variant, the group, what was carried, and the call's name.
    """
    found: dict[tuple[bool, str, str, int, int, str], list[tuple[str, Carried]]] = {}
    for call in calls:
        for one in call.links:
            key = (call.is_message, call.what, call.group, one.source, one.target, one.transport)
            found.setdefault(key, []).append((call.name, one))
    for key, some in found.items():
        is_message, what, group, source, target, transport = key
        kind = "reduce" if what == "reduceScatter" else what.lower()
        some.sort(key=lambda row: row[1].time_ms / row[1].size_mb)
        places = [("top1", 0), ("middle", len(some) // 2)]
        places += [(f"bottom{n}", -n) for n in (1, 2, 3) if len(some) >= n]
        for place, at in places:
            yield is_message, f"{kind}-{place}", group, some[at][1], some[at][0]
        size, time = (sum(getattr(one, field) for _, one in some) for field in ("size_mb", "time_ms"))
        yield is_message, f"{kind}-total", group, Carried(source, target, transport, size, time), ""


def length(spans: list[Span]) -> float:
    """Return how long at least one span lasts."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def owned(program: Program) -> list[list[int]]:
    """Return the operations of each rank, in the order in which they were made."""
    found: list[list[int]] = [[] for _ in range(program.shape.n_ranks)]
    for number, op in enumerate(program.ops):
        found[op.rank].append(number)
    return found
