"""Packet sizes of CommAnalyzerBandwidth: a row an operator, transport and size; MB and ms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from cluster_analysis.sources import numbers
from cluster_analysis.sources.communication_tables import PacketEntries, packet_sums
from cluster_analysis.sources.db import cells
from cluster_analysis.sources.db.carried_db import BANDWIDTH, PACKET_FIGURES, transport_places
from cluster_analysis.sources.db.sqlite import Database
from cluster_analysis.sources.errors import Remark, left_out
from cluster_analysis.tables import schema

#: Step of each operator, by its name and group.
StepOf = dict[tuple[Any, ...], int]


def in_their_steps(
    step_of: StepOf, names: pa.DictionaryArray, groups: pa.DictionaryArray
) -> list[int | None]:
    """Return the step of each row's operator; None where it is in none."""
    return list(map(step_of.get, cells.rows_of((names, groups))))


def read_packets(
    database: Database,
    rank: int,
    known: tuple[frozenset[tuple[Any, ...]], StepOf | None],
    remark: Remark,
) -> pa.Table:
    """Return PACKETS.

    `known` are the names of several operators, and the steps of the others.
    """
    if not database.offers(remark, BANDWIDTH, *PACKET_FIGURES, "transport_type", "group_name"):
        return schema.PACKETS.empty_table()
    sizes, counts, totals = database.numbers(BANDWIDTH, *PACKET_FIGURES).values()
    places = database.once(transport_places)
    keys = database.texts(BANDWIDTH, "hccl_op_name", "group_name", "step")
    empty = pa.nulls(len(places), pa.string()).dictionary_encode()
    names, groups, named_steps = (keys.get(name, empty) for name in ("hccl_op_name", "group_name", "step"))
    repeated, step_of = known
    is_kept = (places >= 0) & (counts > 0)
    if repeated:
        rows = cells.rows_of((names, groups, named_steps))
        is_kept &= np.array([key not in repeated for key in rows], bool)
    if step_of is None:
        steps = cells.plain_steps(named_steps)
    else:
        steps = pa.array(in_their_steps(step_of, names, groups), pa.int64())
        is_kept &= np.asarray(steps.is_valid())
    is_good = np.asarray(steps.is_valid()) & np.isfinite(sizes) & np.isfinite(counts) & np.isfinite(totals)
    n_bad = int(np.count_nonzero(is_kept & ~is_good))
    if n_bad:
        remark(left_out(n_bad, "packet_size", "no_number"))
    is_kept &= is_good
    encoded = pa.array(sizes[is_kept]).dictionary_encode()
    texts = pa.array([repr(size) for size in encoded.dictionary.to_pylist()], pa.string())
    entries = PacketEntries(
        numbers.ranks_of(rank, len(encoded)),
        np.asarray(steps.filter(pa.array(is_kept))),
        cells.filled(groups.filter(pa.array(is_kept))),
        places[is_kept],
        pa.DictionaryArray.from_arrays(encoded.indices, texts),
        np.column_stack([counts[is_kept], totals[is_kept]]),
    )
    return packet_sums(entries, remark)
