"""Partners of calls whose own partner has no files: those of a TP/CP peer's calls."""

from __future__ import annotations

import numpy as np

from cluster_analysis.numeric.arrays import IntArray
from cluster_analysis.tables.model import Topology
from cluster_analysis.trace.calls import Calls
from cluster_run.ids import Rank


def borrow_from_peers(calls: Calls, sender: IntArray, receiver: IntArray, topology: Topology) -> None:
    """Give calls whose partner has no files the partner of a TP/CP peer's call.

    TP/CP peers pass on parts of one tensor at one time: a rank's partner came when its TP/CP peer's
    partner came. Otherwise its waiting would count as work that no repair takes away.
    """
    orphan = calls.is_point_to_point & (sender < 0) & (receiver < 0)
    if not orphan.any():
        return
    messages = np.flatnonzero(calls.is_point_to_point)  # calls are sorted by rank
    own_calls = np.split(messages, np.searchsorted(calls.rank[messages], np.arange(1, len(calls.ranks))))
    tp_cp_peers: dict[tuple[int, int], list[int]] = {}
    for position, rank in enumerate(calls.ranks.tolist()):
        stage, replica = topology.stages.get(Rank(rank)), topology.dp_index.get(Rank(rank))
        if stage is not None and replica is not None:
            tp_cp_peers.setdefault((stage, replica), []).append(position)
    for together in tp_cp_peers.values():
        for position in together:
            own = own_calls[position]
            if not orphan[own].any():
                continue
            for peer in together:
                theirs = own_calls[peer]
                if peer == position or not _are_alike(calls, own, theirs) or orphan[theirs].any():
                    continue
                lonely = orphan[own]
                sender[own[lonely]] = sender[theirs[lonely]]
                receiver[own[lonely]] = receiver[theirs[lonely]]
                break


def _are_alike(calls: Calls, own: IntArray, theirs: IntArray) -> bool:
    """Whether two ranks make the same kinds of calls in the same order."""
    return len(own) == len(theirs) and bool((calls.kind[own] == calls.kind[theirs]).all())
