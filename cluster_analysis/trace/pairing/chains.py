"""The messages between two stages are received in the order in which they are sent: the heaviest chain."""

from __future__ import annotations

import numpy as np

from cluster_analysis.numeric.arrays import FloatArray, IntArray


def heaviest_chain(source: IntArray, target: IntArray, weight: FloatArray) -> IntArray:
    """Return which edges (E,) form the heaviest chain in which sources and targets increase, in order."""
    if not len(source):
        return np.empty(0, np.int64)
    order = np.lexsort((-target, source))
    _, place = np.unique(target, return_inverse=True)
    place = np.ravel(place)
    # best[p]: the heaviest chain so far that ends in the p-th target, and its last edge.
    best = np.zeros(int(place.max()) + 2)
    last = np.full(len(best), -1, np.int64)
    before = np.full(len(source), -1, np.int64)
    for edge in order.tolist():
        p = int(place[edge])
        at = int(np.argmax(best[: p + 1]))
        total = best[at] + weight[edge]
        before[edge] = last[at]
        if total > best[p + 1]:
            best[p + 1], last[p + 1] = total, edge
    chain, edge = [], int(last[np.argmax(best)])
    while edge >= 0:
        chain.append(edge)
        edge = int(before[edge])
    return np.array(chain[::-1], np.int64)
