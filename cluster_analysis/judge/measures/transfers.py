"""Times of operators if several links were healthy at once: one slow link hides another beside it.

An operator lasts as long as its slowest link. With one transport after the other it lasts as long as the
slowest link of each; if ranks send to one peer after the other, as all links of one. Its time shows which.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from cluster_analysis.judge.measures.slow_units import Observations
from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.grouped import medians_of
from cluster_analysis.numeric.sorting import combined, distinct, first_positions, half_octaves, n_distinct
from cluster_analysis.replay.replay import Graph
from cluster_analysis.thresholds.common import TWICE
from cluster_analysis.thresholds.judging import LINK_EFFECT


class Mended(Struct, frozen=True):
    """Units of the network that are made healthy: `left` of the time of each (U,), in `steps` or in all."""

    transfers: Transfers
    left: FloatArray
    steps: tuple[int, ...] | None = None


class Transfers(Struct, frozen=True):
    """The time of each link in collectives of one group, type and step, as a share of these (N,).

    Of several in a step the middle of each link's counts; where only links inside hosts were read, what these
    leave of an operator between hosts. `unit` is the link, `kind` a number for group and type, `cell` for
    these and the step, `part` for these and what carries the data, `path` with its sender, `cell_of_part` the
    cell of each. Of operators (O,): `operator_kind` is -1 where no link shows any of that kind, and
    `operator_unit` the link of a message, -1 for others; `usual_share` is what is left of exchanges in a ring
    if they last as usually between two ranks, infinite of others; `alike` numbers type and size; `usual_us`
    is the middle of a group's or pair's of a type and step, `is_unseen` whether links are missing.
    """

    n_steps: int
    share: FloatArray
    unit: IntArray
    step: IntArray
    kind: IntArray
    cell: IntArray
    path: IntArray
    part: IntArray
    cell_of_part: IntArray
    operator_kind: IntArray
    operator_step: IntArray
    operator_unit: IntArray
    usual_share: FloatArray
    alike: IntArray
    usual_us: FloatArray
    took_us: FloatArray
    is_unseen: BoolArray

    def remaining(self, mended: Sequence[Mended]) -> FloatArray:
        """Return what is left of each operator's transfer (O,) once all of these are healthy.

        Operators whose links no file shows then take as long as similar ones that are mended. In a ring with
        a slow link each exchange waits for that link in turn: mended, it lasts as usual.
        """
        left = np.ones((self.n_steps, len(mended[0].left)))
        for one in mended:
            steps = slice(None) if one.steps is None else list(one.steps)
            left[steps] *= one.left
        now_left = left[self.step, self.unit]
        hit = np.flatnonzero(now_left < 1.0)
        at = np.flatnonzero(np.isin(self.cell, self.cell[hit]))
        share = self.share[at]
        cells = left_of_cells(share, share * now_left[at], self.path[at], self.part[at], self.cell_of_part)
        own = np.ones((max(self.kind.max(initial=0), self.operator_kind.max(initial=0)) + 1, self.n_steps))
        own[self.kind[hit], self.step[hit]] = cells[self.cell[hit]]
        factor = np.where(self.operator_kind < 0, 1.0, own[self.operator_kind, self.operator_step])
        at = np.flatnonzero(self.operator_unit >= 0)
        usual_share = np.where(factor < 1.0, self.usual_share, np.inf)
        factor[at] = left[self.operator_step[at], self.operator_unit[at]]
        mended_us = np.where((factor < 1.0) & ~self.is_unseen, factor * self.usual_us, np.nan)
        as_like = np.fmin(factor, medians_of(mended_us, self.alike)[self.alike] / self.usual_us)
        is_slow = np.asarray((left < 1.0).any(axis=1))[self.operator_step]
        factor = np.minimum(np.where(self.is_unseen & is_slow, as_like, factor), usual_share)
        usual = self.usual_us / self.took_us
        return np.where(TWICE * usual < 1.0, 1.0 - (1.0 - factor) * usual, factor)


def left_of_cells(
    before: FloatArray, after: FloatArray, path: IntArray, part: IntArray, cell_of_part: IntArray
) -> FloatArray:
    """Return the remaining time of operators of each cell (C,). Time that no link explains stays.

    Args:
        before, after: the time of each link, as a share of the operator's, now and once links are healthy.
        path, part: numbers for the cell and what carries the link's data, with and without its sender (N,).
        cell_of_part: the cell of each such number, counted from 0.
    """
    ways = []
    for times in (before, after):
        slowest, longest = np.zeros((2, len(cell_of_part)))
        np.maximum.at(slowest, part, times)
        np.maximum.at(longest, part, np.bincount(path, times)[path])
        most = np.zeros(cell_of_part.max(initial=-1) + 1)
        np.maximum.at(most, cell_of_part, slowest)
        ways.append((most, *(np.bincount(cell_of_part, one) for one in (slowest, longest))))
    took, takes = np.array(ways)
    nearest = np.argmin(np.abs(took - 1.0), axis=0), np.arange(took.shape[1])
    return np.asarray(1.0 - (took - takes)[nearest] / np.maximum(took[nearest], 1.0))


def transfers_of(graph: Graph, teams: Observations, seen: Observations) -> Transfers:
    """Assign links to operators.

    Args:
        teams: these as observations, in their order.
        seen: links; or operators, where none was observed.
    """
    partners = np.r_[graph.rank, -1]
    source, target = partners[graph.sender], partners[graph.receiver]
    is_ring = np.zeros(len(graph.transfer_us), bool)
    is_ring[graph.operator[(source >= 0) & (target >= 0) & (source != target)]] = True
    wanted = teams.group.astype(np.int64) * len(seen.kinds) + teams.kind
    known, kind = distinct(seen.group.astype(np.int64) * len(seen.kinds) + seen.kind)
    place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    is_known = (known[place] == wanted) & (is_ring | ~graph.is_message)
    operator_kind = np.where(is_known, place, -1)
    unit_of = {pair: at for at, pair in enumerate(seen.members)}
    of_team = np.array([unit_of.get(pair, -1) for pair in teams.members])
    operator_unit = np.where(teams.is_group, -1, of_team)[teams.unit]
    at, of_step = np.flatnonzero(operator_kind >= 0), operator_kind * graph.n_steps + teams.step
    took = medians_of(teams.time_us[at], of_step[at], len(known) * graph.n_steps)
    row, took_us = combined(operator_kind, operator_unit)[1], np.maximum(graph.transfer_us, 1.0)
    usual_share = np.where(is_ring, medians_of(took_us, row)[row] / took_us, np.inf)
    share = seen.time_us / took[kind * graph.n_steps + seen.step]
    rows = np.flatnonzero(np.isfinite(share))
    _, row = combined(kind[rows], seen.step[rows], seen.unit[rows])
    first = rows[first_positions(row)]
    unit, step = seen.unit[first], seen.step[first]
    cell = combined(kind[first], step)[1]
    part = combined(cell, np.unique(seen.transport, return_inverse=True)[1][unit])[1]
    share_of, is_link, inner = medians_of(share[rows], row), seen.is_link[unit], np.zeros(len(cell))
    np.maximum.at(inner, cell[is_link], share_of[is_link])
    share_of = np.where(is_link, share_of, np.maximum(share_of - inner[cell], 0.0))
    # A rank that takes part and is not seen to send has no files, or lost its records.
    both = np.array([(one[0], one[-1]) for one in seen.members], np.int32)[unit]
    path, shown = combined(part, both[:, 0])[1], np.zeros(len(took))
    np.maximum.at(shown, kind[rows] * graph.n_steps + seen.step[rows], share[rows])
    n_senders = n_distinct(kind[first] * graph.n_steps + step, both[:, 0], len(took))[of_step]
    n_ends = n_distinct(np.repeat(kind[first], 2), both.ravel(), len(known))[operator_kind]
    lacks_links = (n_senders < n_ends) & (shown[of_step] < 1.0 / (1.0 + LINK_EFFECT))
    size = half_octaves(teams.size_bytes)
    place = combined(teams.kind, size, teams.unit, teams.step)[1]
    return Transfers(
        graph.n_steps, share_of, unit, step, kind[first], cell, path, part,
        cell[first_positions(part)], operator_kind, teams.step, operator_unit, usual_share,
        combined(teams.kind, size)[1], medians_of(teams.time_us, place)[place], took_us,
        (operator_unit < 0) & (lacks_links | (operator_kind < 0)),
    )  # fmt: skip
