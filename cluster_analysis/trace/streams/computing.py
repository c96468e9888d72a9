"""How far computing goes on beside collectives, told by the gaps of peers and by the step totals.

A rank that computes while a collective runs does not compute less when that collective gets quicker. Where
the gaps before a call agree among peers counted from where the call before it was issued, computing went on
beside it; where they agree counted from its end, computing had waited. The totals say how much computing is
covered in all: what no gap shows of it came before computing waited.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.thresholds.common import HALFWAY
from cluster_analysis.thresholds.streams import (
    COVERED_SHARE,
    COVERED_TOLERANCE,
    ENOUGH_PEERS,
    LEAST_COVERED_US,
    QUEUE_US,
)
from cluster_analysis.trace.streams.joins import scatter


@dataclass(frozen=True)
class Laid:
    """Calls of ranks that run one program, side by side: times in µs by (ranks, places).

    `gathers` (places,) are calls that fetch weights: what is computed next needs them. `covered_us` and
    `local_us` (ranks,) are the communication that computing covers, and what each rank computes and idles.
    """

    at: IntArray
    start_us: FloatArray
    end_us: FloatArray
    gathers: BoolArray
    covered_us: FloatArray
    local_us: FloatArray

    @property
    def pace(self) -> FloatArray:
        """How long each rank takes for what the middle one does (ranks,)."""
        return np.asarray(self.local_us / np.median(self.local_us))


@dataclass(frozen=True)
class Beside:
    """Where computing goes on beside calls. By place (places,) and by (ranks, places).

    Before a call that `runs_on` computing did not wait for the call before it; it took `worked_us` since it
    issued that. Before others it waited, having computed for `worked_us` beside what went before.
    """

    runs_on: BoolArray
    worked_us: FloatArray


def beside(laid: Laid) -> Beside | None:
    """Tell where computing goes on; None where hardly any of it is beside a call."""
    covered = float(np.median(laid.covered_us))
    if covered < max(LEAST_COVERED_US, COVERED_SHARE * float(np.median(laid.local_us))):
        return None
    n = laid.start_us.shape[1]
    told, left = _told(laid)
    if float(np.median(left)) < -COVERED_TOLERANCE * covered:
        # More than the totals have room for: gaps hold something else, so that they tell nothing here.
        return Beside(np.zeros(n, bool), np.zeros(laid.start_us.shape))
    return told


def _told(laid: Laid) -> tuple[Beside, FloatArray]:
    """Follow computing from call to call: what it does, and what is covered beyond that (ranks,).

    What is covered and no gap shows lies before computing waited.
    """
    n_ranks, n = laid.start_us.shape
    worked, room = np.zeros((n_ranks, n)), np.zeros((n_ranks, n))
    runs_on = np.zeros(n, bool)
    issued = laid.start_us[:, 0].copy()  # where computing is, on each rank's clock
    left = laid.covered_us.copy()
    for place in range(1, n):
        start, before = laid.start_us[:, place], laid.end_us[:, place - 1]
        if place > 1 and laid.gathers[place - 2]:
            issued = np.maximum(issued, laid.end_us[:, place - 2])
        shows = start > before + QUEUE_US
        if not shows.any():  # issued in one go, as far as anybody can tell
            runs_on[place] = True
            if laid.gathers[place - 1]:
                room[:, place] = np.maximum(before - issued, 0.0)
            continue
        seen = _runs_on(start - before, start - issued, shows, laid.pace)
        if not seen:
            room[:, place] = np.maximum(before - issued, 0.0)
            issued = start.copy()
            continue
        runs_on[place] = True
        usual = _usual_us((start - issued)[shows] / laid.pace[shows]) * laid.pace
        now = np.where(shows, start, np.clip(issued + usual, issued, np.maximum(issued, start)))
        worked[:, place] = np.maximum(now - issued, 0.0)
        left -= np.clip(np.minimum(now, before) - issued, 0.0, None)
        issued = now
    least = room.min(axis=0)
    if float(np.median(left)) > LEAST_COVERED_US and least.sum() > 0:
        worked += np.minimum(np.maximum(left, 0.0)[:, None] * least / least.sum(), room)
    return Beside(runs_on, worked), left


def _runs_on(from_end: FloatArray, from_issue: FloatArray, shows: BoolArray, pace: FloatArray) -> bool:
    """Whether gaps agree better counted from the issue of the call before than from its end.

    Where hardly a rank shows its gap, the others had issued their calls before that one ended: if the time
    that it shows had room in theirs.
    """
    if int(shows.sum()) < ENOUGH_PEERS:
        usual = _usual_us((from_issue / pace)[shows])
        fits = usual * pace[~shows] <= from_issue[~shows] + QUEUE_US
        return bool(fits.mean() > HALFWAY) if len(fits) else False
    by_end, by_issue = (scatter((gap / pace)[shows]) for gap in (from_end, from_issue))
    return by_issue < by_end


def _usual_us(shown: FloatArray) -> float:
    """What is usual, by those who show it; of a few the least: a pause makes it longer."""
    return float(np.median(shown) if len(shown) >= ENOUGH_PEERS else shown.min())
