"""How long every edge of the graph is: drawn once for a job, then multiplied by what is wrong.

A draw belongs to its edge, whatever is wrong: the same job without a fault has the same draws.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from benchmarks.models.paths.graph import Edge, Paths
from benchmarks.models.paths.scripts import Hand, Meet, Work
from benchmarks.models.paths.shape import Shape, Trouble

#: GB/s and ms of one message: RoCE of 200 GE and HCCS, as measured in real captures.
_NEAR_GBPS, _FAR_GBPS, _NEAR_MS, _FAR_MS = 19.1, 24.3, 0.002, 0.0095
#: A message that has come already still takes this: receives of the real trace take 0.4 ms at least.
_COPY_MS = 0.4
#: Share of a block's time by type of kernel; what is slow by "matrix" is the first.
KERNELS: dict[str, tuple[tuple[str, float, int], ...]] = {
    "forward": (
        ("MatMul", 0.62, 6),
        ("FlashAttentionScore", 0.22, 1),
        ("Add", 0.09, 4),
        ("RmsNorm", 0.07, 2),
    ),
    "backward": (("MatMul", 0.60, 12), ("FlashAttentionScoreGrad", 0.26, 1), ("Mul", 0.14, 7)),
    "experts": (("GroupedMatmul", 0.9, 3), ("Mul", 0.1, 2)),
    "update": (("AdamWeightDecay", 0.9, 40), ("Mul", 0.1, 40)),
}
_MATRIX = ("MatMul", "GroupedMatmul")


class Sent(NamedTuple):
    """What one directed wire carried for one call: MB and ms."""

    source: int
    target: int
    is_near: bool
    size_mb: float
    time_ms: float


@dataclass(frozen=True)
class Repaired:
    """What is made like its peers for one solution."""

    chips: frozenset[int] = frozenset()
    wires: frozenset[tuple[int, int]] = frozenset()
    samples: bool = False
    experts: bool = False
    stages: bool = False


class Durations:
    """All draws of a job."""

    def __init__(self, shape: Shape, seed: int, paths: Paths) -> None:
        self.shape, self.seed, self.paths = shape, seed, paths
        spread = shape.spread
        dice = random.Random(f"paths/{seed}/chips")
        self.chips = [dice.gauss(1.0, spread.chip) for _ in range(shape.n_ranks)]
        self.usual_chip = sorted(self.chips)[len(self.chips) // 2]
        n_racks = (shape.n_hosts + 1) // 2
        self.racks = [[dice.gauss(1.0, spread.rack) for _ in range(n_racks)] for _ in range(shape.steps)]
        self.loads = [dice.gauss(0.0, spread.experts) for _ in range(shape.n_ranks)]
        self._wires: dict[tuple[int, int], float] = {}
        pool = residuals()
        at = [dice.randrange(len(pool)) for _ in range(shape.n_ranks)]
        self.draws: list[float] = []
        dice = random.Random(f"paths/{seed}/edges")
        for edge in paths.edges:
            if edge.what == "work":
                # One after the other, so that neighbours scatter together as in the trace.
                self.draws.append(pool[at[edge.rank] % len(pool)] * spread.blocks)
                at[edge.rank] += 1
            elif edge.what in ("gap", "feed"):
                shape_of_gamma = 1.0 / spread.gap**2
                self.draws.append(dice.gammavariate(shape_of_gamma, 1.0 / shape_of_gamma))
            elif edge.what == "exit":
                self.draws.append(dice.expovariate(1.0) * spread.exit_us / 1000.0)
            else:
                hiccup = 1.0 / 0.6 if dice.random() < spread.hiccups else 1.0
                self.draws.append(max(0.8, dice.gauss(1.0, spread.wire_each)) * hiccup)

    def solved(self, troubles: Sequence[Trouble] = (), repaired: Repaired | None = None) -> Solution:
        """Solve the graph with what is wrong."""
        return Solution(self, troubles, repaired or Repaired())

    def wire(self, source: int, target: int) -> float:
        """Return a wire's own factor."""
        known = self._wires.get((source, target))
        if known is None:
            dice = random.Random(f"paths/{self.seed}/wire/{source}/{target}")
            known = self._wires[source, target] = dice.gauss(1.0, self.shape.spread.wire)
        return known

    def sample(self, rank: int, step: int, microbatch: int) -> float:
        """Return how long a replica's sample is against the mean: even, with one in twenty far longer."""
        sigma = self.shape.spread.samples
        if not sigma:
            return 1.0
        replica = self.shape.seat(rank)[1]
        factor = 1.0
        for key in (f"{step}", f"{step}/{microbatch}"):
            uniform = random.Random(f"paths/{self.seed}/sample/{replica}/{key}").random()
            factor *= 1.0 + sigma * ((uniform - 0.5) * 2.0 + (uniform > 0.95) * 2.0)
        return max(0.3, factor)


class Solution:
    """The times of all points, and what wires carried, under some faults."""

    def __init__(self, of: Durations, troubles: Sequence[Trouble], repaired: Repaired) -> None:
        self.of, self.shape = of, of.shape
        self.troubles, self.repaired = troubles, repaired
        self._sent: dict[int, list[Sent]] = {}
        self.lengths = [self._length(number, edge) for number, edge in enumerate(of.paths.edges)]
        self.points = of.paths.times(self.lengths.__getitem__)

    @property
    def step_ms(self) -> float:
        """Return the mean time of a step."""
        return max(self.points[entry.end] for entry in self.of.paths.entries) / self.shape.steps

    def _at_work(self, what: str, rank: int, step: int) -> list[tuple[Trouble, float]]:
        if rank in self.repaired.chips:
            return []
        return [
            (one, one.at(step, self.shape.steps))
            for one in self.troubles
            if one.what == what and rank in one.ranks
        ]

    def _length(self, number: int, edge: Edge) -> float:
        draw = self.of.draws[number]
        if edge.what == "work":
            return self._work(edge, draw)
        if edge.what == "gap":
            assert edge.entry is not None
            usual = self.shape.gap_ms if isinstance(edge.entry.line, Work) else 0.02
            slow = 1.0
            for trouble, share in self._at_work("launch", edge.rank, edge.step):
                slow *= 1.0 + (trouble.times - 1.0) * share
            return usual * draw * slow
        if edge.what == "feed":
            late = sum(one.plus_ms * share for one, share in self._at_work("feed", edge.rank, edge.step))
            return self.shape.input_ms * draw + late
        if edge.what == "exit":
            return draw
        if edge.what == "copy":
            return _COPY_MS
        sent = self._sent[number] = self._carry(edge, draw)
        return max((one.time_ms for one in sent), default=0.0) + self._stall(edge)

    def _work(self, edge: Edge, draw: float) -> float:
        assert edge.entry is not None
        line = edge.entry.line
        assert isinstance(line, Work)
        chip = self.of.usual_chip if edge.rank in self.repaired.chips else self.of.chips[edge.rank]
        length = line.typical_ms * (1.0 + draw) * chip
        length *= self.of.racks[edge.step][edge.rank // self.shape.per_host // 2]
        if line.kind == "experts" and not self.repaired.experts:
            length *= max(0.3, 1.0 + self.of.loads[edge.rank])
        elif line.kind in ("forward", "backward") and not self.repaired.samples:
            length *= self.of.sample(edge.rank, edge.step, line.microbatch)
        last = self.shape.spread.last_stage
        mean = (self.shape.stages - 1 + last) / self.shape.stages
        length *= mean if self.repaired.stages and line.kind != "update" else line.weight
        for trouble, share in self._at_work("chip", edge.rank, edge.step):
            length *= 1.0 + (trouble.times - 1.0) * share
        return length * self.matrix_factor(edge.rank, edge.step, line.kind)

    def matrix_factor(self, rank: int, step: int, kind: str) -> float:
        """Return how much longer a block takes for its slow matrix kernels."""
        part = sum(one for name, one, _ in KERNELS[kind] if name in _MATRIX)
        factor = 1.0
        for trouble, share in self._at_work("matrix", rank, step):
            factor *= 1.0 + part * (trouble.times - 1.0) * share
        return factor

    def kernels(self, rank: int, step: int, kind: str) -> list[tuple[str, float, int]]:
        """Return the share of a block by type of kernel, as what is wrong shifts it, and their count."""
        slow = 1.0
        for trouble, share in self._at_work("matrix", rank, step):
            slow *= 1.0 + (trouble.times - 1.0) * share
        parts = [(name, one * (slow if name in _MATRIX else 1.0), n) for name, one, n in KERNELS[kind]]
        whole = sum(one for _, one, _ in parts)
        return [(name, one / whole, n) for name, one, n in parts]

    # -- wires ----------------------------------------------------------------------------------------
    def sent(self, edge: int) -> list[Sent]:
        """Return what every wire of a call or message carried."""
        return self._sent[edge]

    def _carry(self, edge: Edge, draw: float) -> list[Sent]:
        assert edge.entry is not None
        line = edge.entry.line
        if isinstance(line, Hand):
            return [self._wire(edge.rank, edge.other, self.shape.message_mb, edge.step, draw)]
        assert isinstance(line, Meet)
        ranks = edge.entry.members
        n = len(ranks)
        if n < 2:
            return []
        size = line.size_mb * (n - 1) / n * (2.0 if line.what == "allReduce" else 1.0)
        if len({rank // self.shape.per_host for rank in ranks}) == 1 or line.what == "alltoAll":
            pairs = [(a, b) for a in ranks for b in ranks if a != b]
            size /= n - 1
        else:
            pairs = [(ranks[number - 1], rank) for number, rank in enumerate(ranks)]
        return [self._wire(a, b, size, edge.step, draw) for a, b in pairs]

    def _wire(self, source: int, target: int, size_mb: float, step: int, draw: float) -> Sent:
        near = source // self.shape.per_host == target // self.shape.per_host
        slow = 1.0 if (source, target) in self.repaired.wires else self.of.wire(source, target) * draw
        for trouble in self.troubles if (source, target) not in self.repaired.wires else ():
            if trouble.what == "wire" and self._is_hit(trouble, source, target, near):
                slow *= 1.0 + (trouble.times - 1.0) * trouble.at(step, self.shape.steps)
        gbps, latency = (_NEAR_GBPS, _NEAR_MS) if near else (_FAR_GBPS, _FAR_MS)
        return Sent(source, target, near, size_mb, latency + size_mb / gbps * slow)

    def _is_hit(self, trouble: Trouble, source: int, target: int, near: bool) -> bool:
        if trouble.wires:
            return (source, target) in trouble.wires
        if near:
            return False
        if trouble.ranks:
            return source in trouble.ranks or target in trouble.ranks
        ends = {source // self.shape.per_host, target // self.shape.per_host}
        return set(trouble.hosts) <= ends

    def _stall(self, edge: Edge) -> float:
        """Return what an event adds to the first call of a group in a step."""
        entry = edge.entry
        assert entry is not None
        return sum(
            one.plus_ms * one.at(edge.step, self.shape.steps)
            for one in self.troubles
            if one.what == "stall" and edge.what == "meet" and one.steps
            and f"{entry.group}{entry.members}" in one.groups and self._is_first(edge)
        )  # fmt: skip

    def _is_first(self, edge: Edge) -> bool:
        mine = edge.entry
        assert mine is not None
        return mine is next(
            one
            for one in self.of.paths.entries
            if (one.rank, one.step, one.group) == (mine.rank, mine.step, mine.group)
        )


TRACE = Path(__file__).parents[4] / "shared" / "data" / "bytedance-ST" / "mixed" / "cluster_profiler"
_PUBLISHED_SCATTER = 0.018
#: The forwards of the trace's first stages take 64 to 75 ms; what lies outside was no forward.
_FORWARD_MS = (60.0, 80.0)


@cache
def residuals() -> tuple[float, ...]:
    """Return relative deviations of single blocks from their mean, without the tails beyond 10 %."""
    found: list[float] = []
    for path in sorted(TRACE.rglob("communication.json")):
        lengths = _gaps_ms(json.loads(path.read_bytes()))
        if lengths:
            mean = sum(lengths) / len(lengths)
            found += [one / mean - 1.0 for one in lengths if abs(one / mean - 1.0) < 0.1]
    if len(found) > 100:
        return tuple(found)
    dice = random.Random("published")
    return tuple(
        dice.choice((-1, 1)) * dice.expovariate(1.0) * _PUBLISHED_SCATTER / 2**0.5 for _ in range(2000)
    )


def _gaps_ms(steps: dict[str, dict[str, dict[str, dict[str, dict[str, float]]]]]) -> list[float]:
    """Return the times between calls of one rank that are as long as a forward."""
    found = []
    for levels in steps.values():
        times = [entry["Communication Time Info"] for calls in levels.values() for entry in calls.values()]
        spans = sorted((one["Start Timestamp(us)"], one["Elapse Time(ms)"]) for one in times)
        for (start, elapse), (following, _) in pairwise(spans):
            gap = (following - start) / 1000.0 - elapse
            if _FORWARD_MS[0] < gap < _FORWARD_MS[1]:
                found.append(gap)
    return found
