"""Whom a call talks with, where the files say it: links of single operators name both ends."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.numeric.arrays import BoolArray, IntArray
from cluster_analysis.trace.calls import Calls
from cluster_analysis.trace.pairing.slots import Family


@dataclass(frozen=True)
class Peers:
    """Calls (N,) and the other rank, a position in the calls' ranks, of a message of each (N,)."""

    call: IntArray
    rank: IntArray


NONE_STATED = Peers(np.empty(0, np.int64), np.empty(0, np.int64))


def stated_peers(calls: Calls, names: pa.ChunkedArray, links: pa.Table) -> Peers:
    """Read the peers of the step's messages off its links.

    Args:
        calls: the step's calls.
        names: the operators' names, by row of COLLECTIVES.
        links: LINKS rows of the step with global ranks; rows that are sums over operators say nothing.
    """
    messages = np.flatnonzero(calls.is_point_to_point)
    if not len(messages) or not links.num_rows:
        return NONE_STATED
    single = pc.and_(links["is_p2p"], pc.is_valid(links["op_name"]))
    links = links.filter(pc.fill_null(single, False)).select(["rank", "op_name", "src_rank", "dst_rank"])
    links = links.drop_null()
    if not links.num_rows:
        return NONE_STATED
    own = pc.dictionary_encode(names.take(pa.array(calls.rows[messages]))).combine_chunks()
    if isinstance(own, pa.ChunkedArray):
        own = own.combine_chunks()
    name_of_call = own.indices.to_numpy()
    name = pc.fill_null(pc.index_in(links["op_name"], value_set=own.dictionary), -1).to_numpy()
    rank, source, target = (links[column].to_numpy() for column in ("rank", "src_rank", "dst_rank"))
    other = np.where(source == rank, target, source)
    at, peer = np.searchsorted(calls.ranks, rank), np.searchsorted(calls.ranks, other)
    last = len(calls.ranks) - 1
    known = (name >= 0) & ((source == rank) ^ (target == rank))
    known &= (calls.ranks[np.minimum(at, last)] == rank) & (calls.ranks[np.minimum(peer, last)] == other)
    n_names = len(own.dictionary)
    key_of_call = calls.rank[messages].astype(np.int64) * n_names + name_of_call
    order = np.argsort(key_of_call, kind="stable")
    key = (at * n_names + name)[known]
    place = np.searchsorted(key_of_call[order], key)
    found = order[np.minimum(place, len(order) - 1)]
    is_there = key_of_call[found] == key
    return Peers(messages[found[is_there]].astype(np.int64), peer[known][is_there].astype(np.int64))


def allowed_stages(family: Family, peers: Peers, n_calls: int) -> BoolArray:
    """Say which stages each slot may talk with, (slots, stages): those stated in any group, else all."""
    stated = np.zeros((len(family.stage), family.n_stages), bool)
    rows, slots = np.nonzero(family.table >= 0)
    slot_of, row_of = np.full(n_calls, -1), np.full(n_calls, -1)
    slot_of[family.table[rows, slots]], row_of[family.table[rows, slots]] = slots, rows
    inside = slot_of[peers.call] >= 0
    slot, row = slot_of[peers.call[inside]], row_of[peers.call[inside]]
    is_member = family.ranks[row] == peers.rank[inside][:, None]
    stated[slot[is_member.any(axis=1)], is_member.argmax(axis=1)[is_member.any(axis=1)]] = True
    return np.asarray(stated | ~stated.any(axis=1, keepdims=True))
