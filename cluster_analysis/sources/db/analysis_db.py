"""analysis.db (PyTorch) and communication_analyzer.db (MindSpore, PROF_*): the text files as tables.

µs in StepTraceTime; start µs, else ms and MB in the others. Bandwidth has one row a packet size with size
and time repeated, so they are taken once. A transport without a row moved nothing: 0, as the text form says.
MindSpore's tables lack `step` and `type`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.sources import measured, names, numbers
from cluster_analysis.sources.communication_tables import CommunicationTables
from cluster_analysis.sources.db import cells
from cluster_analysis.sources.db.bandwidth_db import StepOf, read_carried, read_packets
from cluster_analysis.sources.db.sqlite import Database, StepTime, open_database, step_at
from cluster_analysis.sources.errors import Remark, tell_left_out
from cluster_analysis.sources.text.step_trace_csv import DATABASE_COLUMNS
from cluster_analysis.tables import schema
from cluster_analysis.tables.schema import TRANSPORT_COLUMNS

_TIME_COLUMNS = {
    "elapse_us": "elapse_time",
    "transit_us": "transit_time",
    "wait_us": "wait_time",
    "synchronization_us": "synchronization_time",
    "idle_us": "idle_time",
}
_START = "start_timestamp"
_NEEDED = ("hccl_op_name", "group_name", "elapse_time")
_KEYS = ("hccl_op_name", "group_name", "step")
_PLAIN = (*_KEYS, "type")
TIME, STEPS = "CommAnalyzerTime", "StepTraceTime"


class _Operators(Struct, frozen=True):
    """Operators as the tables have them; what they lack is empty.

    Attributes:
        texts: _PLAIN.
        numbers: the start (µs), _TIME_COLUMNS (ms), and TRANSPORT_COLUMNS (MB and ms).
    """

    texts: Mapping[str, pa.DictionaryArray]
    numbers: Mapping[str, FloatArray]


def read_db_steps(path: Path, rank: int, remark: Remark) -> pa.Table | None:
    """Return STEPS of the database, None where it has no step times."""
    with open_database(path, remark) as database:
        if not database.offers(remark, STEPS, "step", "computing"):
            return None
        given = database.texts(STEPS, "step")
        times = database.numbers(STEPS, *DATABASE_COLUMNS.values())
    n = len(times["computing"])
    if not n:
        return None
    columns = {"step": cells.steps(given["step"], remark)}
    measured.tell_no_columns({DATABASE_COLUMNS[name] for name in schema.NEEDED_STEPS} - set(times), remark)
    for name, column in DATABASE_COLUMNS.items():
        is_needed = name in schema.NEEDED_STEPS and column in times
        columns[name] = cells.floats(times.get(column, np.full(n, np.nan)), remark, are_needed=is_needed)
    table = schema.rows(schema.STEPS, rank, **columns)
    table = measured.sound_steps(cells.with_step(table), remark, measured.OF_TORCH_STEPS)
    return measured.of_own_device(measured.without_unknown_begin(table), remark)


def read_db_communication(
    path: Path, rank: int, remark: Remark, times: Sequence[StepTime] = ()
) -> CommunicationTables | None:
    """Return COLLECTIVES and PACKETS of the database, None where it has no communication tables (level 0).

    Where the tables lack the step, an operator belongs to the step of `times` in which it starts; as in the
    text form, one that starts in none is left out.
    """
    with open_database(path, remark) as database:
        if not database.offers(remark, TIME, *_NEEDED):
            return None
        operators, repeated = _distinct(_operators(database, remark), remark)
        steps = steps_by_start(database, times)
        packets = read_packets(database, rank, repeated, steps, remark)
    if steps is not None:
        operators = _in_their_steps(operators, times, remark)
    return CommunicationTables(_collectives(operators, rank, remark), packets)


def _operators(database: Database, remark: Remark) -> _Operators:
    texts = database.texts(TIME, *_PLAIN)
    n = len(texts["hccl_op_name"])
    times = database.numbers(TIME, _START, *_TIME_COLUMNS.values())
    unknown = np.full(n, np.nan)
    return _Operators(
        {**dict.fromkeys(_PLAIN, cells.nothing(n)), **texts},
        {
            **dict.fromkeys((_START, *_TIME_COLUMNS.values()), unknown),
            **times,
            **read_carried(database, texts, n, remark),
        },
    )


def _distinct(operators: _Operators, remark: Remark) -> tuple[_Operators, frozenset[tuple[Any, ...]]]:
    """Return the operators, and which `(name, group, step)` several share: their bytes are null.

    Bytes lie in another table, by these three.
    """
    keys = cells.rows_of(operators.texts[name] for name in _KEYS)
    repeated = frozenset(key for key, n in Counter(keys).items() if n > 1)
    if not repeated:
        return operators, repeated
    tell_left_out(remark, len(repeated), "name", "shared_name")
    is_repeated = np.array([key in repeated for key in keys], bool)
    known = {name: np.where(is_repeated, np.nan, operators.numbers[name]) for name in TRANSPORT_COLUMNS}
    return _Operators(operators.texts, {**operators.numbers, **known}), repeated


def steps_by_start(database: Database, times: Sequence[StepTime]) -> StepOf | None:
    """Return the step in which each operator starts; None if the tables name steps, or no table does.

    An operator whose name is there more than once is in none: only its own row has a start.
    """
    names = ("hccl_op_name", "group_name")
    if not times or database.has(TIME, "step") or not database.has(TIME, *names, _START):
        return None
    found: dict[tuple[Any, ...], int | None] = {}
    starts = database.numbers(TIME, _START)[_START].tolist()
    for key, start in zip(cells.rows_of(database.texts(TIME, *names).values()), starts, strict=True):
        is_new = key not in found
        found[key] = step_at(times, _ns(start)) if is_new and math.isfinite(start) else None
    return {key: step for key, step in found.items() if step is not None}


def _in_their_steps(operators: _Operators, times: Sequence[StepTime], remark: Remark) -> _Operators:
    """Put the step into each row in which its operator starts; what starts in none is left out.

    That is what the text form does, and reports nothing. But where it is all of them, something is wrong.
    """
    starts = operators.numbers[_START]
    is_timed = np.isfinite(starts)
    n_timed = int(np.count_nonzero(is_timed))
    tell_left_out(remark, len(starts) - n_timed, "operator", "no_start")
    steps = [
        step_at(times, _ns(start)) if is_one else None
        for start, is_one in zip(starts.tolist(), is_timed.tolist(), strict=True)
    ]
    if n_timed and not any(step is not None for step in steps):
        tell_left_out(remark, n_timed, "operator", "in_no_step")
    is_in = np.array([step is not None for step in steps], bool)
    texts = {**operators.texts, "step": cells.as_texts(steps)}
    return _Operators(
        {name: column.filter(pa.array(is_in)) for name, column in texts.items()},
        {name: column[is_in] for name, column in operators.numbers.items()},
    )


def _ns(start_us: float) -> int:
    whole = int(start_us)
    return whole * numbers.NS_PER_US if whole == start_us else round(start_us * numbers.NS_PER_US)


def _collectives(operators: _Operators, rank: int, remark: Remark) -> pa.Table:
    texts, figures = operators.texts, operators.numbers
    if not len(figures[_START]):
        return schema.COLLECTIVES.empty_table()
    op_names = cells.filled(texts["hccl_op_name"]).dictionary_decode()
    is_start = np.isfinite(figures[_START])
    start_ns, n_bad = numbers.floats_to_ns(pa.array(figures[_START], mask=~is_start))
    n_bad += int(np.count_nonzero(~is_start))
    tell_left_out(remark, n_bad, "start_time", "no_number")
    columns: dict[str, pa.Array] = {
        "step": cells.steps(texts["step"], remark),
        "group": cells.filled(texts["group_name"]),
        **names.of_operators(op_names, is_p2p(texts["type"])),
        "start_ns": start_ns,
    }
    for column, given in _TIME_COLUMNS.items():
        values = cells.floats(figures[given], remark, are_needed=column == "elapse_us")
        columns[column] = pc.multiply(values, numbers.US_PER_MS)
    for column in TRANSPORT_COLUMNS:
        unit = numbers.US_PER_MS if column.endswith("_us") else numbers.BYTES_PER_MB
        columns[column] = pc.multiply(cells.floats(figures[column], remark), unit)
    table = schema.rows(schema.COLLECTIVES, rank, **columns)
    return measured.sound_operators(cells.with_step(table), remark)


def is_p2p(kinds: pa.DictionaryArray) -> pa.Array:
    """Return which cells of `type` say point to point (N,)."""
    return pc.fill_null(pc.equal(kinds.dictionary, "p2p").take(kinds.indices), False)
