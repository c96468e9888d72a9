"""The columns of communication.json → the tables that the file itself gives, of one or more files.

Hosts send only the elapsed time of an operator. The other times are null, and hosts send their sums.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec.structs import replace

from cluster_analysis.sources import numbers
from cluster_analysis.sources.columns.columns import Columns, damaged
from cluster_analysis.sources.columns.levels import Levels
from cluster_analysis.sources.columns.name_columns import Names
from cluster_analysis.sources.columns.shared_texts import Coded, shared_texts
from cluster_analysis.sources.communication_tables import CommunicationTables
from cluster_analysis.sources.errors import Remark
from cluster_analysis.sources.measured import (
    MEASURED_COLLECTIVES,
    NEEDED_COLLECTIVES,
    tell_missing,
    without_negative,
)
from cluster_analysis.tables import schema
from cluster_analysis.tables.sent import TRANSPORTS

_N = len(TRANSPORTS)
#: Times of which hosts send sums alone.
_TIMES = ("transit", "wait", "synchronization", "idle")
_MEASURED = 3
_FloatArray = npt.NDArray[np.float64]
_IntArray = npt.NDArray[np.int64]


class OperatorFile:
    """The operators of selected steps of one file, as arrays.

    Raises:
        BadFileError: the columns are damaged.
    """

    def __init__(self, file: Columns, rank: int, steps: frozenset[int] | None) -> None:
        levels = Levels(file, "n_operators", "start_ns", steps)
        groups, known_groups = file.coded("group")
        self.rank = rank
        self.n_rows = levels.n_rows
        self.steps = levels.steps
        self.is_p2p = levels.is_p2p
        self.groups: Coded = (levels.kept_numbers(groups), known_groups)
        self.names = levels.kept_names(file.names("name"))
        self.starts_ns = levels.kept_numbers(file.ints("start_ns"))
        #: (1 + 2 × transports, N); elapsed time in µs, then bytes of each transport, then its µs.
        self.figures = _figures_of(file, levels)
        self.payloads = _payloads_of(file, levels, self.figures[1])
        self.packets = _Packets(file, steps)
        #: (4, N); the other times in µs, None where their sums came.
        self.times: _FloatArray | None = None
        self.sums: _Sums | None = None
        self.spans: _Spans | None = None
        if file.has(_TIMES[0]):
            given = (levels.kept_numbers(file.floats(name)) for name in _TIMES)
            self.times = np.stack([_scaled(values, numbers.US_PER_MS) for values in given])
            self.spans = _Spans(file, steps)
        else:
            self.sums = _Sums(file, levels, groups, known_groups)

    def is_whole(self) -> bool:
        """Return whether there is nothing to report: no time is missing, nothing is below 0."""
        elapse = self.figures[0]
        measured = [self.figures, *([] if self.times is None else [self.times[:_MEASURED]])]
        return (
            bool(np.isfinite(elapse).all())
            and not (self.starts_ns < 0).any()
            and all(float(np.fmin.reduce(one, axis=None, initial=0.0)) >= 0 for one in measured)
        )


def read_operators(
    columns: Columns, rank: int, steps: frozenset[int] | None, remark: Remark
) -> CommunicationTables:
    """Return the operators of one file, their packets and sums, or where they lie in it.

    Raises:
        BadFileError: the columns are damaged.
    """
    file = OperatorFile(columns, rank, steps)
    tables = tables_of([file])
    if file.is_whole():
        return tables
    tell_missing(tables.collectives, NEEDED_COLLECTIVES, remark)
    return replace(tables, collectives=without_negative(tables.collectives, MEASURED_COLLECTIVES, remark))


def tables_of(files: Sequence[OperatorFile]) -> CommunicationTables:
    """Return the tables of one or more files, one file behind the other."""
    return CommunicationTables(
        _collectives(files),
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

    def __init__(self, file: Columns, levels: Levels, groups: _IntArray, known: list[str | None]) -> None:
        given = [file.floats(f"sum.{name}") for name in _TIMES]
        if len(groups) != levels.n_all:
            raise damaged("groups")
        _, first = np.unique(levels.steps_of_all * len(known) + groups, return_index=True)
        first.sort()
        if any(len(values) != len(first) for values in given):
            raise damaged("sums of no group")
        is_kept = levels.is_kept[first]
        rows = first[is_kept]
        self.steps = levels.steps_of_all[rows]
        self.groups: Coded = (groups[rows], known)
        self.figures = [values[is_kept] for values in given]


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

    def __init__(self, file: Columns, steps: frozenset[int] | None) -> None:
        every_step, counts = file.ints("step"), file.ints("n_places")
        of_rows = np.repeat(every_step, counts)
        is_kept = np.ones(len(of_rows), bool) if steps is None else np.isin(of_rows, sorted(steps))
        keys, known = file.coded("key")
        begins, ends = file.ints("begin")[is_kept], file.ints("end")[is_kept]
        self.steps = of_rows[is_kept]
        self.keys: Coded = (keys[is_kept], known)
        self.begins, self.lengths = begins, (ends - begins).astype(np.int32)


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
    values = np.zeros((1 + 2 * _N, levels.n_all))
    absent, entries = file.ints("absent"), file.ints("entry")
    sizes_mb, times_ms = (file.floats(name) for name in ("size_mb", "time_ms"))
    elapse_ms = file.floats("elapse")
    are_places = levels.are_places(entries // _N) and levels.are_places(absent // _N)
    if not len(entries) == len(sizes_mb) == len(times_ms) or not are_places:
        raise damaged("entries of no operator")
    if len(elapse_ms) != levels.n_all:
        raise damaged("columns of different lengths")
    with np.errstate(over="ignore"):
        values[0] = elapse_ms * numbers.US_PER_MS
        for first, given, factor in (
            (1, sizes_mb, numbers.BYTES_PER_MB),
            (1 + _N, times_ms, numbers.US_PER_MS),
        ):
            values[first + absent % _N, absent // _N] = np.nan
            values[first + entries % _N, entries // _N] = given * factor
    return values if levels.n_rows == levels.n_all else values[:, levels.is_kept]


def _payloads_of(file: Columns, levels: Levels, hccs_bytes: _FloatArray) -> _FloatArray:
    """Return what operators carried whose links have no entry of their own, NaN for all others."""
    payloads = np.full(levels.n_all, np.nan)
    if file.has("nameless"):
        rows = file.ints("nameless")
        if not levels.are_places(rows):
            raise damaged("links of no operator")
        payloads[rows] = 0.0
    kept = levels.kept_numbers(payloads)
    return np.where(np.isnan(kept), np.nan, hccs_bytes)


class _Packets:
    """PACKETS of a file, which the host has summed."""

    def __init__(self, file: Columns, steps: frozenset[int] | None) -> None:
        self.steps = file.ints("packet.step")
        groups, known_groups = file.coded("packet.group")
        transports, known_transports = file.coded("packet.transport")
        sizes = file.floats("packet.size_mb") * numbers.BYTES_PER_MB
        times = file.floats("packet.time_ms") * numbers.US_PER_MS
        counts = file.ints("packet.count")
        if any(len(column) != len(self.steps) for column in (groups, transports, sizes, counts, times)):
            raise damaged("packets")
        is_kept = slice(None) if steps is None else np.isin(self.steps, sorted(steps))
        self.steps = self.steps[is_kept]
        self.groups: Coded = (groups[is_kept], known_groups)
        self.transports: Coded = (transports[is_kept], known_transports)
        self.sizes, self.times = sizes[is_kept], times[is_kept]
        self.counts = counts[is_kept]


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
