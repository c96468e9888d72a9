"""Packet sizes of CommAnalyzerBandwidth: a row an operator, transport and size; MB and ms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.sources import numbers
from cluster_analysis.sources.db import database_columns
from cluster_analysis.sources.db.sqlite import Database
from cluster_analysis.sources.errors import Remark, left_out
from cluster_analysis.sources.packets import TRANSPORTS, PacketEntries, packet_sums
from cluster_analysis.tables import schema

#: Step of each operator, by its name and group.
StepOf = dict[tuple[str, str], int]
_BANDWIDTH = "CommAnalyzerBandwidth"


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
    database: Database, rank: int, known: tuple[frozenset[tuple[Any, ...]], StepOf | None], remark: Remark
) -> pa.Table:
    """Return PACKETS; `known` are the names of several operators, and the steps of the others."""
    repeated, step_of = known
    if not database.has(
        _BANDWIDTH, "package_size", "count", "total_duration", "transport_type", "group_name"
    ):
        return schema.empty(schema.PACKETS)
    step = database.column(_BANDWIDTH, "step")
    name = database.column(_BANDWIDTH, "hccl_op_name")
    n_bad = 0
    rows = database.rows(
        f"SELECT {step}, group_name, transport_type, package_size, count, total_duration, {name} "
        f"FROM {_BANDWIDTH} WHERE count > 0 AND transport_type IN ({', '.join('?' * len(TRANSPORTS))})",
        TRANSPORTS,
    )
    if repeated:
        rows = [row for row in rows if (row[6], row[1], row[0]) not in repeated]
    plain = None if step_of is not None else _plain_packets(rows)
    if plain is not None:
        return packet_sums(rank, plain, remark)
    steps: list[int] = []
    groups: list[str] = []
    transports: list[int] = []
    sizes: list[str] = []
    figures: list[tuple[float, float]] = []
    for given_step, group, transport, size, count, total, _ in with_steps(rows, step_of, (6, 1, 0)):
        number = 0 if given_step is None else numbers.parse_step(str(given_step))
        if number is None or not all(database_columns.is_number(value) for value in (size, count, total)):
            n_bad += 1
            continue
        steps.append(number)
        groups.append(str(group or ""))
        transports.append(TRANSPORTS.index(transport))
        sizes.append(repr(float(size)))
        figures.append((float(count), float(total)))
    if n_bad:
        remark(left_out(n_bad, "packet_size", "no_number"))
    entries = PacketEntries(
        np.array(steps, np.int64),
        numbers.encoded(groups),
        np.array(transports, np.int64),
        pc.dictionary_encode(pa.array(sizes, pa.string())),
        np.array(figures, np.float64),
    )
    return packet_sums(rank, entries, remark)


def _plain_packets(rows: list[tuple[Any, ...]]) -> PacketEntries | None:
    """Return the entries where every cell is what it should be: the usual case, column by column."""
    if not rows:
        return None
    given = list(zip(*rows, strict=True))
    step_of = {value: 0 if value is None else numbers.parse_step(str(value)) for value in set(given[0])}
    sizes, counts, totals = (database_columns.plain_floats(values) for values in given[3:6])
    if sizes is None or counts is None or totals is None or None in step_of.values():
        return None
    encoded = sizes.dictionary_encode()
    texts = pa.array([repr(size) for size in encoded.dictionary.to_pylist()], pa.string())
    return PacketEntries(
        np.array([step_of[value] for value in given[0]], np.int64),
        numbers.encoded([str(group or "") for group in given[1]]),
        np.array([TRANSPORTS.index(transport) for transport in given[2]], np.int64),
        pa.DictionaryArray.from_arrays(encoded.indices, texts),
        np.column_stack([counts.to_numpy(), totals.to_numpy()]),
    )
