"""The job as the detectors see it: dense (rank, step) arrays, and who is whose peer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property

import numpy as np
from msgspec import Struct

from cluster_analysis.judge.computing import dense_us, exchanges_of, unnamed_us, waited_inside_us
from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray, numbers
from cluster_analysis.numeric.sorting import combined, distinct, rows_at
from cluster_analysis.numeric.stats import median
from cluster_analysis.replay.graph import job_graph
from cluster_analysis.replay.idle_time import idle_during_calls_us, likely_idle_us, whole_idle_us
from cluster_analysis.replay.job_evidence import JobEvidence
from cluster_analysis.replay.replay import Graph
from cluster_analysis.replay.role_gaps import RoleGaps
from cluster_analysis.tables.kernels import communicating
from cluster_analysis.tables.model import Topology
from cluster_analysis.thresholds.common import HALFWAY
from cluster_run.ids import HostId, Rank, Step


class JobView(Struct, frozen=True, dict=True):
    """Times in µs, (R, S), NaN where not measured. Codes are (R,), -1 where unknown.

    `role`: ranks that do the same work (peers). `replica`: ranks that work on the same data.
    `idled_us` is `free_us` and the idle time during communication, where that is known.
    `sample`: TP/CP peers, of one replica and stage, share even the micro-batch; each has its own if unknown.
    `dense_us` is computing outside of experts, `waited_inside_us` waiting inside fused kernels, no
    computing; None without any. `unnamed_us` (R,) is what these took beyond their quickest calls.
    """

    ranks: IntArray
    steps: tuple[Step, ...]
    computing_us: FloatArray
    free_us: FloatArray
    idled_us: FloatArray
    preparing_us: FloatArray
    step_us: FloatArray
    communication_us: FloatArray
    role: IntArray
    stage: IntArray
    host: IntArray
    hosts: tuple[HostId, ...]
    replica: IntArray
    sample: IntArray
    has_experts: bool
    graph: Graph | None
    gaps: RoleGaps | None
    dense_us: FloatArray | None
    waited_inside_us: FloatArray | None
    unnamed_us: FloatArray
    topology: Topology

    @property
    def expected_ranks(self) -> int:
        """Ranks that the job has, as far as topology, groups and degrees of parallelism tell."""
        sizes = self.topology.parallel
        named = set(self.topology.ranks).union(*(group.ranks for group in self.topology.groups.values()))
        product = sizes.tp * sizes.pp * sizes.dp * max(sizes.cp, 1)
        return max(len(named), product, len(self.ranks))

    @property
    def knows_work(self) -> bool:
        """Whether slowness can be separated from the load of experts: computing outside of them is known."""
        return not self.has_experts or self.dense_us is not None

    @cached_property
    def mean_step_us(self) -> float:
        """Mean over steps of the time the typical rank took; NaN where no step has totals."""
        by_step = median(self.step_us, 0)
        known = by_step[np.isfinite(by_step)]
        return float(known.mean()) if len(known) else float("nan")

    @property
    def inside_share(self) -> float:
        """Share of the step that ranks wait inside kernels, by others' totals or their own quickest calls."""
        by_totals_us = np.zeros(1) if self.waited_inside_us is None else np.nan_to_num(self.waited_inside_us)
        waited_us = max(float(by_totals_us.mean()), float(np.median(self.unnamed_us)) / len(self.steps))
        return waited_us / max(self.mean_step_us, 1.0)

    @cached_property
    def shows_waiting(self) -> bool:
        """Whether most calls were matched over ranks: else no replay shows who waits for whom."""
        graph, took_us = self.graph, np.zeros(1) if self.graph is None else self.graph.transfer_us
        return graph is not None and bool(took_us[graph.is_unmatched].sum() <= HALFWAY * took_us.sum())

    @cached_property
    def is_of_experts(self) -> BoolArray:
        """Which gaps (V,) follow the load of experts; the others follow samples. None without evidence."""
        assert self.graph is not None
        return exchanges_of(self.graph, _expert_groups(self.topology))[1]

    @cached_property
    def together(self) -> IntArray:
        """Ranks (R,) that wait for each other inside kernels: experts' groups, else samples, else roles."""
        has_peers = len(np.unique(self.sample)) < len(self.ranks)
        code = distinct(self.sample if has_peers else self.role)[1]
        for number, name in enumerate(_expert_groups(self.topology), len(self.ranks)):
            code[np.isin(self.ranks, self.topology.groups[name].ranks)] = number
        return distinct(code)[1]

    @cached_property
    def seat(self) -> IntArray:
        """Ranks (R,) of one role with one place in their tensor-parallel groups; -1 where unknown."""
        place = _codes(self.ranks, self.topology.tp_index)
        return np.where(place >= 0, combined(self.role, place)[1], -1)

    @cached_property
    def expert(self) -> IntArray:
        """Ranks (R,) with one place in their experts' groups, which hold the same experts; -1 for others."""
        groups = (self.topology.groups[name].ranks for name in _expert_groups(self.topology))
        return _codes(self.ranks, {rank: place for group in groups for place, rank in enumerate(group)})

    @property
    def local_us(self) -> FloatArray:
        """Computing and idle time of each rank (R, S), also before its first operator; no waiting."""
        return self.computing_us + self.free_us + np.nan_to_num(self.preparing_us)

    @property
    def uncovered_us(self) -> FloatArray:
        """Communication that no computing covers (R, S), waiting within it."""
        return self.step_us - self.local_us

    @property
    def idle_us(self) -> FloatArray:
        """Idle time of each rank (R, S), wherever the first operator of its step falls."""
        return self.idled_us + np.nan_to_num(self.preparing_us)

    @cached_property
    def likely_idle_us(self) -> FloatArray:
        """All idle time, with the likely part during calls of a second stream, which totals do not hold."""
        idle_us = self.free_us
        if self.graph is not None:
            idle_us = likely_idle_us(self.graph, self.ranks, self._busy_us, idle_us, self.role)
        return idle_us + np.nan_to_num(self.preparing_us)

    @cached_property
    def paused_us(self) -> FloatArray:
        """Idle time of each rank beyond its median step (R, S), also during calls of a second stream."""
        longer_us = self.idle_us - median(self.idle_us, 1)[:, None]
        if self.graph is None:
            return longer_us
        during_us = idle_during_calls_us(self.graph, self.ranks, self._busy_us, self.idled_us)
        return longer_us + np.maximum(np.nan_to_num(during_us - median(during_us, 1)[:, None]), 0.0)

    @property
    def _busy_us(self) -> FloatArray:
        """Time of computing, preparing and waiting inside kernels (R, S): all that is not idle."""
        inside_us = 0.0 if self.waited_inside_us is None else self.waited_inside_us
        return self.computing_us + np.nan_to_num(self.preparing_us) + inside_us

    def rank_ids(self, positions: IntArray | list[int]) -> tuple[Rank, ...]:
        """Global ranks at positions."""
        return tuple(Rank(int(self.ranks[position])) for position in positions)

    def hosts_of_ranks(self, ranks: Iterable[int]) -> tuple[HostId, ...]:
        """Hosts of global ranks, in their order, also of ranks without files."""
        hosts = self.topology.hosts
        return tuple(dict.fromkeys(hosts[Rank(rank)] for rank in ranks if Rank(rank) in hosts))

    def position_of(self, rank: int) -> int:
        """Position of a global rank that was read."""
        return int(np.searchsorted(self.ranks, rank))

    def peers_of(self, position: int) -> IntArray:
        """Positions of the other ranks that do the same work."""
        same = self.role == self.role[position]
        same[position] = False
        return np.flatnonzero(same)

    def in_one_gap(self, position: int, active: BoolArray) -> bool:
        """Whether half of a rank's loss in active steps (S,) lies in one gap each, as far as is known."""
        if self.gaps is None:
            return True
        lost = [  # 0 where calls are lost
            np.nan_to_num(own[:, 0] - median(others, 1))[active[steps]]
            for steps, own, others, _ in self.gaps.beside_peers(np.array([position]), self.peers_of(position))
        ]
        return bool(sum(one.max(axis=1).sum() - HALFWAY * one.sum() for one in lost) >= 0)

    def role_name(self, role: int) -> tuple[str | int, ...]:
        """Name of a role: `("stage", 3)`, `("group", 1)` of alike ranks, or `("job",)`."""
        if (self.stage >= 0).any():
            return ("stage", role)
        return ("job",) if len(np.unique(self.role)) < 2 else ("group", role)


def build_view(evidence: JobEvidence, topology: Topology) -> JobView:
    """Turn tables into arrays and the topology into codes."""
    table = evidence.step_table
    ranks, row = np.unique(table["rank"].to_numpy(), return_inverse=True)
    steps, column = np.unique(table["step"].to_numpy(), return_inverse=True)

    def by_rank(name: str) -> FloatArray:
        values = np.full((len(ranks), len(steps)), np.nan)
        values[row, column] = numbers(table[name])
        return values

    computing, free, preparing = (by_rank(f"{name}_us") for name in ("computing", "free", "preparing"))
    preparing[preparing < 0] = np.nan
    parts = computing + free + by_rank("communication_not_overlapped_us")
    span = by_rank("stage_us") + np.nan_to_num(by_rank("bubble_us"))  # known of some ranks only
    graph = job_graph(evidence)
    stage, replica = _codes(ranks, topology.stages), _codes(ranks, topology.dp_index)
    role = stage if (stage >= 0).any() else _signature_roles(ranks, graph)
    hosts = topology.all_hosts
    position = {name: number for number, name in enumerate(hosts)}
    experts = _expert_groups(topology)
    fused = communicating(evidence.operators, ranks)
    waited, busy = waited_inside_us(fused, ranks, role, computing), computing
    computing = busy if waited is None else busy - waited
    idled, dense, head = free, None, np.nan_to_num(preparing)
    if graph is not None:
        idled = whole_idle_us(graph, ranks, busy + head, free, role)
        if experts:
            dense = dense_us(
                graph, experts, ranks, role, computing_us=computing, free_us=free, preparing_us=preparing
            )
    return JobView(
        ranks=ranks.astype(np.int32),
        steps=tuple(Step(int(step)) for step in steps),
        computing_us=computing,
        free_us=free,
        idled_us=idled,
        preparing_us=preparing,
        step_us=np.where(np.isfinite(parts), parts, span) + head,
        communication_us=by_rank("communication_us"),
        role=role,
        stage=stage,
        host=_codes(ranks, {rank: position[host] for rank, host in topology.hosts.items()}),
        hosts=hosts,
        replica=replica,
        sample=_samples(ranks, topology, role, replica),
        has_experts=bool(experts),
        graph=graph,
        gaps=None if graph is None else RoleGaps(ranks, graph),
        dense_us=dense,
        waited_inside_us=waited,
        unnamed_us=unnamed_us(fused, ranks),
        topology=topology,
    )


def _expert_groups(topology: Topology) -> list[str]:
    return [name for name, group in topology.groups.items() if group.role == "ep" and len(group.ranks) > 1]


def _codes(ranks: IntArray, values: Mapping[Rank, int]) -> IntArray:
    return np.array([values.get(Rank(int(rank)), -1) for rank in ranks], np.int32)


def _signature_roles(ranks: IntArray, graph: Graph | None) -> IntArray:
    """Without stages, ranks that issue the same number of each kind of operator do the same work."""
    if graph is None:
        return np.zeros(len(ranks), np.int32)
    counts = np.zeros((len(graph.ranks), len(graph.types)), np.int64)
    np.add.at(counts, (graph.rank, graph.operator_type[graph.operator]), 1)
    per_step = np.rint(counts / graph.n_steps / 2).astype(np.int64)  # one lost record is no other role
    _, role = np.unique(per_step, axis=0, return_inverse=True)
    return rows_at(ranks, graph.ranks, np.ravel(role), -1)


def _samples(ranks: IntArray, topology: Topology, role: IntArray, replica: IntArray) -> IntArray:
    """Ranks with the same micro-batches: same stage and replica, or else the same tensor-parallel group."""
    if (replica >= 0).all() and (role >= 0).all():
        return combined(role, replica)[1]
    code = np.arange(len(ranks), dtype=np.int32)
    for number, group in enumerate(topology.groups.values(), len(ranks)):
        if group.role == "tp":
            code[np.isin(ranks, group.ranks)] = number
    return code
