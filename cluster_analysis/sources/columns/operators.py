"""The columns of communication.json → the tables that the file itself gives, of one or more files.

Of the times of an operator columns hold the elapsed one alone; the others are null, and their sums are told.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster_analysis.sources import numbers
from cluster_analysis.sources.columns.columns_file import ColumnsFile
from cluster_analysis.sources.columns.levels import Levels
from cluster_analysis.sources.columns.name_columns import Names
from cluster_analysis.sources.columns.shared_texts import Coded, shared_texts
from cluster_analysis.sources.communication_tables import CommunicationTables
from cluster_analysis.sources.errors import BadFileError, Remark
from cluster_analysis.sources.measured import (
    MEASURED_COLLECTIVES,
    NEEDED_COLLECTIVES,
    tell_missing,
    without_negative,
)
from cluster_analysis.tables import schema
from cluster_analysis.tables.sent import TRANSPORTS
from cluster_run.facts import fact

_N = len(TRANSPORTS)
_SUMS = ("transit", "wait", "synchronization", "idle")
_FloatArray = npt.NDArray[np.float64]
_IntArray = npt.NDArray[np.int64]


class OperatorFile:
    """The operators of selected steps of one file, as arrays.

    Raises:
        BadFileError: the columns are damaged.
    """

    def __init__(self, path: Path, rank: int, steps: frozenset[int] | None) -> None:
        file = ColumnsFile(path, "communication")
        levels = Levels(file, "n_operators", "name.places", steps)
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
        self.sums = _Sums(file, levels, groups, known_groups)
        self.packets = _Packets(file, steps)

    def is_whole(self) -> bool:
        """Return whether nothing is to be told of: no time is missing, nothing is below 0."""
        elapse = self.figures[0]
        return (
            bool(np.isfinite(elapse).all())
            and not (self.starts_ns < 0).any()
            and float(np.fmin.reduce(self.figures, axis=None, initial=0.0)) >= 0
        )


def read_operator_columns(
    path: Path, rank: int, steps: frozenset[int] | None, remark: Remark
) -> CommunicationTables:
    """Return the operators of one file, their packets and sums; where they lay in it is not known here.

    Raises:
        BadFileError: the columns are damaged.
    """
    file = OperatorFile(path, rank, steps)
    tables = tables_of([file])
    collectives = tables.collectives
    tell_missing(collectives, NEEDED_COLLECTIVES, remark)
    if not file.is_whole():
        collectives = without_negative(collectives, MEASURED_COLLECTIVES, remark)
    return CommunicationTables(collectives, tables.packets, sums=tables.sums)


def tables_of(files: Sequence[OperatorFile]) -> CommunicationTables:
    """Return the tables of one or more files, one file behind the other."""
    return CommunicationTables(_collectives(files), _packets(files), sums=_sums(files))


def _collectives(files: Sequence[OperatorFile]) -> pa.Table:
    op_names = Names.joined([one.names for one in files])
    op_types, is_p2p = op_names.operations()
    starts = np.concatenate([one.starts_ns for one in files])
    figures = np.concatenate([one.figures for one in files], axis=1)
    columns: dict[str, pa.Array] = {
        "rank": _ranks(files, [one.n_rows for one in files]),
        "step": pa.array(np.concatenate([one.steps for one in files])),
        "group": shared_texts([one.groups for one in files]),
        "op_name": op_names.texts(),
        "op_type": op_types,
        "op_index": op_names.indices_in_group(),
        "is_p2p": pa.array(np.concatenate([one.is_p2p for one in files]) | is_p2p),
        "start_ns": pa.array(starts, mask=starts < 0) if (starts < 0).any() else pa.array(starts),
        "elapse_us": _figures(figures[0]),
    }
    for at, name in enumerate(TRANSPORTS):
        columns[f"{name.lower()}_bytes"] = _figures(figures[1 + at])
        columns[f"{name.lower()}_us"] = _figures(figures[1 + _N + at])
    unknown = pa.nulls(len(starts), pa.float64())
    arrays = [columns.get(name, unknown) for name in schema.COLLECTIVES.names]
    return pa.Table.from_arrays(arrays, schema=schema.COLLECTIVES)


def _ranks(files: Sequence[OperatorFile], counts: Sequence[int]) -> pa.Array:
    return pa.array(np.repeat(np.array([one.rank for one in files], np.int32), counts))


class _Sums:
    """TOLD_SUMS of a file: it has them by step and group, in the order of their first rows."""

    def __init__(self, file: ColumnsFile, levels: Levels, groups: _IntArray, known: list[str | None]) -> None:
        given = [file.floats(f"sum.{name}") for name in _SUMS]
        if len(groups) != levels.n_all:
            raise _damaged("groups")
        _, first = np.unique(levels.steps_of_all * len(known) + groups, return_index=True)
        first.sort()
        if any(len(values) != len(first) for values in given):
            raise _damaged("sums of no group")
        is_kept = levels.is_kept[first]
        rows = first[is_kept]
        self.steps = levels.steps_of_all[rows]
        self.groups: Coded = (groups[rows], known)
        self.figures = [values[is_kept] for values in given]


def _sums(files: Sequence[OperatorFile]) -> pa.Table:
    sums = [one.sums for one in files]
    figures = zip(*(one.figures for one in sums), strict=True)
    arrays = [
        _ranks(files, [len(one.steps) for one in sums]),
        pa.array(np.concatenate([one.steps for one in sums])),
        shared_texts([one.groups for one in sums]),
        *(_figures(np.concatenate(values)) for values in figures),
    ]
    return pa.Table.from_arrays(arrays, schema=schema.TOLD_SUMS)


def _figures_of(file: ColumnsFile, levels: Levels) -> _FloatArray:
    """Return the figures of an `OperatorFile`; a transport that is not listed carried nothing."""
    values = np.zeros((1 + 2 * _N, levels.n_all))
    absent, entries = file.ints("absent"), file.ints("entry")
    sizes_mb, times_ms = (file.floats(name) for name in ("size_mb", "time_ms"))
    elapse_ms = file.floats("elapse")
    are_places = levels.are_places(entries // _N) and levels.are_places(absent // _N)
    if not len(entries) == len(sizes_mb) == len(times_ms) or not are_places:
        raise _damaged("entries of no operator")
    if len(elapse_ms) != levels.n_all:
        raise _damaged("columns of different lengths")
    with np.errstate(over="ignore"):
        values[0] = elapse_ms * numbers.US_PER_MS
        for first, given, factor in (
            (1, sizes_mb, numbers.BYTES_PER_MB),
            (1 + _N, times_ms, numbers.US_PER_MS),
        ):
            values[first + absent % _N, absent // _N] = np.nan
            values[first + entries % _N, entries // _N] = given * factor
    return values if levels.n_rows == levels.n_all else values[:, levels.is_kept]


class _Packets:
    """PACKETS of a file, which the host has summed."""

    def __init__(self, file: ColumnsFile, steps: frozenset[int] | None) -> None:
        self.steps = file.ints("packet.step")
        groups, known_groups = file.coded("packet.group")
        transports, known_transports = file.coded("packet.transport")
        sizes = file.floats("packet.size_mb") * numbers.BYTES_PER_MB
        times = file.floats("packet.time_ms") * numbers.US_PER_MS
        counts = file.ints("packet.count")
        if any(len(column) != len(self.steps) for column in (groups, transports, sizes, counts, times)):
            raise _damaged("packets")
        is_kept = slice(None) if steps is None else np.isin(self.steps, sorted(steps))
        self.steps = self.steps[is_kept]
        self.groups: Coded = (groups[is_kept], known_groups)
        self.transports: Coded = (transports[is_kept], known_transports)
        self.sizes, self.times = sizes[is_kept], times[is_kept]
        self.counts = counts[is_kept]


def _packets(files: Sequence[OperatorFile]) -> pa.Table:
    packets = [one.packets for one in files]
    arrays = [
        _ranks(files, [len(one.steps) for one in packets]),
        pa.array(np.concatenate([one.steps for one in packets])),
        shared_texts([one.groups for one in packets]),
        shared_texts([one.transports for one in packets]),
        pa.array(np.concatenate([one.sizes for one in packets])),
        pa.array(np.concatenate([one.counts for one in packets])),
        pa.array(np.concatenate([one.times for one in packets])),
    ]
    return pa.Table.from_arrays(arrays, schema=schema.PACKETS)


def _figures(values: _FloatArray) -> pa.Array:
    """Return figures; NaN, and what no float64 holds, becomes null."""
    is_number = np.isfinite(values)
    return pa.array(values) if is_number.all() else pa.array(values, mask=~is_number)


def _damaged(detail: str) -> BadFileError:
    return BadFileError(fact("not_of_form", detail=f"columns: {detail}"))
