"""Packet sizes of CommAnalyzerBandwidth: a row an operator, transport and size; MB and ms."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster_analysis.sources import numbers
from cluster_analysis.sources.communication_tables import PacketEntries, packet_sums
from cluster_analysis.sources.db import database_columns
from cluster_analysis.sources.db.carried_db import BANDWIDTH, PACKET_FIGURES, transport_places
from cluster_analysis.sources.db.cells import Cells, as_list, chosen
from cluster_analysis.sources.db.sqlite import Database
from cluster_analysis.sources.errors import Remark, left_out, unheard
from cluster_analysis.tables import schema

#: Step of each operator, by its name and group.
StepOf = dict[tuple[str, str], int]


def in_their_steps(step_of: StepOf, names: Cells, groups: Cells) -> list[int | None]:
    """Return the step of each row's operator; None where it is in none."""
    return list(map(step_of.get, zip(as_list(names), as_list(groups), strict=True)))


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
    names = ("hccl_op_name", "group_name", "step")
    figures = database.cells(BANDWIDTH, *PACKET_FIGURES, are_floats=True)
    places = database.once(transport_places)
    cells = database.present(BANDWIDTH, names)
    keys = [cells.get(name, pa.nulls(len(places))) for name in names]
    repeated, step_of = known
    is_kept = (places >= 0) & _are_above_0(figures[1])
    if repeated:
        is_kept &= np.fromiter((key not in repeated for key in zip(*map(as_list, keys), strict=True)), bool)
    if step_of is not None:
        keys[2] = in_their_steps(step_of, *keys[:2])
        is_kept &= np.fromiter((step is not None for step in keys[2]), bool)
    steps = database_columns.plain_steps(keys[2])
    values = [database_columns.floats(cells, unheard) for cells in figures]
    is_good = np.logical_and.reduce([np.asarray(column.is_valid()) for column in (steps, *values)])
    n_bad = int(np.count_nonzero(is_kept & ~is_good))
    if n_bad:
        remark(left_out(n_bad, "packet_size", "no_number"))
    is_kept &= is_good
    sizes, counts, totals = (column.filter(pa.array(is_kept)) for column in values)
    encoded = sizes.dictionary_encode()
    texts = pa.array([repr(size) for size in encoded.dictionary.to_pylist()], pa.string())
    entries = PacketEntries(
        numbers.ranks_of(rank, len(sizes)),
        np.asarray(steps.filter(pa.array(is_kept))),
        database_columns.coded_texts(chosen(keys[1], is_kept)),
        places[is_kept],
        pa.DictionaryArray.from_arrays(encoded.indices, texts),
        np.column_stack([counts.to_numpy(), totals.to_numpy()]),
    )
    return packet_sums(entries, remark)


def _are_above_0(counts: Cells) -> npt.NDArray[np.bool_]:
    """Return which SQL takes for more than 0, as it does any text (N,)."""
    if database_columns.are_plain(counts):
        return np.asarray(counts) > 0
    return np.array(
        [one > 0 if isinstance(one, (int, float)) else one is not None for one in as_list(counts)], bool
    )
