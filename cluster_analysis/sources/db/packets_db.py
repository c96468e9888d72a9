"""Packet sizes of CommAnalyzerBandwidth: a row an operator, transport and size; MB and ms."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.sources import numbers
from cluster_analysis.sources.communication_tables import PacketEntries, packet_sums
from cluster_analysis.sources.db import database_columns
from cluster_analysis.sources.db.carried_db import BANDWIDTH, PACKET_FIGURES, transport_places
from cluster_analysis.sources.db.cells import Cells, as_list, chosen
from cluster_analysis.sources.db.sqlite import Database
from cluster_analysis.sources.errors import Remark, left_out
from cluster_analysis.tables import schema

#: Step of each operator, by its name and group.
StepOf = dict[tuple[str, str], int]


def with_steps(
    rows: list[tuple[Any, ...]], step_of: StepOf | None, positions: tuple[int, int, int]
) -> list[tuple[Any, ...]]:
    """Put the step of each row's operator in; `positions` are those of name, group and step in a row."""
    if step_of is None:
        return rows
    name, group, step = positions
    return [
        (*row[:step], step_of[row[name], row[group]], *row[step + 1 :])
        for row in rows
        if (row[name], row[group]) in step_of
    ]


def read_packets(
    database: Database,
    rank: int,
    known: tuple[frozenset[tuple[Any, ...]], StepOf | None],
    remark: Remark,
) -> pa.Table:
    """Return PACKETS.

    `known` are the names of several operators, and the steps of the others.
    """
    if not database.has(BANDWIDTH, *PACKET_FIGURES, "transport_type", "group_name"):
        return schema.PACKETS.empty_table()
    names = ("hccl_op_name", "group_name", "step")
    present = [name for name in names if database.has(BANDWIDTH, name)]
    figures = database.cells(BANDWIDTH, *PACKET_FIGURES, are_floats=True)
    places = database.once(transport_places)
    cells = dict(zip(present, database.coded(BANDWIDTH, *present), strict=True))
    keys = [cells.get(name, pa.nulls(len(places))) for name in names]
    repeated, step_of = known
    plain = None
    if step_of is None and not repeated and all(map(database_columns.are_plain, figures)):
        plain = _plain_packets(rank, keys, places, figures)
    if plain is None:
        plain = _any_packets(rank, keys, places, figures, known, remark)
    return packet_sums(plain, remark)


def _any_packets(
    rank: int,
    keys: list[Cells],
    places: npt.NDArray[np.int64],
    figures: list[Cells],
    known: tuple[frozenset[tuple[Any, ...]], StepOf | None],
    remark: Remark,
) -> PacketEntries:
    """Return the entries row by row: cells may hold anything."""
    repeated, step_of = known
    n_bad = 0
    steps: list[int] = []
    groups: list[str] = []
    transports: list[int] = []
    sizes: list[str] = []
    found: list[tuple[float, float]] = []
    rows = list(zip(*map(as_list, (*keys, *figures)), places.tolist(), strict=True))
    rows = [row for row in rows if row[6] >= 0 and _is_above_0(row[4]) and row[:3] not in repeated]
    for _, group, given_step, size, count, total, place in with_steps(rows, step_of, (0, 1, 2)):
        number = 0 if given_step is None else numbers.parse_step(str(given_step))
        if number is None or not all(database_columns.is_number(value) for value in (size, count, total)):
            n_bad += 1
            continue
        steps.append(number)
        groups.append(str(group or ""))
        transports.append(place)
        sizes.append(repr(float(size)))
        found.append((float(count), float(total)))
    if n_bad:
        remark(left_out(n_bad, "packet_size", "no_number"))
    return PacketEntries(
        numbers.ranks_of(rank, len(steps)),
        np.array(steps, np.int64),
        numbers.encoded(groups),
        np.array(transports, np.int64),
        pc.dictionary_encode(pa.array(sizes, pa.string())),
        np.array(found, np.float64),
    )


def _is_above_0(count: object) -> bool:
    """Return whether SQL takes it for more than 0, as it does any text."""
    return count > 0 if isinstance(count, (int, float)) else count is not None


def _plain_packets(
    rank: int, keys: list[Cells], places: npt.NDArray[np.int64], figures: list[pa.Array]
) -> PacketEntries | None:
    """Return the entries where every cell is what it should be: the usual case, column by column."""
    _, groups, steps = keys
    is_kept = (places >= 0) & (figures[1].to_numpy() > 0)
    numbered = database_columns.plain_steps(chosen(steps, is_kept))
    if numbered.null_count:
        return None
    sizes, counts, totals = (values.filter(pa.array(is_kept)) for values in figures)
    encoded = sizes.dictionary_encode()
    texts = pa.array([repr(size) for size in encoded.dictionary.to_pylist()], pa.string())
    return PacketEntries(
        numbers.ranks_of(rank, len(numbered)),
        numbered.to_numpy(),
        database_columns.coded_texts(chosen(groups, is_kept)),
        places[is_kept],
        pa.DictionaryArray.from_arrays(encoded.indices, texts),
        np.column_stack([counts.to_numpy(), totals.to_numpy()]),
    )
