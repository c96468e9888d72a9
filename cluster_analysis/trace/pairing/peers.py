"""Whom a call talks with, where the files say it: links of single operators name both ends."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from cluster_analysis.numeric.arrays import BoolArray, IntArray
from cluster_analysis.trace.calls import Calls
from cluster_analysis.trace.pairing.slots import Family


class Stated(Struct, frozen=True):
    """Records of messages: the operators' names by row of COLLECTIVES, and LINKS with global ranks."""

    names: pa.ChunkedArray
    links: pa.Table

    def peers(self, calls: Calls, ranks: IntArray) -> tuple[IntArray, IntArray]:
        """Return calls, and the position in `calls.ranks` of the other end of a message of each: (N,), (N,).

        Args:
            calls: the step's calls.
            ranks: whose calls are asked for (positions).
        """
        nothing = np.empty(0, np.int64), np.empty(0, np.int64)
        is_asked = np.zeros(len(calls.ranks) + 1, bool)
        is_asked[ranks] = True
        is_asked[-1] = False
        messages = np.flatnonzero(calls.is_point_to_point & is_asked[calls.rank])
        links = self._of(calls, is_asked)
        if not len(messages) or not links.num_rows:
            return nothing
        own = pc.dictionary_encode(self.names.take(pa.array(calls.rows[messages]))).combine_chunks()
        if isinstance(own, pa.ChunkedArray):  # an empty column stays chunked
            return nothing
        name = pc.fill_null(pc.index_in(links["op_name"], value_set=own.dictionary), -1).to_numpy()
        rank, source, target = (links[column].to_numpy() for column in ("rank", "src_rank", "dst_rank"))
        other = np.where(source == rank, target, source)
        at, peer = np.searchsorted(calls.ranks, rank), np.searchsorted(calls.ranks, other)
        peer = np.minimum(peer, len(calls.ranks) - 1)
        known = (name >= 0) & ((source == rank) ^ (target == rank)) & (calls.ranks[peer] == other)
        key_of_call = calls.rank[messages].astype(np.int64) * len(own.dictionary) + own.indices.to_numpy()
        order = np.argsort(key_of_call, kind="stable")
        key = (at * len(own.dictionary) + name)[known]
        found = order[np.minimum(np.searchsorted(key_of_call[order], key), len(order) - 1)]
        is_there = key_of_call[found] == key
        return messages[found[is_there]].astype(np.int64), peer[known][is_there].astype(np.int64)

    def _of(self, calls: Calls, is_asked: BoolArray) -> pa.Table:
        """The links of single messages of the ranks that are asked for."""
        if not self.links.num_rows:
            return self.links
        rank = self.links["rank"].to_numpy()
        at = np.minimum(np.searchsorted(calls.ranks, rank), len(calls.ranks) - 1)
        links = self.links.select(["rank", "op_name", "src_rank", "dst_rank", "is_p2p"])
        links = links.take(pa.array(np.flatnonzero(is_asked[at] & (calls.ranks[at] == rank))))
        links = links.filter(pc.fill_null(links["is_p2p"], False))
        return links.drop_columns("is_p2p").drop_null()


def allowed_stages(family: Family, sample: IntArray, stated: Stated | None, calls: Calls) -> BoolArray:
    """Say which stages each slot may talk with, (slots, stages): those stated in any group, else all.

    Args:
        family: groups of one program.
        sample: the groups that are looked at.
        stated: what files say.
        calls: the step's calls.
    """
    found = np.zeros((len(family.stage), family.n_stages), bool)
    if stated is not None:
        call, peer = stated.peers(calls, family.ranks[sample].ravel())
        rows, slots = np.nonzero(family.table[sample] >= 0)
        place = np.full((2, len(calls)), -1)
        place[:, family.table[sample][rows, slots]] = sample[rows], slots
        call, peer = call[place[1, call] >= 0], peer[place[1, call] >= 0]
        is_peer = family.ranks[place[0, call]] == peer[:, None]
        is_member = is_peer.any(axis=1)
        found[place[1, call[is_member]], is_peer.argmax(axis=1)[is_member]] = True
    return np.asarray(found | ~found.any(axis=1, keepdims=True))
