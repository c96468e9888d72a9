"""What a profiler sees of one rank: blocks and calls with their times, and the sums of a step.

The sums are MindSpore's (mindinsight.md, section 7): the stage is the span of communication less the bubble,
and every send and receive is bubble.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.models.format import group_number
from benchmarks.models.paths.graph import Entry
from benchmarks.models.paths.job import Job
from benchmarks.models.paths.lengths import Sent, Solution
from benchmarks.models.paths.scripts import Hand, Meet, Work

_EPOCH_MS = 1_764_246_877_000.0


class Block(NamedTuple):
    """Kernels from `start` to `end` in ms of the host's clock: (type, share, count)."""

    step: int
    start_ms: float
    end_ms: float
    kernels: list[tuple[str, float, int]]


class Called(NamedTuple):
    """One call of communication in ms of the host's clock, with the wires that this rank can see."""

    step: int
    name: str
    what: str
    group: str
    members: tuple[int, ...]
    start_ms: float
    end_ms: float
    wires: list[Sent]


@dataclass(frozen=True)
class StepSums:
    """One row of step_trace_time.csv, in µs."""

    step: int
    computing: float
    exposed: float
    overlapped: float
    communication: float
    free: float
    stage: float
    bubble: float
    exposed_without_receiving: float
    preparing: float


class Recorder:
    """Turns a solution into what the profilers of all ranks see."""

    def __init__(self, job: Job, solution: Solution) -> None:
        self.job, self.solution = job, solution
        self.by_rank: list[list[Entry]] = [[] for _ in range(job.shape.n_ranks)]
        for entry in job.paths.entries:
            self.by_rank[entry.rank].append(entry)
        dice = random.Random(f"paths/{job.seed}/clocks")
        self.clocks = [dice.gauss(0.0, job.shape.spread.clock_ms) for _ in range(job.shape.n_hosts)]
        kinds = [name for name in job.groups if name != "world"]
        self.keys = {("world", job.groups["world"][0]): "hccl_world_group"}
        for kind in kinds:
            for members in sorted(set(job.groups[kind].values())):
                if len(members) > 1:
                    digits = random.Random(f"{kind}/{members}").randrange(10**18, 10**19)
                    self.keys[kind, members] = f"{len(members)}-{digits}"
        self.numbers = {group: group_number(key) for group, key in self.keys.items()}

    def clock(self, rank: int, point_ms: float) -> float:
        """Return what a rank's host shows at a time of the job."""
        return _EPOCH_MS + self.clocks[rank // self.job.shape.per_host] + point_ms

    def blocks(self, rank: int) -> list[Block]:
        """Return a rank's blocks of kernels."""
        points = self.solution.points
        return [
            Block(
                entry.step,
                self.clock(rank, points[entry.start]),
                self.clock(rank, points[entry.end]),
                self.solution.kernels(rank, entry.step, entry.line.kind),
            )
            for entry in self.by_rank[rank]
            if isinstance(entry.line, Work)
        ]

    def calls(self, rank: int) -> list[Called]:
        """Return a rank's calls that left a record, without what was lost."""
        shape, points = self.job.shape, self.solution.points
        dice = random.Random(f"paths/{self.job.seed}/lost/{rank}")
        counts: dict[str, int] = {}
        found = []
        for entry in self.by_rank[rank]:
            if isinstance(entry.line, Work) or (shape.hidden_join and entry.group == "world"):
                continue
            number = self.numbers[entry.group, entry.members]
            counts[number] = counts.get(number, -1) + 1
            what = _what(entry)
            edges = [*entry.edges, *entry.taken]
            wires = [one for edge in edges for one in self.solution.sent(edge) if rank in one[:2]]
            if isinstance(entry.line, Meet):
                wires = [one for one in wires if one.source == rank]
            if dice.random() < shape.spread.lost:
                continue
            name = f"hcom_{what}__{number[-3:]}_{counts[number]}_1"
            start, end = self.clock(rank, points[entry.start]), self.clock(rank, points[entry.end])
            found.append(Called(entry.step, name, what, number, entry.members, start, end, wires))
        return found

    def sums(self, rank: int) -> list[StepSums]:
        """Return a rank's row of each step."""
        blocks, calls = self.blocks(rank), self._all_calls(rank)
        rows = []
        for step in range(self.job.shape.steps):
            begun = self.clock(rank, self.solution.points[self.job.begun[rank][step]])
            rows.append(
                _sums(
                    step,
                    begun,
                    [(one.start_ms, one.end_ms) for one in blocks if one.step == step],
                    [one for one in calls if one[0] == step],
                )
            )
        return rows

    def _all_calls(self, rank: int) -> list[tuple[int, float, float, bool]]:
        """Return step, start, end, and whether it is a message, of all calls that a device traces."""
        points, hidden = self.solution.points, self.job.shape.hidden_join
        return [
            (
                entry.step,
                self.clock(rank, points[entry.start]),
                self.clock(rank, points[entry.end]),
                isinstance(entry.line, Hand),
            )
            for entry in self.by_rank[rank]
            if not isinstance(entry.line, Work) and not (hidden and entry.group == "world")
        ]


def _what(entry: Entry) -> str:
    if isinstance(entry.line, Meet):
        return entry.line.what
    assert isinstance(entry.line, Hand)
    if entry.line.is_batch:
        return "batchSendRecv"
    return "send" if entry.line.gives else "receive"


def _sums(
    step: int, begun: float, blocks: list[tuple[float, float]], calls: list[tuple[int, float, float, bool]]
) -> StepSums:
    """Sweep over all begins and ends once: how long only blocks, only calls, both, or nothing runs."""
    moments = sorted(
        [(at, 0, change) for start, end in blocks for at, change in ((start, 1), (end, -1))]
        + [(at, 1, change) for _, start, end, _ in calls for at, change in ((start, 1), (end, -1))]
    )
    lasting = {(False, False): 0.0, (True, False): 0.0, (False, True): 0.0, (True, True): 0.0}
    running = [0, 0]
    last = moments[0][0]
    for at, which, change in moments:
        lasting[running[0] > 0, running[1] > 0] += at - last
        running[which] += change
        last = at
    bubble = sum(end - start for _, start, end, is_message in calls if is_message)
    span = max((end for _, _, end, _ in calls), default=last) - min(
        (start for _, start, _, _ in calls), default=last
    )
    computing, both = lasting[True, False] + lasting[True, True], lasting[True, True]
    alone = lasting[False, True]
    values = (computing, alone, both, alone + both, lasting[False, False], span - bubble, bubble)
    rest = (alone - bubble, moments[0][0] - begun)
    return StepSums(step, *(one * 1000.0 for one in (*values, *rest)))
