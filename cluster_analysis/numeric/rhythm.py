"""Whether events come in a rhythm: at equal distances from the first step to the last."""

from __future__ import annotations

from math import comb

import numpy as np

from cluster_analysis.numeric.arrays import BoolArray


def every_so_many(events: BoolArray) -> int:
    """How many steps apart events (S,) are, at equal distances from the first step to the last; 0 if not."""
    steps = np.flatnonzero(events)
    distances = set(np.diff(steps).tolist())
    every = min(distances, default=0)
    covers = every >= 2 and int(steps[0]) < every and int(steps[-1]) + every >= len(events)
    return every if len(distances) == 1 and covers else 0


def rhythm_of(events: BoolArray) -> int:
    """How many steps apart events (S,) are, if near enough for one more in the profile; 0 if not."""
    every = every_so_many(events)
    return every if 2 * every <= len(events) else 0


def chance_of_rhythm(events: BoolArray) -> float:
    """P that as many steps (S,) come in any rhythm by chance, if they come in one; else 1."""
    n_steps, n_events = len(events), int(events.sum())
    if not rhythm_of(events):
        return 1.0
    n_rhythms = 0
    for every in range(2, n_steps // 2 + 1):
        fewest, n_with_more = divmod(n_steps, every)  # so many first steps have one more event
        n_rhythms += n_with_more if n_events == fewest + 1 else 0
        n_rhythms += every - n_with_more if n_events == fewest else 0
    return n_rhythms / comb(n_steps, n_events)
