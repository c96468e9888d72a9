"""CommAnalyzerBandwidth: a row an operator, transport and packet size; MB, ms and GB/s.

Size and time of the operator stand in each row of its packet sizes, so they are taken once; most rows are
zeros, as is what lacks a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.sources.communication_tables import PacketEntries, packet_sums
from cluster_analysis.sources.db import cells
from cluster_analysis.sources.db.sqlite import Database, open_database
from cluster_analysis.sources.errors import Remark, tell_left_out
from cluster_analysis.tables import schema
from cluster_analysis.tables.schema import OF_HOST, TRANSPORT_COLUMNS, TRANSPORTS
from cluster_reduce.levels import parse_step

BANDWIDTH = "CommAnalyzerBandwidth"
_TEXTS = ("hccl_op_name", "group_name", "transport_type")
_KEYS = ("hccl_op_name", "group_name", "step")
_SIZE_AND_TIME = ("transit_size", "transit_time")
#: Columns for each packet size.
_PACKETS = ("package_size", "count", "total_duration")
_FIGURES = (*_SIZE_AND_TIME, "bandwidth", "large_packet_ratio", *_PACKETS)
#: Of an operator: those of _KEYS that the table has.
_Key = tuple[str | None, ...]
_Carried = dict[_Key, dict[str, tuple[float, float]]]
#: Step of each operator, by its name and group.
StepOf = dict[tuple[Any, ...], int]
#: Step, _TEXTS and _FIGURES of a row.
BandwidthRow = tuple[int, str, str, str, float, float, float, float, float, int, float]


def read_carried(
    database: Database, keys: dict[str, pa.DictionaryArray], n: int, remark: Remark
) -> dict[str, FloatArray]:
    """Return MB and ms of n operators, by TRANSPORT_COLUMNS; all are empty where the table has none of them.

    `keys` name the operators, each a column (n,); the table may lack some of them.
    """
    known = database.offers(remark, BANDWIDTH, "hccl_op_name", "transport_type", *_SIZE_AND_TIME)
    found = database.once(_carried)[0] if known else {}
    if not found:
        tell_left_out(remark, n, "operator", "nothing_carried")
        return dict.fromkeys(TRANSPORT_COLUMNS, np.full(n, np.nan))
    rows = cells.rows_of(keys[name] for name in _KEYS if database.has(BANDWIDTH, name))
    tell_left_out(remark, len(found.keys() - set(rows)), "name", "of_no_operator")
    of_operators = [found.get(key, {}) for key in rows]
    nothing = (0.0, 0.0)
    each = [[one for name in TRANSPORTS for one in own.get(name, nothing)] for own in of_operators]
    columns = np.array(each, np.float64).reshape(n, len(TRANSPORT_COLUMNS)).T
    return dict(zip(TRANSPORT_COLUMNS, columns, strict=True))


def _carried(database: Database) -> tuple[_Carried, Set[tuple[_Key, str]]]:
    """Return MB and ms of each operator that carried anything, by transport.

    HCCS stands for links that have no column, as in communication.json; second, what these are called.
    """
    names = ", ".join(name for name in _KEYS if database.has(BANDWIDTH, name))
    most = ", ".join(f"MAX({name})" for name in _SIZE_AND_TIME)
    rows = database.rows(
        f"SELECT {most}, transport_type, {names} FROM {BANDWIDTH} "
        f"WHERE {' OR '.join(f'{name} <> 0' for name in _SIZE_AND_TIME)} GROUP BY transport_type, {names}"
    )
    found: _Carried = {}
    for size, time, transport, *key in rows:
        own = found.setdefault(tuple(None if one is None else str(one) for one in key), {})
        own[str(transport)] = (_given(size), _given(time))
    nameless = set()
    for operator, own in found.items():
        others = set() if own.keys() & OF_HOST else own.keys() - {*TRANSPORTS}
        if others:
            most = max(others, key=own.__getitem__)
            own["HCCS"] = own[most]
            nameless.add((operator, most))
    return found, nameless


def _given(cell: object) -> float:
    return 0.0 if cell is None else cells.as_number(cell)


def in_their_steps(
    step_of: StepOf, names: pa.DictionaryArray, groups: pa.DictionaryArray
) -> list[int | None]:
    """Return the step of each row's operator; None where it is in none."""
    return list(map(step_of.get, cells.rows_of((names, groups))))


def read_packets(
    database: Database, rank: int, repeated: Set[tuple[Any, ...]], step_of: StepOf | None, remark: Remark
) -> pa.Table:
    """Return PACKETS.

    Args:
        database: one of a rank.
        rank: whose it is.
        repeated: `(name, group, step)` of several operators, which are left out.
        step_of: the steps of the others; None where the table has them.
        remark: called for sizes that are no number.
    """
    if not database.offers(remark, BANDWIDTH, *_PACKETS, "transport_type", "group_name"):
        return schema.PACKETS.empty_table()
    sizes, counts, totals = database.numbers(BANDWIDTH, *_PACKETS).values()
    keys = database.texts(BANDWIDTH, "hccl_op_name", "group_name", "step", "transport_type")
    lacking = cells.nothing(len(sizes))
    names, groups, named_steps = (keys.get(name, lacking) for name in _KEYS)
    places = _places(database, keys)
    is_kept = (places >= 0) & (counts > 0)
    if repeated:
        rows = cells.rows_of((names, groups, named_steps))
        is_kept &= np.array([key not in repeated for key in rows], bool)
    if step_of is None:
        steps = cells.plain_steps(named_steps)
    else:
        steps = pa.array(in_their_steps(step_of, names, groups), pa.int64())
        is_kept &= np.asarray(steps.is_valid())
    is_good = np.asarray(steps.is_valid()) & np.isfinite(sizes) & np.isfinite(counts) & np.isfinite(totals)
    n_bad = int(np.count_nonzero(is_kept & ~is_good))
    tell_left_out(remark, n_bad, "packet_size", "no_number")
    is_kept &= is_good
    encoded = pa.array(sizes[is_kept]).dictionary_encode()
    texts = pa.array([repr(size) for size in encoded.dictionary.to_pylist()], pa.string())
    entries = PacketEntries(
        np.full(len(encoded), rank, np.int32),
        np.asarray(steps.filter(pa.array(is_kept))),
        cells.filled(groups.filter(pa.array(is_kept))),
        places[is_kept],
        pa.DictionaryArray.from_arrays(encoded.indices, texts),
        np.column_stack([counts[is_kept], totals[is_kept]]),
    )
    return packet_sums(entries, remark)


def _places(database: Database, keys: Mapping[str, pa.DictionaryArray]) -> IntArray:
    """Return which of TRANSPORTS each row is of; -1 for none, as for a sum of others."""
    known = {name: at for at, name in enumerate(TRANSPORTS)}
    places = np.array(cells.each(keys["transport_type"], lambda one: known.get(one, -1)), np.int64)
    others = np.flatnonzero(places < 0)
    if len(others):
        _, nameless = database.once(_carried)
        rows = cells.rows_of(one.take(pa.array(others)) for name, one in keys.items() if name in _KEYS)
        transports = cells.each(keys["transport_type"].take(pa.array(others)), str)
        is_nameless = [pair in nameless for pair in zip(rows, transports, strict=True)]
        places[others[is_nameless]] = known["HCCS"]
    return places


def bandwidth_rows(path: Path, remark: Remark) -> list[BandwidthRow]:
    """Return the rows of single operators whose step is known, in the order of the table.

    For outputs that hand its packet sizes on: step, _TEXTS and _FIGURES; none where it lacks one of them.
    """
    with open_database(path, remark) as database:
        if not database.has(BANDWIDTH, "step", *_TEXTS, *_FIGURES):
            return []
        texts = database.texts(BANDWIDTH, "step", *_TEXTS)
        figures = database.numbers(BANDWIDTH, *_FIGURES)
    steps = cells.each(texts["step"], lambda value: parse_step(str(value)))
    is_single = cells.each(texts["hccl_op_name"], lambda value: not str(value).startswith("Total"))
    known = {name: np.where(np.isfinite(figures[name]), figures[name], 0.0).tolist() for name in _FIGURES}
    rows = zip(
        steps,
        *(cells.each(texts[name], lambda value: value or "") for name in _TEXTS),
        *(map(int, values) if name == "count" else values for name, values in known.items()),
        strict=True,
    )
    is_wanted = [step is not None and single for step, single in zip(steps, is_single, strict=True)]
    return list(compress(rows, is_wanted))
