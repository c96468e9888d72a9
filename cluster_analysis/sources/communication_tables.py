"""Operators of communication and packet sizes of one rank or of several, from every form of a capture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct, field

from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.sources import numbers
from cluster_analysis.sources.errors import Remark, tell_left_out
from cluster_analysis.sources.names import is_group
from cluster_analysis.tables import schema
from cluster_analysis.tables.hccl_names import OWN_GROUP_PREFIX
from cluster_analysis.tables.schema import TRANSPORTS

_SORTED_TRANSPORTS = tuple(sorted(TRANSPORTS))
_PLACES = np.array([_SORTED_TRANSPORTS.index(name) for name in TRANSPORTS])


class CommunicationTables(Struct, frozen=True):
    """Operators of one rank: COLLECTIVES, PACKETS; OPERATOR_SPANS of a text, HOST_SUMS of its columns."""

    collectives: pa.Table
    packets: pa.Table = field(default_factory=schema.PACKETS.empty_table)
    spans: pa.Table = field(default_factory=schema.OPERATOR_SPANS.empty_table)
    sums: pa.Table = field(default_factory=schema.HOST_SUMS.empty_table)

    @classmethod
    def of_ranks(cls, ranks: Sequence[CommunicationTables]) -> CommunicationTables:
        """Return the tables of several ranks, one behind the other."""
        names = cls.__struct_fields__
        return cls(*(schema.one_behind_the_other([getattr(one, name) for one in ranks]) for name in names))

    def with_own_groups(self) -> tuple[CommunicationTables, frozenset[int]]:
        """Return the tables with a group for each operator, and the ranks whose files name none for some."""
        collectives, ranks = _with_own_groups(self.collectives)
        if not ranks:
            return self, ranks
        others = (_with_own_groups(one)[0] for one in (self.packets, self.sums))
        return CommunicationTables(collectives, next(others), self.spans, next(others)), ranks


def _with_own_groups(table: pa.Table) -> tuple[pa.Table, frozenset[int]]:
    """Return a table of `rank` and `group` with a group of a rank alone where none is named, and these ranks.

    Names of operators hold three digits of a group's hash, which two groups may share: nothing is matched
    over ranks by them.
    """
    groups = table["group"].combine_chunks()
    known = [is_group(text) for text in groups.dictionary.to_pylist()]
    if all(known):
        return table, frozenset()
    is_named = pa.array(known, pa.bool_()).take(groups.indices)
    own = pc.binary_join_element_wise(OWN_GROUP_PREFIX, pc.cast(table["rank"], pa.string()), "")
    named = pc.if_else(is_named, pc.cast(groups, pa.string()), own).combine_chunks()
    ranks = pc.unique(table["rank"].filter(pc.invert(is_named))).to_pylist()
    return schema.with_columns(table, group=named.dictionary_encode()), frozenset(ranks)


class PacketEntries(Struct, frozen=True):
    """One packet size of one operator each, in columns of equal length.

    Attributes:
        ranks: the operator's rank.
        steps: its step.
        groups: its communication group (dictionary).
        transports: index into TRANSPORTS.
        sizes: packet size in MB, as text (dictionary).
        figures: number of packets and their time in ms, (n, 2).
    """

    ranks: npt.NDArray[np.int32]
    steps: IntArray
    groups: pa.DictionaryArray
    transports: IntArray
    sizes: pa.DictionaryArray
    figures: FloatArray


def packet_sums(entries: PacketEntries, remark: Remark) -> pa.Table:
    """Return PACKETS, in order; `remark` is called for sizes that are no number.

    The sums are exact, so the order of the entries makes no difference.
    """
    if not len(entries.sizes):
        return schema.PACKETS.empty_table()
    ranks, rank_places = np.unique(entries.ranks, return_inverse=True)
    steps, step_places = np.unique(entries.steps, return_inverse=True)
    names, group_places = _groups(entries.groups)
    sizes, size_places = _sizes(entries.sizes)
    # One number names rank, step, group, transport and size, in the order of the table.
    shape = (len(ranks), len(steps), len(names), len(TRANSPORTS), len(sizes))
    places = (rank_places, step_places, group_places, _PLACES[entries.transports], size_places)
    codes = np.ravel_multi_index(places, shape)
    order = np.argsort(codes, kind="stable")
    is_bad = np.isnan(sizes[size_places[order]])
    if is_bad.any():
        tell_left_out(remark, int(is_bad.sum()), "packet_size", "no_number")
        order = order[~is_bad]
    if not len(order):
        return schema.PACKETS.empty_table()
    sorted_codes = codes[order]
    begins = np.concatenate(([0], np.flatnonzero(sorted_codes[1:] != sorted_codes[:-1]) + 1))
    parts = list(pairwise([*begins.tolist(), len(order)]))
    counts, times_ms = (
        [math.fsum(own[begin:end]) for begin, end in parts] for own in entries.figures[order].T.tolist()
    )
    at = np.unravel_index(sorted_codes[begins], shape)
    columns = {
        "rank": pa.array(ranks[at[0]], pa.int32()),
        "step": pa.array(steps[at[1]], pa.int64()),
        "group": [names[place] for place in at[2].tolist()],
        "transport": [_SORTED_TRANSPORTS[place] for place in at[3].tolist()],
        "packet_bytes": pa.array(sizes[at[4]] * numbers.BYTES_PER_MB),
        "n_packets": pa.array(list(map(round, counts)), pa.int64()),
        "total_us": pa.array([time_ms * numbers.US_PER_MS for time_ms in times_ms], pa.float64()),
    }
    return pa.table(columns, schema=schema.PACKETS)


def _groups(groups: pa.DictionaryArray) -> tuple[list[str], IntArray]:
    """Return the names of all groups, sorted, and the place of each entry's group among them."""
    known = groups.dictionary.to_pylist()
    order = sorted(range(len(known)), key=known.__getitem__)
    return [known[at] for at in order], np.argsort(order)[groups.indices.to_numpy()]


def _sizes(encoded: pa.DictionaryArray) -> tuple[FloatArray, IntArray]:
    """Return the distinct sizes, sorted, NaN last for what is no number, and each text's place among them."""
    # One number can be written in two ways.
    numeric, _ = numbers.to_float64(encoded.dictionary)
    known, places = np.unique(numeric.to_numpy(zero_copy_only=False), return_inverse=True)
    return known, places[encoded.indices.to_numpy()]
