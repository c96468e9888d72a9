"""How long computing goes on during collectives, from the gaps of peers and the step totals.

A rank that computes while a collective runs does not compute less when that collective gets quicker. Where
the gaps before a call agree among peers counted from where the call before it was issued, computing went on
meanwhile; where they agree counted from its end, computing had waited. The totals show what no gap
does: they say how much computing is covered in all. All steps run one program, so that what one of them
hides another one may show.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from msgspec import Struct

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.sorting import distinct
from cluster_analysis.numeric.stats import medians_by
from cluster_analysis.thresholds.common import HALFWAY, MOSTLY, TWICE
from cluster_analysis.thresholds.streams import (
    COVERED_SHARE,
    COVERED_TOLERANCE,
    ENOUGH_PEERS,
    LEAST_COVERED_US,
    MOST_IDLE_SHARE,
    QUEUE_US,
    ROUNDED_US,
    TOLERANCE_US,
)
from cluster_analysis.trace.streams.hidden import Hidden, Weights
from cluster_analysis.trace.streams.joins import scatter


class PeerRows(Struct, frozen=True, dict=True):
    """Calls of ranks that run one program, side by side: times in µs by (rows, places), a row a rank's step.

    Calls that are not recorded were filled in: gaps around them show nothing. `rank` (rows,) tells rows of
    one rank. `gathers` (places,) are calls that fetch weights: what is computed next needs them; `reduces`
    (places,) those that add up what was computed. By row: the communication that computing covers, and what
    is computed and idled.
    """

    rank: IntArray
    start_us: FloatArray
    end_us: FloatArray
    is_recorded: BoolArray
    gathers: BoolArray
    reduces: BoolArray
    covered_us: FloatArray
    computing_us: FloatArray
    idle_us: FloatArray

    @cached_property
    def pace(self) -> FloatArray:
        """How long each row takes for what the middle one does (rows,).

        Where calls have no record, totals count their waiting as idle time: the rank's other rows tell. They
        also tell what it idles all along: a step in which it idles for far longer holds a pause.
        """
        _, rank = distinct(self.rank)
        usual = medians_by(self.idle_us, rank)[rank]
        local = self.computing_us + np.minimum(self.idle_us, TWICE * usual)
        is_whole = np.asarray(self.is_recorded.all(axis=1))
        if not is_whole.any():
            return np.ones(len(local))
        found: FloatArray = local / np.median(local[is_whole])
        for row in np.flatnonzero(~is_whole).tolist():
            same = found[is_whole & (self.rank == self.rank[row])]
            found[row] = np.median(same) if len(same) else 1.0
        return found

    @property
    def until(self) -> int:
        """Up to which place computing goes on beside calls: what waits for the last gradients waits for all.

        The weights that are gathered then are those of the next step.
        """
        sums = np.flatnonzero(self.reduces)
        return min(int(sums[-1]) + 2, len(self.reduces)) if len(sums) else len(self.reduces)

    @property
    def chain_us(self) -> FloatArray:
        """Time that computing covers, with the idle time in it: as much of it as outside of calls (rows,).

        The totals do not know what is idled beside calls.
        """
        alone = np.maximum(self.computing_us - self.covered_us, LEAST_COVERED_US)
        return np.asarray(self.covered_us * (1.0 + np.clip(self.idle_us / alone, 0.0, MOST_IDLE_SHARE)))


class Overlap(Struct, frozen=True):
    """Where computing goes on beside calls. By place (places,) and by (rows, places).

    Before a call that `runs_on` computing did not wait for the call before it; it took `worked_us` since it
    issued that. Before others it waited, having computed for `worked_us` beside what went before; `beyond_us`
    of that came after the call before had ended.
    """

    runs_on: BoolArray
    worked_us: FloatArray
    beyond_us: FloatArray

    def of(self, rows: slice) -> Overlap:
        """Return what holds for some rows."""
        return Overlap(self.runs_on, self.worked_us[rows], self.beyond_us[rows])


def overlap_of(laid: PeerRows) -> Overlap | None:
    """Tell where computing goes on; None where hardly any of it is beside a call."""
    covered = float(np.median(laid.covered_us))
    local = float(np.median(laid.computing_us + laid.idle_us))
    if covered < max(LEAST_COVERED_US, COVERED_SHARE * local):
        return None
    told, left = _shown_by_gaps(laid)
    if float(np.median(left)) < -COVERED_TOLERANCE * covered:
        # More than the totals have room for: gaps hold something else, so that they tell nothing here.
        nothing = np.zeros_like(laid.start_us)
        return Overlap(np.zeros_like(laid.gathers), nothing, nothing)
    return told


def _shown_by_gaps(laid: PeerRows) -> tuple[Overlap, FloatArray]:
    """Follow computing from call to call: what it does, and what is covered beyond what gaps show (rows,)."""
    n_rows, n = laid.start_us.shape
    pace = laid.pace
    worked = np.zeros((n_rows, n))
    runs_on = np.zeros(n, bool)
    hidden = Hidden(pace)
    weights = Weights(laid.gathers)
    held = _held_back(laid) if not weights.are_all else runs_on.copy()
    issued = laid.start_us[:, 0].copy()  # where computing is, on each row's clock
    left = laid.chain_us
    tolerance = COVERED_TOLERANCE * float(np.median(left))
    for place in range(1, laid.until):
        start, before = laid.start_us[:, place], laid.end_us[:, place - 1]
        if place > 1 and laid.gathers[place - 2]:
            issued = np.maximum(issued, laid.end_us[:, place - 2])
        knows = laid.is_recorded[:, place] & laid.is_recorded[:, place - 1]
        shows, room = knows & (start > before + QUEUE_US), np.maximum(before - issued, 0.0)
        has_weights = weights.are_there(place)
        if held[place] or not shows.any():
            behind = np.where(shows, start - before, 0.0)
            _hide(laid, (hidden, weights), held, place, (room, behind, knows))
            runs_on[place] = not held[place]
            issued = start.copy() if held[place] else issued
            continue
        few_show = shows.sum() < HALFWAY * knows.sum()
        usual = _usual_us(laid, (start - issued) / pace, shows)
        now = np.where(shows, start, np.clip(issued + usual * pace, issued, np.maximum(issued, start)))
        by_gaps = np.maximum(now - issued, 0.0)
        # Where few show it they took longer than the others: for those it is at most so much.
        is_told = shows if few_show else np.ones_like(shows)
        covered = np.where(is_told, np.clip(np.minimum(now, before) - issued, 0.0, None), 0.0)
        has_room = float(np.median(left - covered)) >= -tolerance
        if not (has_weights and has_room and _runs_on(laid, start - before, start - issued, shows, knows)):
            # Behind the last gradients nothing is computed before they are there.
            if has_weights and not (held[place - 1] or hidden.is_behind_alike(place)):
                behind = np.where(shows, start - before, 0.0)
                hidden.add_possible(place, room, behind, knows, is_sum=bool(laid.reduces[place]))
                weights.use(place)
            if not few_show:
                weights.use(place + 1)
            issued = start.copy()
            continue
        runs_on[place] = True
        weights.use(place)
        if few_show:
            hidden.add_shown(place, np.where(shows, 0.0, by_gaps), usual)
        worked[:, place] = np.where(is_told, by_gaps, 0.0)
        left = left - covered
        issued = now
    beyond = hidden.fill(worked, left)
    return Overlap(runs_on, worked, beyond), left


def _hide(
    laid: PeerRows,
    found: tuple[Hidden, Weights],
    held: BoolArray,
    place: int,
    rows: tuple[FloatArray, FloatArray, BoolArray],
) -> None:
    """Note what may be computed before a call behind the one before it: issued in one go, as far as is known.

    Weights are computed with, and gradients were computed before they go. Before the first of those that are
    held back all was computed.
    """
    (hidden, weights), (room, behind, knows), is_sum = found, rows, bool(laid.reduces[place])
    if held[place]:
        if not held[place - 1]:
            hidden.add_held_back(place, room, behind, knows, int(np.argmin(np.r_[held[place:], False])))
    elif not weights.are_all and is_sum:
        hidden.add_alike(place, room, knows)
    elif (laid.gathers[place - 1] or is_sum) and weights.are_there(place):
        hidden.add_possible(place, room, np.zeros(len(room)), knows, is_sum=is_sum)
        weights.use(place)


def _held_back(laid: PeerRows) -> BoolArray:
    """Sums of gradients (places,) that were issued when the call before them had ended: behind all computing.

    Queued calls begin just then. Where some did, others that all begin a little later were not queued.
    """
    gap = np.full(laid.start_us.shape, np.inf)
    gap[:, 1:] = laid.start_us[:, 1:] - laid.end_us[:, :-1]
    knows = laid.is_recorded.copy()
    knows[:, 1:] &= laid.is_recorded[:, :-1]

    def mostly(found: BoolArray) -> BoolArray:
        return np.asarray((found & knows).sum(axis=0) >= np.maximum(MOSTLY * knows.sum(axis=0), 1))

    queued = mostly(gap <= ROUNDED_US)
    later = mostly((gap > TOLERANCE_US) & (gap <= QUEUE_US))
    return later & laid.reduces & bool((queued & laid.reduces).any())


def _runs_on(
    laid: PeerRows, from_end: FloatArray, from_issue: FloatArray, shows: BoolArray, knows: BoolArray
) -> bool:
    """Whether gaps agree better counted from the issue of the call before than from its end.

    Counted from its issue there is no gap where that call takes longer. Where hardly a rank shows one, the
    others had issued their calls before that one ended: if the time that it shows had room in theirs.
    """
    pace = laid.pace
    if len(np.unique(laid.rank[shows])) < ENOUGH_PEERS:
        usual, hides = _usual_us(laid, from_issue / pace, shows), knows & ~shows
        fits = usual * pace[hides] <= from_issue[hides] + QUEUE_US
        return bool(fits.mean() > HALFWAY) if len(fits) else False
    behind, since = (from_end / pace)[knows], (from_issue / pace)[knows]
    at_least = np.maximum(np.median((from_issue / pace)[shows]), since - behind)
    return float(np.abs(since - at_least).mean()) < scatter(behind)


def _usual_us(laid: PeerRows, taken: FloatArray, shows: BoolArray) -> float:
    """The usual value, from ranks that show it; the least of a few ranks, as a pause makes it longer."""
    is_enough = len(np.unique(laid.rank[shows])) >= ENOUGH_PEERS
    return float(np.median(taken[shows]) if is_enough else taken[shows].min())
