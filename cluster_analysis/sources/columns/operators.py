"""The columns of communication.json → the tables that the file itself gives.

Hosts send only the elapsed time of an operator. The other times are null, and hosts send their sums.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster_analysis.sources import names, numbers
from cluster_analysis.sources.columns.columns import Columns, damaged
from cluster_analysis.sources.columns.levels import Levels
from cluster_analysis.sources.communication_tables import CommunicationTables
from cluster_analysis.sources.errors import Remark
from cluster_analysis.sources.measured import (
    MEASURED_COLLECTIVES,
    tell_missing,
    without_impossible,
)
from cluster_analysis.sources.names import coded_rows
from cluster_analysis.tables import schema
from cluster_analysis.tables.sent import TRANSPORTS
from cluster_reduce.form import SUMMED

_N = len(TRANSPORTS)
_FloatArray = npt.NDArray[np.float64]
_IntArray = npt.NDArray[np.int64]


def communication_of(
    file: Columns, rank: int, remark: Remark, n_skipped: int = 0, *, with_spans: bool = True
) -> CommunicationTables:
    """Return the tables of one file.

    Args:
        file: its columns.
        rank: whose they are.
        remark: called with what rows lack.
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
    tell_missing(collectives, "operators", remark)
    return CommunicationTables(
        without_impossible(collectives, MEASURED_COLLECTIVES, remark), packets, spans, sums
    )


def _collectives(file: Columns, levels: Levels, rank: int, *, has_times: bool) -> pa.Table:
    op_names = levels.of_rows(file.names("name"))
    op_types = names.operations(op_names)
    is_p2p = names.point_to_point(op_types).to_numpy(zero_copy_only=False)
    starts = levels.of_rows(file.ints("start_ns"))
    figures = _figures_of(file, levels)
    columns: dict[str, pa.Array] = {
        "step": pa.array(levels.steps),
        "group": levels.of_rows(file.texts("group")),
        "op_name": op_names,
        "op_type": op_types,
        "op_index": names.indices_in_group(op_names),
        "is_p2p": pa.array(levels.is_p2p | is_p2p),
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


def _figures_of(file: Columns, levels: Levels) -> _FloatArray:
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


def _payloads_of(file: Columns, levels: Levels, hccs_bytes: _FloatArray) -> _FloatArray:
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


def _scaled(values: _FloatArray, factor: float) -> _FloatArray:
    with np.errstate(over="ignore"):
        return values * factor


def _figures(values: _FloatArray) -> pa.Array:
    """Return figures; NaN, and what no float64 holds, becomes null."""
    is_number = np.isfinite(values)
    return pa.array(values) if is_number.all() else pa.array(values, mask=~is_number)
