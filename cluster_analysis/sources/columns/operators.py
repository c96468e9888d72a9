"""The columns of communication.json → the tables that the file itself gives, of one or more files.

Hosts send only the elapsed time of an operator. The other times are null, and hosts send their sums.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster_analysis.sources import numbers
from cluster_analysis.sources.columns.columns import Columns, damaged
from cluster_analysis.sources.columns.levels import Levels
from cluster_analysis.sources.columns.name_columns import Names
from cluster_analysis.sources.communication_tables import CommunicationTables
from cluster_analysis.sources.errors import Remark
from cluster_analysis.sources.measured import (
    MEASURED_COLLECTIVES,
    NEEDED_COLLECTIVES,
    tell_missing,
    without_negative,
)
from cluster_analysis.sources.names import Coded, shared_texts
from cluster_analysis.tables import schema
from cluster_analysis.tables.sent import TRANSPORTS

_N = len(TRANSPORTS)
#: Times of which hosts send sums alone.
_TIMES = ("transit", "wait", "synchronization", "idle")
_FloatArray = npt.NDArray[np.float64]
_IntArray = npt.NDArray[np.int64]


class OperatorFile:
    """The operators of one file, as arrays.

    Raises:
        BadFileError: the columns are damaged.
    """

    def __init__(self, file: Columns, rank: int, n_skipped: int = 0, *, with_spans: bool = True) -> None:
        """Take the columns; of a text whose columns begin behind so many bytes of the file.

        Args:
            file: the columns.
            rank: whose they are.
            n_skipped: bytes of the text before that which was read.
            with_spans: whether also where operators lie in the text.
        """
        levels = Levels(file, "n_operators", "start_ns")
        groups, known_groups = file.coded("group")
        self.rank = rank
        self.n_rows = levels.n_rows
        self.steps = levels.steps
        self.is_p2p = levels.is_p2p
        self.groups: Coded = (levels.of_rows(groups), known_groups)
        self.names = levels.of_rows(file.names("name"))
        self.starts_ns = levels.of_rows(file.ints("start_ns"))
        #: (1 + 2 × transports, N); elapsed time in µs, then bytes of each transport, then its µs.
        self.figures = _figures_of(file, levels)
        self.payloads = _payloads_of(file, levels, self.figures[1])
        self.packets = _Packets(file)
        #: (4, N); the other times in µs, None where their sums came.
        self.times: _FloatArray | None = None
        self.sums: _Sums | None = None
        self.spans: _Spans | None = None
        if file.has(_TIMES[0]):
            given = (levels.of_rows(file.floats(name)) for name in _TIMES)
            self.times = np.stack([_scaled(values, numbers.US_PER_MS) for values in given])
            self.spans = _Spans(file, n_skipped) if with_spans else None
        else:
            self.sums = _Sums(file, levels.steps, self.groups)


def communication_of(files: Sequence[OperatorFile], remark: Remark) -> CommunicationTables:
    """Return the tables of one or more files, one file behind the other; what they lack goes to `remark`."""
    collectives = _collectives(files)
    tell_missing(collectives, NEEDED_COLLECTIVES, remark)
    return CommunicationTables(
        without_negative(collectives, MEASURED_COLLECTIVES, remark),
        _packets(files),
        _spans([(one.rank, one.spans) for one in files if one.spans is not None]),
        _sums([(one.rank, one.sums) for one in files if one.sums is not None]),
    )


def _collectives(files: Sequence[OperatorFile]) -> pa.Table:
    op_names = Names.joined([one.names for one in files])
    op_types, is_p2p = op_names.operations()
    starts = np.concatenate([one.starts_ns for one in files])
    figures = np.concatenate([one.figures for one in files], axis=1)
    columns: dict[str, pa.Array] = {
        "rank": _ranks([(one.rank, one.n_rows) for one in files]),
        "step": pa.array(np.concatenate([one.steps for one in files])),
        "group": shared_texts([one.groups for one in files]),
        "op_name": op_names.texts(),
        "op_type": op_types,
        "op_index": op_names.indices_in_group(),
        "is_p2p": pa.array(np.concatenate([one.is_p2p for one in files]) | is_p2p),
        "start_ns": pa.array(starts, mask=starts < 0) if (starts < 0).any() else pa.array(starts),
        "elapse_us": _figures(figures[0]),
    }
    payloads = np.concatenate([one.payloads for one in files])
    if not np.isnan(payloads).all():
        columns["payload_bytes"] = _figures(payloads)
    times = [one.times for one in files if one.times is not None]
    if len(times) == len(files):
        for name, values in zip(_TIMES, np.concatenate(times, axis=1), strict=True):
            columns[f"{name}_us"] = _figures(values)
    for at, name in enumerate(TRANSPORTS):
        columns[f"{name.lower()}_bytes"] = _figures(figures[1 + at])
        columns[f"{name.lower()}_us"] = _figures(figures[1 + _N + at])
    unknown = pa.nulls(len(starts), pa.float64())
    arrays = [columns.get(name, unknown) for name in schema.COLLECTIVES.names]
    return pa.Table.from_arrays(arrays, schema=schema.COLLECTIVES)


def _ranks(counts: Sequence[tuple[int, int]]) -> pa.Array:
    """Return ranks, each so many times."""
    ranks, n_rows = np.array(counts, np.int64).reshape(-1, 2).T
    return pa.array(np.repeat(ranks.astype(np.int32), n_rows))


class _Sums:
    """HOST_SUMS of a file: it has them by step and group, in the order of their first rows."""

    def __init__(self, file: Columns, steps: _IntArray, groups: Coded) -> None:
        places, known = groups
        _, first = np.unique(steps * len(known) + places, return_index=True)
        first.sort()
        self.steps = steps[first]
        self.groups: Coded = (places[first], known)
        self.figures = [file.floats(f"sum.{name}") for name in _TIMES]
        if any(len(values) != len(first) for values in self.figures):
            raise damaged("sums of no group")


def _sums(given: Sequence[tuple[int, _Sums]]) -> pa.Table:
    if not given:
        return schema.empty(schema.HOST_SUMS)
    sums = [one for _, one in given]
    figures = zip(*(one.figures for one in sums), strict=True)
    arrays = [
        _ranks([(rank, len(one.steps)) for rank, one in given]),
        pa.array(np.concatenate([one.steps for one in sums])),
        shared_texts([one.groups for one in sums]),
        *(_figures(np.concatenate(values)) for values in figures),
    ]
    return pa.Table.from_arrays(arrays, schema=schema.HOST_SUMS)


class _Spans:
    """OPERATOR_SPANS of a file that was read where it lies."""

    def __init__(self, file: Columns, n_skipped: int) -> None:
        self.steps = np.repeat(file.ints("step"), file.ints("n_places"))
        self.keys: Coded = file.coded("key")
        begins = file.ints("begin")
        self.lengths = (file.ints("end") - begins).astype(np.int32)
        self.begins = begins + n_skipped


def _spans(given: Sequence[tuple[int, _Spans]]) -> pa.Table:
    if not given:
        return schema.empty(schema.OPERATOR_SPANS)
    spans = [one for _, one in given]
    arrays = [
        _ranks([(rank, len(one.steps)) for rank, one in given]),
        pa.array(np.concatenate([one.steps for one in spans])),
        shared_texts([one.keys for one in spans]),
        pa.array(np.concatenate([np.arange(len(one.steps), dtype=np.int32) for one in spans])),
        pa.array(np.concatenate([one.begins for one in spans])),
        pa.array(np.concatenate([one.lengths for one in spans])),
    ]
    return pa.Table.from_arrays(arrays, schema=schema.OPERATOR_SPANS)


def _figures_of(file: Columns, levels: Levels) -> _FloatArray:
    """Return the figures of an `OperatorFile`; a transport that is not listed carried nothing."""
    values = np.zeros((1 + 2 * _N, levels.n_rows))
    absent, entries = file.ints("absent"), file.ints("entry")
    sizes_mb, times_ms = (file.floats(name) for name in ("size_mb", "time_ms"))
    elapse_ms = levels.of_rows(file.floats("elapse"))
    are_places = levels.are_places(entries // _N) and levels.are_places(absent // _N)
    if not len(entries) == len(sizes_mb) == len(times_ms) or not are_places:
        raise damaged("entries of no operator")
    with np.errstate(over="ignore"):
        values[0] = elapse_ms * numbers.US_PER_MS
        for first, given, factor in (
            (1, sizes_mb, numbers.BYTES_PER_MB),
            (1 + _N, times_ms, numbers.US_PER_MS),
        ):
            values[first + absent % _N, absent // _N] = np.nan
            values[first + entries % _N, entries // _N] = given * factor
    return values


def _payloads_of(file: Columns, levels: Levels, hccs_bytes: _FloatArray) -> _FloatArray:
    """Return what operators carried whose links have no entry of their own, NaN for all others."""
    payloads = np.full(levels.n_rows, np.nan)
    if file.has("nameless"):
        rows = file.ints("nameless")
        if not levels.are_places(rows):
            raise damaged("links of no operator")
        payloads[rows] = hccs_bytes[rows]
    return payloads


class _Packets:
    """PACKETS of a file, which the host has summed."""

    def __init__(self, file: Columns) -> None:
        self.steps = file.ints("packet.step")
        self.groups: Coded = file.coded("packet.group")
        self.transports: Coded = file.coded("packet.transport")
        self.sizes = file.floats("packet.size_mb") * numbers.BYTES_PER_MB
        self.times = file.floats("packet.time_ms") * numbers.US_PER_MS
        self.counts = file.ints("packet.count")
        columns = (self.groups[0], self.transports[0], self.sizes, self.counts, self.times)
        if any(len(column) != len(self.steps) for column in columns):
            raise damaged("packets")


def _packets(files: Sequence[OperatorFile]) -> pa.Table:
    packets = [one.packets for one in files]
    arrays = [
        _ranks([(one.rank, len(one.packets.steps)) for one in files]),
        pa.array(np.concatenate([one.steps for one in packets])),
        shared_texts([one.groups for one in packets]),
        shared_texts([one.transports for one in packets]),
        pa.array(np.concatenate([one.sizes for one in packets])),
        pa.array(np.concatenate([one.counts for one in packets])),
        pa.array(np.concatenate([one.times for one in packets])),
    ]
    return pa.Table.from_arrays(arrays, schema=schema.PACKETS)


def _scaled(values: _FloatArray, factor: float) -> _FloatArray:
    with np.errstate(over="ignore"):
        return values * factor


def _figures(values: _FloatArray) -> pa.Array:
    """Return figures; NaN, and what no float64 holds, becomes null."""
    is_number = np.isfinite(values)
    return pa.array(values) if is_number.all() else pa.array(values, mask=~is_number)
