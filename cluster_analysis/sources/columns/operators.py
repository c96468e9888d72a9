"""The columns of communication.json → the tables that the file itself gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

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
from cluster_analysis.sources.packets import TRANSPORTS, PacketEntries, packet_sums
from cluster_analysis.sources.text.communication_json import CommunicationTables
from cluster_analysis.tables import schema
from cluster_run.facts import fact

_TIMES = ("elapse", "transit", "wait", "synchronization", "idle")
_N = len(TRANSPORTS)


def read_operator_columns(
    path: Path, rank: int, steps: frozenset[int] | None, remark: Remark
) -> CommunicationTables:
    """Return the operators of one file and their packets; where they lay in it is not known here.

    Raises:
        BadFileError: the columns are damaged.
    """
    file = ColumnsFile(path, "communication")
    levels = Levels(file, "n_operators", "name.places", steps)
    collectives = _collectives(file, levels, rank, remark)
    return CommunicationTables(collectives, _packets(file, levels, collectives, rank, remark))


def _collectives(file: ColumnsFile, levels: Levels, rank: int, remark: Remark) -> pa.Table:
    op_names = levels.kept(file.names("name"))
    groups = levels.kept_texts(file.texts("group"))
    op_types = names.operations(op_names)
    starts = levels.kept(pa.array(file.ints("start_ns")))
    columns: dict[str, pa.Array] = {
        "rank": numbers.constant(rank, levels.n_rows, pa.int32()),
        "step": pa.array(levels.steps),
        "group": groups.cast(schema.COLLECTIVES.field("group").type),
        "op_name": op_names,
        "op_type": op_types,
        "op_index": names.indices_in_group(op_names),
        "is_p2p": pc.or_(pa.array(levels.is_p2p), names.point_to_point(op_types)),
        "start_ns": pc.if_else(pc.less(starts, 0), None, starts),
    }
    for name in _TIMES:
        values = _synchronization(file, levels) if name == "synchronization" else file.floats(name)
        columns[f"{name}_us"] = _scaled(levels.kept_numbers(values), numbers.US_PER_MS)
    size_mb, time_ms = (_of_transports(file, name, levels) for name in ("size_mb", "time_ms"))
    for at, name in enumerate(TRANSPORTS):
        columns[f"{name.lower()}_bytes"] = _scaled(size_mb[:, at], numbers.BYTES_PER_MB)
        columns[f"{name.lower()}_us"] = _scaled(time_ms[:, at], numbers.US_PER_MS)
    columns["payload_bytes"] = pa.nulls(levels.n_rows, pa.float64())
    table = pa.table(columns, schema=schema.COLLECTIVES)
    tell_missing(table, NEEDED_COLLECTIVES, remark)
    return without_negative(table, MEASURED_COLLECTIVES, remark)


def _synchronization(file: ColumnsFile, levels: Levels) -> npt.NDArray[np.float64]:
    """Return the time of all operators; those that are not listed did not synchronise."""
    values = np.zeros(levels.n_all)
    rows, given = file.ints("synchronization.rows"), file.floats("synchronization")
    if len(rows) != len(given) or not levels.are_places(rows):
        raise BadFileError(fact("not_of_form", detail="columns: synchronisation of no operator"))
    values[rows] = given
    return values


def _of_transports(file: ColumnsFile, name: str, levels: Levels) -> npt.NDArray[np.float64]:
    """Return a figure of each kept operator and transport; those that are not listed carried nothing."""
    values = np.zeros(levels.n_all * _N)
    absent, entries, given = file.ints("absent"), file.ints("entry"), file.floats(name)
    are_places = levels.are_places(entries // _N) and levels.are_places(absent // _N)
    if len(entries) != len(given) or not are_places:
        raise BadFileError(fact("not_of_form", detail="columns: entries of no operator"))
    values[absent] = np.nan
    values[entries] = given
    return values.reshape(-1, _N)[levels.is_kept]


def _packets(file: ColumnsFile, levels: Levels, collectives: pa.Table, rank: int, remark: Remark) -> pa.Table:
    places, sizes = file.ints("packet.entry"), file.texts("packet.size_mb")
    figures = np.stack([file.floats("packet.count"), file.floats("packet.time_ms")], axis=1)
    entries = file.ints("entry")
    if (
        len(places) != len(sizes)
        or len(places) != len(figures)
        or (len(places) and not 0 <= int(places.min()) <= int(places.max()) < len(entries))
    ):
        raise BadFileError(fact("not_of_form", detail="columns: packets of no entry"))
    rows, transports = np.divmod(entries[places], _N)
    is_kept = levels.is_kept[rows]
    kept_rows = levels.new_rows[rows[is_kept]]
    packets = PacketEntries(
        levels.steps[kept_rows],
        collectives["group"].combine_chunks().take(pa.array(kept_rows)),
        transports[is_kept],
        sizes.filter(pa.array(is_kept)),
        figures[is_kept],
    )
    return packet_sums(rank, packets, remark)


def _scaled(values: npt.NDArray[np.float64], factor: float) -> pa.Array:
    """Return values times factor; NaN becomes null."""
    return pa.array(values * factor, from_pandas=True)
