"""Partners of calls whose own partner has no files: those of a mate's calls."""

from __future__ import annotations

import numpy as np

from cluster_analysis.numeric.arrays import IntArray
from cluster_analysis.tables.model import Topology
from cluster_analysis.trace.calls import Calls
from cluster_run.ids import Rank


def borrow_from_mates(calls: Calls, sender: IntArray, receiver: IntArray, topology: Topology) -> None:
    """Give calls whose partner has no files the partner of a mate's call.

    Mates (same stage and replica) pass on parts of one tensor at one time: whom a rank waited for came when
    its mate's partner came. Taken as it was, its waiting would be work that no repair takes away.
    """
    orphan = calls.is_point_to_point & (sender < 0) & (receiver < 0)
    if not orphan.any():
        return
    messages = np.flatnonzero(calls.is_point_to_point)  # calls are sorted by rank
    own_calls = np.split(messages, np.searchsorted(calls.rank[messages], np.arange(1, len(calls.ranks))))
    mates: dict[tuple[int, int], list[int]] = {}
    for position, rank in enumerate(calls.ranks.tolist()):
        stage, replica = topology.stages.get(Rank(rank)), topology.dp_index.get(Rank(rank))
        if stage is not None and replica is not None:
            mates.setdefault((stage, replica), []).append(position)
    for together in mates.values():
        for position in together:
            own = own_calls[position]
            if not orphan[own].any():
                continue
            for mate in together:
                theirs = own_calls[mate]
                if mate == position or not _are_alike(calls, own, theirs) or orphan[theirs].any():
                    continue
                lonely = orphan[own]
                sender[own[lonely]] = sender[theirs[lonely]]
                receiver[own[lonely]] = receiver[theirs[lonely]]
                break


def _are_alike(calls: Calls, own: IntArray, theirs: IntArray) -> bool:
    """Whether two ranks make the same kinds of calls in the same order."""
    return len(own) == len(theirs) and bool((calls.kind[own] == calls.kind[theirs]).all())
