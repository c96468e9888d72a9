"""The columns of communication.json → the tables that the file itself gives.

Of the times of an operator columns hold the elapsed one alone; the others are null, and their sums are told.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster_analysis.sources import names, numbers
from cluster_analysis.sources.columns.columns_file import ColumnsFile
from cluster_analysis.sources.columns.levels import Levels
from cluster_analysis.sources.errors import BadFileError, Remark
from cluster_analysis.sources.measured import (
    MEASURED_COLLECTIVES,
    NEEDED_COLLECTIVES,
    tell_missing,
    without_negative,
)
from cluster_analysis.sources.packets import TRANSPORTS
from cluster_analysis.sources.text.communication_json import CommunicationTables
from cluster_analysis.tables import schema
from cluster_run.facts import fact

_N = len(TRANSPORTS)
_FloatArray = npt.NDArray[np.float64]


def read_operator_columns(
    path: Path, rank: int, steps: frozenset[int] | None, remark: Remark
) -> CommunicationTables:
    """Return the operators of one file, their packets and sums; where they lay in it is not known here.

    Raises:
        BadFileError: the columns are damaged.
    """
    file = ColumnsFile(path, "communication")
    levels = Levels(file, "n_operators", "name.places", steps)
    groups = file.texts("group")
    collectives = _collectives(file, levels, levels.kept_texts(groups), rank, remark)
    packets = _packets(file, steps, rank)
    return CommunicationTables(collectives, packets, sums=_sums(file, levels, groups, rank))


def _collectives(
    file: ColumnsFile, levels: Levels, groups: pa.DictionaryArray, rank: int, remark: Remark
) -> pa.Table:
    op_names = levels.kept_names(file.names("name"))
    op_types = op_names.operations()
    starts = levels.kept_numbers(file.ints("start_ns"))
    is_p2p = levels.is_p2p | names.point_to_point(op_types).to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore"):
        elapse_us = levels.kept_numbers(file.floats("elapse")) * numbers.US_PER_MS
        size_bytes = _of_transports(file, "size_mb", levels) * numbers.BYTES_PER_MB
        time_us = _of_transports(file, "time_ms", levels) * numbers.US_PER_MS
    figures = {"elapse_us": elapse_us}
    for at, name in enumerate(TRANSPORTS):
        figures[f"{name.lower()}_bytes"], figures[f"{name.lower()}_us"] = size_bytes[at], time_us[at]
    columns: dict[str, pa.Array] = {
        "rank": numbers.constant(rank, levels.n_rows, pa.int32()),
        "step": pa.array(levels.steps),
        "group": groups,
        "op_name": op_names.texts(),
        "op_type": op_types,
        "op_index": op_names.indices_in_group(),
        "is_p2p": pa.array(is_p2p),
        "start_ns": pa.array(starts, mask=starts < 0) if (starts < 0).any() else pa.array(starts),
    }
    columns.update((name, _figures(values)) for name, values in figures.items())
    unknown = pa.nulls(levels.n_rows, pa.float64())
    arrays = [columns.get(name, unknown) for name in schema.COLLECTIVES.names]
    table = pa.Table.from_arrays(arrays, schema=schema.COLLECTIVES)
    tell_missing(table, NEEDED_COLLECTIVES, remark)
    if any(float(np.fmin.reduce(values, initial=0.0)) < 0 for values in figures.values()):
        return without_negative(table, MEASURED_COLLECTIVES, remark)
    return table


def _sums(file: ColumnsFile, levels: Levels, groups: pa.DictionaryArray, rank: int) -> pa.Table:
    """Return TOLD_SUMS: the file has them by step and group, in the order of their first rows."""
    given = [file.floats(f"sum.{name}") for name in ("transit", "wait", "synchronization", "idle")]
    of_rows = levels.steps_of_all * len(groups.dictionary) + groups.indices.to_numpy()
    _, first = np.unique(of_rows, return_index=True)
    first.sort()
    if any(len(values) != len(first) for values in given):
        raise BadFileError(fact("not_of_form", detail="columns: sums of no group"))
    is_kept = levels.is_kept[first]
    rows = first[is_kept]
    arrays = [
        numbers.constant(rank, len(rows), pa.int32()),
        pa.array(levels.steps_of_all[rows]),
        groups.take(pa.array(rows)),
        *(_figures(values[is_kept]) for values in given),
    ]
    return pa.Table.from_arrays(arrays, schema=schema.TOLD_SUMS)


def _of_transports(file: ColumnsFile, name: str, levels: Levels) -> _FloatArray:
    """Return a figure of each transport and kept operator; those that are not listed carried nothing."""
    values = np.zeros((_N, levels.n_all))
    absent, entries, given = file.ints("absent"), file.ints("entry"), file.floats(name)
    are_places = levels.are_places(entries // _N) and levels.are_places(absent // _N)
    if len(entries) != len(given) or not are_places:
        raise BadFileError(fact("not_of_form", detail="columns: entries of no operator"))
    values[absent % _N, absent // _N] = np.nan
    values[entries % _N, entries // _N] = given
    return values if levels.n_rows == levels.n_all else values[:, levels.is_kept]


def _packets(file: ColumnsFile, steps: frozenset[int] | None, rank: int) -> pa.Table:
    """Return PACKETS, which the host has summed."""
    numbers_of_steps = file.ints("packet.step")
    columns = [
        numbers.constant(rank, len(numbers_of_steps), pa.int32()),
        pa.array(numbers_of_steps),
        file.texts("packet.group"),
        file.texts("packet.transport"),
        pa.array(file.floats("packet.size_mb") * numbers.BYTES_PER_MB),
        pa.array(file.ints("packet.count")),
        pa.array(file.floats("packet.time_ms") * numbers.US_PER_MS),
    ]
    if any(len(column) != len(numbers_of_steps) for column in columns):
        raise BadFileError(fact("not_of_form", detail="columns: packets"))
    if steps is not None:
        is_kept = pa.array(np.isin(numbers_of_steps, sorted(steps)))
        columns = [column.filter(is_kept) for column in columns]
        columns[2:4] = [column.dictionary_decode().dictionary_encode() for column in columns[2:4]]
    return pa.Table.from_arrays(columns, schema=schema.PACKETS)


def _figures(values: _FloatArray) -> pa.Array:
    """Return figures; NaN, and what no float64 holds, becomes null."""
    is_number = np.isfinite(values)
    return pa.array(values) if is_number.all() else pa.array(values, mask=~is_number)
