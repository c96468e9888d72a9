"""Last arrival at each operator of a step: the rank that all others waited for."""

from __future__ import annotations

import numpy as np

from cluster_analysis.numeric.arrays import IntArray
from cluster_analysis.trace.calls import Calls
from cluster_analysis.trace.pairing.ends import Ends


def last_to_arrive(calls: Calls, operators: tuple[IntArray, IntArray], ends: Ends) -> IntArray:
    """Return who waited least in each operator (O,), as a position in `calls.ranks`; -1 where not known.

    A message's row holds one end: the later one is its partner, or itself where the partner waited longer.

    Args:
        calls: the step's calls (V,).
        operators: the calls of each operator side by side by rank (V,), and where those of each begin (O,).
        ends: the two ends of messages.
    """
    members, begin = operators
    first = members[begin]
    # Of several the lowest rank, so that order does not matter.
    elapse = calls.elapse_us[members]
    shortest = np.minimum.reduceat(elapse, begin)
    is_shortest = elapse == np.repeat(shortest, np.diff(np.r_[begin, len(members)]))
    n_shortest = np.add.reduceat(is_shortest, begin, dtype=np.intp)
    waits_least = members[np.flatnonzero(is_shortest)[np.cumsum(n_shortest) - n_shortest]]
    last: IntArray = calls.rank[waits_least].astype(np.int64)
    message = np.flatnonzero(calls.is_point_to_point[first])
    own = first[message]
    last[message] = -1
    least = np.full(len(own), np.inf)
    for end in (ends.sender, ends.receiver):
        other = end[own]
        # A partner borrowed from a peer is of another group: who it was in this one is not known.
        known = (other >= 0) & (calls.group[other] == calls.group[own])
        shorter = known & (calls.elapse_us[other] < least)
        least[shorter] = calls.elapse_us[other[shorter]]
        last[message[shorter]] = calls.rank[other[shorter]]
    is_later = np.isfinite(least) & (calls.elapse_us[own] <= least)
    last[message[is_later]] = calls.rank[own[is_later]]
    return np.asarray(last)
