"""The columns of communication.json and communication_matrix.json → the tables that both files give.

Hosts send only the elapsed time of an operator. The other times are null, and hosts send their sums.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import pyarrow as pa

from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.sources import names, numbers
from cluster_analysis.sources.columns.columns import Columns, are_places, damaged
from cluster_analysis.sources.communication_tables import CommunicationTables
from cluster_analysis.sources.link_names import LinkNames, links_table
from cluster_analysis.sources.names import coded_rows
from cluster_analysis.tables import schema
from cluster_analysis.tables.schema import TRANSPORTS
from cluster_reduce.form import SUMMED

_N = len(TRANSPORTS)
_Rows = TypeVar("_Rows", pa.Array, IntArray, FloatArray)


class Levels:
    """The rows of a file.

    Attributes:
        n_rows: how many.
        steps: (n_rows,).
        is_p2p: (n_rows,); whether a row was filed under `p2p`.
    """

    def __init__(self, file: Columns, counts_name: str, rows_name: str) -> None:
        counts, numbers, are_p2p = (file.ints(name) for name in (counts_name, "step", "is_p2p"))
        self.n_rows = len(file.ints(rows_name))
        are_counts = are_places(counts, self.n_rows + 1) and counts.sum() == self.n_rows
        if not len(counts) == len(numbers) == len(are_p2p) or not are_counts:
            raise damaged("levels")
        self.steps = np.repeat(numbers, counts)
        self.is_p2p = np.repeat(are_p2p != 0, counts)

    def of_rows(self, values: _Rows) -> _Rows:
        """Return what each row has.

        Raises:
            BadFileError: their number is another one.
        """
        if len(values) != self.n_rows:
            raise damaged("columns of different lengths")
        return values

    def are_places(self, rows: IntArray) -> bool:
        """Return whether all these are numbers of rows."""
        return are_places(rows, self.n_rows)


def communication_of(
    file: Columns, rank: int, n_skipped: int = 0, *, with_spans: bool = True
) -> CommunicationTables:
    """Return the tables of one file.

    Args:
        file: its columns.
        rank: whose they are.
        n_skipped: bytes of a text before that which was read.
        with_spans: whether also where operators lie in a text.
    """
    levels = Levels(file, "n_operators", "start_ns")
    has_times = file.has(SUMMED[0])
    collectives = _collectives(file, levels, rank, has_times=has_times)
    packets = _packets(file, rank)
    spans, sums = schema.OPERATOR_SPANS.empty_table(), schema.HOST_SUMS.empty_table()
    if not has_times:
        sums = _sums(file, levels, rank)
    elif with_spans:
        spans = _spans(file, rank, n_skipped)
    return CommunicationTables(collectives, packets, spans, sums)


def _collectives(file: Columns, levels: Levels, rank: int, *, has_times: bool) -> pa.Table:
    starts = levels.of_rows(file.ints("start_ns"))
    figures = _figures_of(file, levels)
    columns: dict[str, pa.Array] = {
        "step": pa.array(levels.steps),
        "group": levels.of_rows(file.texts("group")),
        **names.of_operators(levels.of_rows(file.names("name")), pa.array(levels.is_p2p)),
        "start_ns": pa.array(starts, mask=starts < 0),
        "elapse_us": _figures(figures[0]),
    }
    payloads = _payloads_of(file, levels, figures[1])
    if not np.isnan(payloads).all():
        columns["payload_bytes"] = _figures(payloads)
    for name in SUMMED if has_times else ():
        columns[f"{name}_us"] = _figures(_scaled(levels.of_rows(file.floats(name)), numbers.US_PER_MS))
    for at, name in enumerate(TRANSPORTS):
        columns[f"{name.lower()}_bytes"] = _figures(figures[1 + at])
        columns[f"{name.lower()}_us"] = _figures(figures[1 + _N + at])
    return schema.rows(schema.COLLECTIVES, rank, **columns)


def _sums(file: Columns, levels: Levels, rank: int) -> pa.Table:
    """Return HOST_SUMS: a file has them by step and group, in the order of their first rows."""
    places, known = file.coded("group")
    _, first = np.unique(levels.steps * len(known) + places, return_index=True)
    first.sort()
    figures = {f"{name}_us": file.floats(f"sum.{name}") for name in SUMMED}
    if any(len(values) != len(first) for values in figures.values()):
        raise damaged("sums of no group")
    return schema.rows(
        schema.HOST_SUMS,
        rank,
        step=pa.array(levels.steps[first]),
        group=coded_rows((places[first], known)),
        **{name: _figures(values) for name, values in figures.items()},
    )


def _spans(file: Columns, rank: int, n_skipped: int) -> pa.Table:
    """Return OPERATOR_SPANS of a file that was read where it lies."""
    steps, begins = np.repeat(file.ints("step"), file.ints("n_places")), file.ints("begin")
    return schema.rows(
        schema.OPERATOR_SPANS,
        rank,
        step=pa.array(steps),
        key=file.texts("key"),
        position=np.arange(len(steps), dtype=np.int32),
        offset=begins + n_skipped,
        length=(file.ints("end") - begins).astype(np.int32),
    )


def _figures_of(file: Columns, levels: Levels) -> FloatArray:
    """Return elapsed time in µs, then bytes of each transport, then its µs (1 + 2 × transports, N).

    A transport that is not listed carried nothing.
    """
    values = np.zeros((1 + 2 * _N, levels.n_rows))
    absent, entries = file.ints("absent"), file.ints("entry")
    sizes_mb, times_ms = (file.floats(name) for name in ("size_mb", "time_ms"))
    elapse_ms = levels.of_rows(file.floats("elapse"))
    are_places = levels.are_places(entries // _N) and levels.are_places(absent // _N)
    if not len(entries) == len(sizes_mb) == len(times_ms) or not are_places:
        raise damaged("entries of no operator")
    values[0] = _scaled(elapse_ms, numbers.US_PER_MS)
    for first, given, factor in ((1, sizes_mb, numbers.BYTES_PER_MB), (1 + _N, times_ms, numbers.US_PER_MS)):
        values[first + absent % _N, absent // _N] = np.nan
        values[first + entries % _N, entries // _N] = _scaled(given, factor)
    return values


def _payloads_of(file: Columns, levels: Levels, hccs_bytes: FloatArray) -> FloatArray:
    """Return the bytes of operators whose links have no entry of their own, NaN for all others."""
    payloads = np.full(levels.n_rows, np.nan)
    if file.has("nameless"):
        rows = file.ints("nameless")
        if not levels.are_places(rows):
            raise damaged("links of no operator")
        payloads[rows] = hccs_bytes[rows]
    return payloads


def _packets(file: Columns, rank: int) -> pa.Table:
    """Return PACKETS of a file, which the host has summed."""
    columns = {
        "step": pa.array(file.ints("packet.step")),
        "group": file.texts("packet.group"),
        "transport": file.texts("packet.transport"),
        "packet_bytes": pa.array(file.floats("packet.size_mb") * numbers.BYTES_PER_MB),
        "n_packets": pa.array(file.ints("packet.count")),
        "total_us": pa.array(file.floats("packet.time_ms") * numbers.US_PER_MS),
    }
    if len(set(map(len, columns.values()))) > 1:
        raise damaged("packets")
    return schema.rows(schema.PACKETS, rank, **columns)


def _scaled(values: FloatArray, factor: float) -> FloatArray:
    with np.errstate(over="ignore"):
        return values * factor


def _figures(values: FloatArray) -> pa.Array:
    """Return figures; NaN, and what no float64 holds, becomes null."""
    is_number = np.isfinite(values)
    return pa.array(values) if is_number.all() else pa.array(values, mask=~is_number)


def links_of(file: Columns, rank: int) -> pa.Table:
    """Return LINKS of one file."""
    levels = Levels(file, "n_links", "src_local")

    def scaled(name: str, factor: float) -> pa.Array:
        return pa.array(_scaled(levels.of_rows(file.floats(name)), factor), from_pandas=True)

    keys, operators = (levels.of_rows(file.names(name)).dictionary_encode() for name in ("key", "op_name"))
    columns = {
        "step": levels.steps,
        "src_local": _local_ranks(levels.of_rows(file.ints("src_local"))),
        "dst_local": _local_ranks(levels.of_rows(file.ints("dst_local"))),
        "transport": levels.of_rows(file.texts("transport")),
        "size_bytes": scaled("size_mb", numbers.BYTES_PER_MB),
        "time_us": scaled("time_ms", numbers.US_PER_MS),
    }
    if not levels.n_rows:
        return schema.LINKS.empty_table()
    return links_table(rank, LinkNames.of_one_file(keys, operators), pa.array(levels.is_p2p), **columns)


def _local_ranks(values: IntArray) -> pa.Array:
    local = values.astype(np.int32)
    if (local != values).any():
        raise damaged("ranks")
    return pa.array(local)
