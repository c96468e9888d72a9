"""analysis.db (PyTorch) and communication_analyzer.db (MindSpore, PROF_*): the text files as tables.

µs in StepTraceTime; start µs, else ms and MB in the others. Bandwidth has one row a packet size with size
and time repeated, so they are taken once. A transport without a row moved nothing: 0, as the text form says.
MindSpore's tables lack `step` and `type`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.sources import measured, names, numbers
from cluster_analysis.sources.db import database_columns
from cluster_analysis.sources.db.packets_db import StepOf, read_packets, with_steps
from cluster_analysis.sources.db.sqlite import Database, StepTime, open_database, step_at
from cluster_analysis.sources.errors import Remark, left_out
from cluster_analysis.sources.packets import TRANSPORTS
from cluster_analysis.sources.repeated_steps import without_repeated_steps
from cluster_analysis.sources.text.communication_json import CommunicationTables
from cluster_analysis.sources.text.link_samples import sampled_links
from cluster_analysis.sources.text.matrix_json import describe_links
from cluster_analysis.tables import schema

_STEP_COLUMNS = {
    "computing_us": "computing",
    "communication_not_overlapped_us": "communication_not_overlapped",
    "overlapped_us": "overlapped",
    "communication_us": "communication",
    "free_us": "free",
    "stage_us": "stage",
    "bubble_us": "bubble",
    "communication_not_overlapped_exclude_receive_us": "communication_not_overlapped_and_exclude_receive",
    "preparing_us": "preparing",
}
_TIME_COLUMNS = {
    "elapse_us": "elapse_time",
    "transit_us": "transit_time",
    "wait_us": "wait_time",
    "synchronization_us": "synchronization_time",
    "idle_us": "idle_time",
}
#: Where in a row of `_operator_query` the transports begin.
_CARRIED = 4 + 1 + len(_TIME_COLUMNS)
_TIME, _BANDWIDTH, _MATRIX, _STEPS = (
    "CommAnalyzerTime",
    "CommAnalyzerBandwidth",
    "CommAnalyzerMatrix",
    "StepTraceTime",
)


def read_db_steps(path: Path, rank: int, remark: Remark) -> pa.Table | None:
    """Return STEPS of the database, None where it has no step times.

    Raises:
        BadFileError: the database cannot be read.
    """
    with open_database(path, remark) as database:
        if not database.has(_STEPS, "computing"):
            return None
        wanted = [database.column(_STEPS, name) for name in ("step", *_STEP_COLUMNS.values())]
        rows = database.rows(f"SELECT {', '.join(wanted)} FROM {_STEPS} ORDER BY rowid")
    if not rows:
        return None
    given = list(zip(*rows, strict=True))
    columns: dict[str, pa.Array] = {"rank": numbers.constant(rank, len(rows), pa.int32())}
    columns["step"] = database_columns.steps(given[0], remark)
    for name, values in zip(_STEP_COLUMNS, given[1:], strict=True):
        columns[name] = database_columns.floats(values, remark, are_needed=name in measured.NEEDED_STEPS)
    table = pa.table(columns, schema=schema.STEPS)
    table = measured.without_negative(database_columns.with_step(table), measured.MEASURED_STEPS, remark)
    return without_repeated_steps(table, remark)


def read_db_communication(
    path: Path, rank: int, remark: Remark, times: Sequence[StepTime] = ()
) -> CommunicationTables | None:
    """Return COLLECTIVES and PACKETS of the database, None where it has no communication tables (level 0).

    Where the tables lack the step, an operator belongs to the step of `times` in which it starts; as in the
    text form, one that starts in none is left out.

    Raises:
        BadFileError: the database cannot be read.
    """
    with open_database(path, remark) as database:
        if not database.has(_TIME, "hccl_op_name", "group_name", "elapse_time"):
            return None
        rows = database.rows(_operator_query(database))
        rows, repeated = _told_apart(rows, remark)
        steps = _steps_by_start(database, times)
        packets = read_packets(database, rank, (repeated, steps), remark)
    if steps is not None:
        rows = _in_their_steps(rows, times, remark)
    return CommunicationTables(_collectives(rows, rank, remark), packets)


def _operator_query(database: Database) -> str:
    times = [database.column(_TIME, name) for name in ("start_timestamp", *_TIME_COLUMNS.values())]
    keys = ["hccl_op_name", "group_name", *(key for key in ("step", "type") if database.has(_TIME, key))]
    head = [database.column(_TIME, key) for key in ("hccl_op_name", "group_name", "step", "type")]
    if not database.has(_BANDWIDTH, "hccl_op_name", "transport_type", "transit_size", "transit_time"):
        nothing = ", ".join(["NULL"] * 2 * len(TRANSPORTS))
        return f"SELECT {', '.join(head + times)}, {nothing} FROM {_TIME} ORDER BY {_TIME}.rowid"
    shared = [key for key in keys if database.has(_BANDWIDTH, key)]
    pivots = [
        f"MAX(CASE WHEN transport_type = '{name}' THEN {column} END) AS {name}_{column}"
        for name in TRANSPORTS
        for column in ("transit_size", "transit_time")
    ]
    # Most rows are zeros, as is what lacks a row.
    wide = (
        f"SELECT {', '.join(shared)}, {', '.join(pivots)} FROM {_BANDWIDTH} "
        f"WHERE transit_size <> 0 OR transit_time <> 0 GROUP BY {', '.join(shared)}"
    )
    values = [
        f"COALESCE(wide.{name}_{column}, 0)"
        for name in TRANSPORTS
        for column in ("transit_size", "transit_time")
    ]
    matches = " AND ".join(f"wide.{key} IS {_TIME}.{key}" for key in shared)
    return (
        f"SELECT {', '.join(head + times + values)} FROM {_TIME} LEFT JOIN ({wide}) AS wide ON {matches} "
        f"ORDER BY {_TIME}.rowid"
    )


def _told_apart(
    rows: list[tuple[Any, ...]], remark: Remark
) -> tuple[list[tuple[Any, ...]], frozenset[tuple[Any, ...]]]:
    """Return the rows, and which `(name, group, step)` are several operators: what each carried is null.

    What was carried lies in another table, by these three.
    """
    if len({row[:3] for row in rows}) == len(rows):
        return rows, frozenset()
    counts = Counter(row[:3] for row in rows)
    repeated = frozenset(key for key, count in counts.items() if count > 1)
    remark(left_out(len(repeated), "name", "shared_name"))
    nothing = [None] * 2 * len(TRANSPORTS)
    return [(*row[:_CARRIED], *nothing) if row[:3] in repeated else row for row in rows], repeated


def _steps_by_start(database: Database, times: Sequence[StepTime]) -> StepOf | None:
    """Return the step in which each operator starts; None where the tables say it themselves, or nobody does.

    An operator whose name is there more than once is in none: only its own row has a start.
    """
    if not times or database.has(_TIME, "step") or not database.has(_TIME, "start_timestamp"):
        return None
    found: dict[tuple[str, str], int | None] = {}
    for name, group, start in database.iterate(
        f"SELECT hccl_op_name, group_name, start_timestamp FROM {_TIME}"
    ):
        is_new = (name, group) not in found
        found[name, group] = (
            step_at(times, _ns(start)) if is_new and database_columns.is_number(start) else None
        )
    return {key: step for key, step in found.items() if step is not None}


def _in_their_steps(
    rows: list[tuple[Any, ...]], times: Sequence[StepTime], remark: Remark
) -> list[tuple[Any, ...]]:
    """Put the step into each row in which its operator starts; what starts in none is left out.

    That is what the text form does, and tells nobody. But where it is all of them, something is wrong.
    """
    timed = [row for row in rows if database_columns.is_number(row[4])]
    if len(timed) < len(rows):
        remark(left_out(len(rows) - len(timed), "operator", "no_start"))
    known = [(*row[:2], step_at(times, _ns(row[4])), *row[3:]) for row in timed]
    known = [row for row in known if row[2] is not None]
    if timed and not known:
        remark(left_out(len(timed), "operator", "in_no_step"))
    return known


def _ns(start_us: float) -> int:
    return round(start_us * numbers.NS_PER_US)


def _collectives(rows: list[tuple[Any, ...]], rank: int, remark: Remark) -> pa.Table:
    if not rows:
        return schema.empty(schema.COLLECTIVES)
    given = list(zip(*rows, strict=True))
    op_names = database_columns.texts(given[0])
    op_types = names.operations(op_names)
    # The shortest text that names this float is what the text export writes; it is turned to ns exactly.
    starts = [repr(value) if isinstance(value, float) else str(value) for value in given[4]]
    start_ns, n_bad = numbers.to_ns(pa.array(starts, pa.string()))
    n_bad += given[4].count(None)
    if n_bad:
        remark(left_out(n_bad, "start_time", "no_number"))
    columns: dict[str, pa.Array] = {
        "rank": numbers.constant(rank, len(rows), pa.int32()),
        "step": database_columns.steps(given[2], remark),
        "group": numbers.encoded(database_columns.texts(given[1]).to_pylist()),
        "op_name": op_names,
        "op_type": op_types,
        "op_index": names.indices_in_group(op_names),
        "is_p2p": pa.array(
            [
                kind == "p2p" or alone
                for kind, alone in zip(given[3], names.point_to_point(op_types).to_pylist(), strict=True)
            ]
        ),
        "start_ns": start_ns,
    }
    for position, name in enumerate(_TIME_COLUMNS, start=5):
        values = database_columns.floats(given[position], remark, are_needed=name == "elapse_us")
        columns[name] = pc.multiply(values, numbers.US_PER_MS)
    position = 5 + len(_TIME_COLUMNS)
    for name in TRANSPORTS:
        sizes, times = (
            database_columns.floats(given[position], remark),
            database_columns.floats(given[position + 1], remark),
        )
        columns[f"{name.lower()}_bytes"] = pc.multiply(sizes, numbers.BYTES_PER_MB)
        columns[f"{name.lower()}_us"] = pc.multiply(times, numbers.US_PER_MS)
        position += 2
    columns["payload_bytes"] = pa.nulls(len(next(iter(columns.values()))), pa.float64())
    table = pa.table(columns, schema=schema.COLLECTIVES)
    return measured.without_negative(database_columns.with_step(table), measured.MEASURED_COLLECTIVES, remark)


def read_db_matrix(
    path: Path, rank: int, remark: Remark, times: Sequence[StepTime] = (), is_mindspore: bool = False
) -> pa.Table | None:
    """Return LINKS of the database, None where it has no matrix (level 0); `times` as above.

    MindSpore's links of single operators become the samples and totals that its text form has; the text
    form of PROF_* has single operators too.

    Raises:
        BadFileError: the database cannot be read.
    """
    wanted = (
        "hccl_op_name",
        "group_name",
        "src_rank",
        "dst_rank",
        "transport_type",
        "transit_size",
        "transit_time",
        "step",
        "type",
        "op_name",
    )
    with open_database(path, remark) as database:
        if not database.has(_MATRIX, *wanted[:7]):
            return None
        columns_of_table = [database.column(_MATRIX, name) for name in wanted]
        rows = database.rows(f"SELECT {', '.join(columns_of_table)} FROM {_MATRIX} ORDER BY rowid")
        if not database.has(_MATRIX, "step"):
            rows = with_steps(rows, _steps_by_start(database, times), (0, 1, 7))
    if not rows:
        return schema.empty(schema.LINKS)
    given = list(zip(*rows, strict=True))
    keys = pa.array([f"{name}@{group}" for name, group in zip(given[0], given[1], strict=True)], pa.string())
    named = pa.array([str(name) if name else None for name in given[9]], pa.string())
    groups, op_types, variants, op_names = describe_links(keys, named)
    alone = names.point_to_point(op_types).to_pylist()
    sizes, link_times = (database_columns.floats(values, remark, are_needed=True) for values in given[5:7])
    columns = {
        "rank": numbers.constant(rank, len(rows), pa.int32()),
        "step": database_columns.steps(given[7], remark),
        "group": groups,
        "is_p2p": pa.array([kind == "p2p" or one for kind, one in zip(given[8], alone, strict=True)]),
        "op_type": op_types,
        "variant": variants,
        "op_name": op_names,
        "src_local": database_columns.link_ends(given[2], remark),
        "dst_local": database_columns.link_ends(given[3], remark),
        "src_rank": pa.nulls(len(rows), pa.int32()),
        "dst_rank": pa.nulls(len(rows), pa.int32()),
        "transport": numbers.encoded([None if value is None else str(value) for value in given[4]]),
        "size_bytes": pc.multiply(sizes, numbers.BYTES_PER_MB),
        "time_us": pc.multiply(link_times, numbers.US_PER_MS),
    }
    table = pa.table(columns, schema=schema.LINKS)
    table = measured.without_negative(database_columns.with_step(table), measured.MEASURED_LINKS, remark)
    return sampled_links(table) if is_mindspore else table
