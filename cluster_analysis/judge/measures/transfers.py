"""Times of operators if several links were healthy at once: concurrent links hide each other.

An operator lasts as long as its slowest link. Where it uses one transport after the other, inside the hosts
and between them, it lasts as long as the slowest links of each together: so it does if it is nearer to that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from cluster_analysis.judge.measures.slow_units import Observations
from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.numeric.grouped import medians_of
from cluster_analysis.numeric.sorting import combined, distinct, first_positions
from cluster_analysis.replay.replay import Graph
from cluster_analysis.thresholds.common import HALFWAY


class Mended(Struct, frozen=True):
    """Units of the network that are made healthy: `left` of the time of each (U,), in `steps` or in all."""

    transfers: Transfers
    left: FloatArray
    steps: tuple[int, ...] | None = None


class Transfers(Struct, frozen=True):
    """The time of each link in collectives of one group, type and step, as a share of these (N,).

    Of several in a step the middle of each link's counts. `unit` is the link, `kind` a number for group and
    type, `cell` one for these and the step, `part` one for these and what carries the data, and
    `cell_of_part` the cell of each. Of operators (O,): `operator_kind` is -1 where no link shows any of that
    kind, and `operator_unit` the link of a message, -1 for others; `usual_share` is what is left of exchanges
    in a ring if they last as usually between the two ranks, infinite of others.
    """

    n_steps: int
    share: FloatArray
    unit: IntArray
    step: IntArray
    kind: IntArray
    cell: IntArray
    part: IntArray
    cell_of_part: IntArray
    operator_kind: IntArray
    operator_step: IntArray
    operator_unit: IntArray
    usual_share: FloatArray

    def remaining(self, mended: Sequence[Mended]) -> FloatArray:
        """Return what is left of each operator's transfer (O,) once all of these are healthy.

        In a step without an entry of a slow link it is as much as in the middle of the others. An exchange in
        a ring that has a slow link waits for that one in turn: mended, it lasts no longer than usually.
        """
        left = np.ones((len(mended[0].left), self.n_steps))
        for one in mended:
            steps = slice(None) if one.steps is None else list(one.steps)
            left[:, steps] *= one.left[:, None]
        now_left = left[self.unit, self.step]
        hit = np.flatnonzero(now_left < 1.0)
        at = np.flatnonzero(np.isin(self.cell, self.cell[hit]))
        share = self.share[at]
        cells = left_of_cells(share, share * now_left[at], self.part[at], self.cell_of_part)
        n_kinds = int(max(self.kind.max(initial=-1), self.operator_kind.max(initial=-1))) + 1
        # A kind without measured link times is unknown: it stays as it is.
        own, is_hit = np.full((n_kinds, self.n_steps), np.nan), np.zeros((n_kinds, self.n_steps), bool)
        own[self.kind[hit], self.step[hit]] = cells[self.cell[hit]]
        np.logical_or.at(is_hit, self.kind, left[self.unit] < 1.0)
        usual = medians_of(own.ravel(), np.repeat(np.arange(n_kinds), self.n_steps))[:, None]
        own = np.where(is_hit, np.where(np.isfinite(own), own, np.nan_to_num(usual, nan=1.0)), 1.0)
        factor = np.ones(len(self.operator_kind))
        at = np.flatnonzero(self.operator_kind >= 0)
        factor[at] = own[self.operator_kind[at], self.operator_step[at]]
        at = np.flatnonzero(self.operator_unit >= 0)
        usual_share = np.where(factor < 1.0, self.usual_share, np.inf)
        factor[at] = left[self.operator_unit[at], self.operator_step[at]]
        return np.minimum(factor, usual_share)


def left_of_cells(
    before: FloatArray, after: FloatArray, part: IntArray, cell_of_part: IntArray
) -> FloatArray:
    """Return the remaining time of operators of each cell (C,). Time that no link explains stays.

    Args:
        before: the time of each link, as a share of the operator's.
        after: the same once links are healthy.
        part: a number for the cell and what carries the link's data (N,).
        cell_of_part: the cell of each such number, counted from 0.
    """
    sums, most = [], []
    for times in (before, after):
        slowest = np.zeros(len(cell_of_part))
        np.maximum.at(slowest, part, times)
        sums.append(np.bincount(cell_of_part, slowest))
        highest = np.zeros(len(sums[0]))
        np.maximum.at(highest, cell_of_part, slowest)
        most.append(highest)
    in_turn = HALFWAY * (sums[0] + most[0]) <= 1.0
    took, takes = np.where(in_turn, sums, most)
    return np.asarray(1.0 - (took - takes) / np.maximum(took, 1.0))


def transfers_of(graph: Graph, teams: Observations, seen: Observations) -> Transfers:
    """Assign links to operators.

    Args:
        teams: these as observations, in their order.
        seen: links; or operators, where none was observed.
    """
    group_of, kind_of = ({name: at for at, name in enumerate(one)} for one in (seen.groups, seen.kinds))
    of_groups = np.array([group_of.get(name, -1) for name in teams.groups], np.int64)[teams.group]
    of_kinds = np.array([kind_of.get(name, -1) for name in teams.kinds], np.int64)[teams.kind]
    pairs = seen.group.astype(np.int64) * len(seen.kinds) + seen.kind
    partners = np.r_[graph.rank, -1]
    source, target = partners[graph.sender], partners[graph.receiver]
    is_ring = np.zeros(len(graph.transfer_us), bool)
    is_ring[graph.operator[(source >= 0) & (target >= 0) & (source != target)]] = True
    wanted = of_groups * len(seen.kinds) + of_kinds
    known, kind = distinct(pairs)
    place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    is_known = (known[place] == wanted) & (of_groups >= 0) & (of_kinds >= 0) & (is_ring | ~graph.is_message)
    operator_kind = np.where(is_known, place, -1)
    unit_of = {pair: at for at, pair in enumerate(seen.members)}
    ends = zip(teams.members, teams.is_group.tolist(), strict=True)
    of_team = np.array([-1 if is_group else unit_of.get(pair, -1) for pair, is_group in ends])
    operator_unit = of_team[teams.unit]
    at = np.flatnonzero(operator_kind >= 0)
    took = np.full(len(known) * graph.n_steps, np.nan)
    medians = medians_of(teams.time_us[at], operator_kind[at] * graph.n_steps + teams.step[at])
    took[: len(medians)] = medians
    row, took_us = combined(operator_kind, operator_unit)[1], np.maximum(graph.transfer_us, 1.0)
    usual_share = np.where(is_ring, medians_of(took_us, row)[row] / took_us, np.inf)
    share = seen.time_us / took[kind * graph.n_steps + seen.step]
    rows = np.flatnonzero(np.isfinite(share))
    carrier = np.unique(seen.transport, return_inverse=True)[1]
    _, row = combined(kind[rows], seen.step[rows], seen.unit[rows])
    first = rows[first_positions(row)]
    unit, step = seen.unit[first], seen.step[first]
    cell = combined(kind[first], step)[1]
    part = combined(cell, carrier[unit])[1]
    return Transfers(
        graph.n_steps, medians_of(share[rows], row), unit, step, kind[first], cell, part,
        cell[first_positions(part)], operator_kind, teams.step, operator_unit, usual_share,
    )  # fmt: skip
