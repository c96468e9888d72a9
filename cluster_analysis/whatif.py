"""What a job would save if one suspect, or several, behaved like their peers.

Local excess is taken from the gaps of the suspect's ranks, slow links from the transfers that use them,
and the steps are replayed. Where no replay is possible, a bound stands in: how far the rank's local
time exceeds that of the next-latest rank it synchronises with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cluster_analysis.detectors.suspects import Suspect
from cluster_analysis.detectors.view import JobView
from cluster_analysis.evidence import FloatArray
from cluster_analysis.profile import GapProfiles
from cluster_analysis.replay import Graph

#: Scenarios replayed at once; more need more memory and are no faster.
_BATCH = 8


@dataclass(frozen=True)
class Saving:
    """What repairing a suspect saves in the mean step, alone and after the ones before it. None: not known."""

    alone_us: float | None
    cumulative_us: float | None
    is_bound: bool


@dataclass(frozen=True)
class Replay:
    """The unmodified replay: mean step in µs, and its error against the measured step."""

    step_us: float
    error_share: float


class WhatIf:
    """Replays scenarios of one job; keeps the unmodified result."""

    def __init__(self, view: JobView) -> None:
        self._view = view
        self._graph = view.graph
        self._profiles = GapProfiles(view.graph) if view.graph is not None else None
        self.replay = _validated(view)

    def savings(self, suspects: Sequence[Suspect], *, refuse_above: float) -> list[Saving]:
        """Return the saving of each suspect alone, and greedily together: the best one first, and so on."""
        graph = self._graph
        if graph is None or self.replay is None or self.replay.error_share > refuse_above:
            return [Saving(_bound(self._view, one), None, True) for one in suspects]
        alone = self._saved(graph, [[one] for one in suspects])
        cumulative = self._greedy(graph, suspects, alone)
        return [Saving(a, c, False) for a, c in zip(alone, cumulative, strict=True)]

    def saving_of(self, suspects: Sequence[Suspect]) -> float | None:
        """Return what repairing all of them at once saves."""
        if self._graph is None or not suspects:
            return None
        return self._saved(self._graph, [list(suspects)])[0]

    def _saved(self, graph: Graph, sets: Sequence[Sequence[Suspect]]) -> list[float]:
        saved: list[float] = []
        base = 0.0 if self.replay is None else self.replay.step_us
        for begin in range(0, len(sets), _BATCH):
            batch = sets[begin : begin + _BATCH]
            gaps = np.stack([self._gaps(graph, one) for one in batch])
            transfers = np.stack([self._transfers(graph, one) for one in batch])
            times = graph.replay(gaps, transfers)
            saved += [base - float(np.mean(row)) for row in times]
        return saved

    def _greedy(self, graph: Graph, suspects: Sequence[Suspect], alone: list[float]) -> list[float]:
        cumulative = [0.0] * len(suspects)
        left = sorted(range(len(suspects)), key=lambda i: (-alone[i], suspects[i].key))
        fixed: list[Suspect] = []
        best_so_far = 0.0
        while left:
            if not fixed:
                gains = [alone[i] for i in left]
            else:
                gains = self._saved(graph, [[*fixed, suspects[i]] for i in left])
            pick = int(np.argmax(gains))
            best_so_far = max(best_so_far, gains[pick])
            chosen = left.pop(pick)
            cumulative[chosen] = best_so_far
            fixed.append(suspects[chosen])
        return cumulative

    def _gaps(self, graph: Graph, suspects: Sequence[Suspect]) -> FloatArray:
        gap = graph.gap_us
        for suspect in suspects:
            if suspect.excess_us is not None:
                gap = gap - self._taken(graph, suspect, gap)
        return np.maximum(gap, 0.0)

    def _taken(self, graph: Graph, suspect: Suspect, gap: FloatArray) -> FloatArray:
        """Where the excess sits: at the places where the suspect's gaps are longer than its peers'.

        Where the calls of peers cannot be laid side by side, in proportion to the gaps; late starts all
        before the first operator.
        """
        excess = self._excess_in_graph(graph, suspect)
        own = excess[graph.rank, graph.step]
        weight = np.where(graph.is_side, 0.0, graph.gap_us)
        if suspect.where == "head":
            weight = graph.begins.astype(np.float64)
        elif self._profiles is not None and suspect.kind in ("slow_rank", "slow_host", "periodic_pause"):
            self._weigh_by_profile(graph, excess, weight, by_step=suspect.cause != "compute")
        cell = graph.rank * graph.n_steps + graph.step
        total = np.bincount(cell, weight, len(graph.ranks) * graph.n_steps)[cell]
        taken = np.where(total > 0, own * weight / np.maximum(total, 1e-9), 0.0)
        return np.minimum(taken, gap)

    def _excess_in_graph(self, graph: Graph, suspect: Suspect) -> FloatArray:
        excess = np.zeros((len(graph.ranks), graph.n_steps))
        known = np.isin(self._view.ranks, graph.ranks)
        rows = np.searchsorted(graph.ranks, self._view.ranks[known])
        if suspect.excess_us is not None:
            excess[rows] = suspect.excess_us[known]
        return excess

    def _weigh_by_profile(
        self, graph: Graph, excess: FloatArray, weight: FloatArray, *, by_step: bool
    ) -> None:
        if self._profiles is None:
            return
        role = np.full(len(graph.ranks), -1)
        known = np.isin(graph.ranks, self._view.ranks)
        role[known] = self._view.role[np.searchsorted(self._view.ranks, graph.ranks[known])]
        for one in np.unique(role[(excess > 0).any(axis=1)]):
            suspects = np.flatnonzero((role == one) & (excess > 0).any(axis=1))
            peers = np.flatnonzero((role == one) & ~(excess > 0).any(axis=1))
            if not len(peers):
                continue
            weights = self._profiles.excess_weights(suspects, peers, by_step=by_step)
            visits = self._profiles.visits_of(suspects)
            if weights is not None and visits is not None:
                weight[visits] = weights

    def _transfers(self, graph: Graph, suspects: Sequence[Suspect]) -> FloatArray:
        transfer = graph.transfer_us
        for suspect in suspects:
            if suspect.link_factor is not None:
                transfer = transfer * suspect.link_factor
        return transfer


def _validated(view: JobView) -> Replay | None:
    if view.graph is None:
        return None
    graph = view.graph
    ends = graph.rank_ends(graph.gap_us[None], graph.transfer_us[None])[0]
    times = ends.max(axis=1)
    # A rank's own step: from its end of the step before, which leads the last rank's, to its end.
    lead = np.vstack([ends[:1], ends[:-1]]) - np.r_[times[0], times[:-1]][:, None]
    own = np.where(np.isfinite(ends), ends - np.where(np.isfinite(lead), lead, 0.0), np.nan)
    with np.errstate(invalid="ignore"):
        error = np.abs(own / graph.measured_us - 1.0)
    if not np.isfinite(error).any():
        return None
    return Replay(float(np.mean(times)), float(np.nanmedian(error)))


def _bound(view: JobView, suspect: Suspect) -> float | None:
    """Upper bound of the saving from step totals: the lead over the next-latest peer, step by step."""
    if suspect.excess_us is None:
        return None
    local = np.nan_to_num(view.computing_us) + np.nan_to_num(view.free_us) + np.nan_to_num(view.preparing_us)
    members = np.isin(view.ranks, suspect.ranks)
    if not members.any() or members.all():
        return None
    role = view.role[members][0]
    peers = ~members & (view.role == role)
    if not peers.any():
        return None
    lead = local[members].max(0) - local[peers].max(0)
    most = suspect.excess_us[members].max(0)
    return float(np.mean(np.clip(lead, 0.0, most)))
