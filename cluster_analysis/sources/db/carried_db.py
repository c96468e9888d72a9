"""Bytes of each operator over each transport: CommAnalyzerBandwidth, a row an operator and transport.

It has a row a packet size with size and time repeated, so they are taken once; most rows are zeros, as is
what lacks a row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.sources.db.cells import Cells, as_list, codes_of, is_coded, joined
from cluster_analysis.sources.db.database_columns import are_plain
from cluster_analysis.sources.db.sqlite import Database
from cluster_analysis.tables.sent import TRANSPORTS

BANDWIDTH = "CommAnalyzerBandwidth"
#: Columns of CommAnalyzerBandwidth for each packet size.
PACKET_FIGURES = ("package_size", "count", "total_duration")
_SIZE_AND_TIME = ("transit_size", "transit_time")


def read_carried(database: Database, keys: dict[str, Cells], n: int) -> list[Cells]:
    """Return MB and ms of each transport in turn, a column each, for n operators; empty without the table.

    `keys` name the operators, each a column (n,); the table may lack some of them.
    """
    if not database.has(BANDWIDTH, "hccl_op_name", "transport_type", *_SIZE_AND_TIME):
        return [pa.nulls(n)] * 2 * len(TRANSPORTS)
    shared = [name for name in keys if database.has(BANDWIDTH, name)]
    theirs = database.coded(BANDWIDTH, *shared)
    figures = database.cells(BANDWIDTH, *_SIZE_AND_TIME, are_floats=True)
    named = [joined(keys[name], own) for name, own in zip(shared, theirs, strict=True)]
    codes = codes_of([pa.nulls(n + len(figures[0])), *named])
    largest = _largest if all(map(are_plain, figures)) else _largest_of_any
    return largest(codes[:n], codes[n:], database.once(transport_places), figures)


def transport_places(database: Database) -> npt.NDArray[np.int64]:
    """Return the place of each row's transport in TRANSPORTS (N,), -1 for another one."""
    (transports,) = database.coded(BANDWIDTH, "transport_type")
    if not is_coded(transports):
        known = {name: at for at, name in enumerate(TRANSPORTS)}
        return np.array([known.get(one, -1) for one in as_list(transports)], np.int64)
    names = [*transports.dictionary.to_pylist(), None]
    known_places = np.array([TRANSPORTS.index(name) if name in TRANSPORTS else -1 for name in names])
    places: npt.NDArray[np.int64] = known_places[pc.fill_null(transports.indices, len(names) - 1).to_numpy()]
    return places


def _largest(
    wanted: npt.NDArray[np.int64],
    codes: npt.NDArray[np.int64],
    places: npt.NDArray[np.int64],
    figures: Sequence[pa.Array],
) -> list[Cells]:
    values = np.stack([one.to_numpy() for one in figures], axis=1)
    kept = (places >= 0) & values.any(axis=1)
    n_codes = int(max(wanted.max(initial=-1), codes.max(initial=-1))) + 1
    found = np.zeros((n_codes, len(TRANSPORTS), len(_SIZE_AND_TIME)))
    at, values = (codes[kept], places[kept]), values[kept]
    found[at] = values
    if (found[at] != values).any():
        # Not repeated, unlike what profilers write.
        found[at] = -np.inf
        np.maximum.at(found, at, values)
    columns = found[wanted].reshape(len(wanted), len(TRANSPORTS) * len(_SIZE_AND_TIME))
    return [pa.array(np.ascontiguousarray(column)) for column in columns.T]


def _largest_of_any(
    wanted: npt.NDArray[np.int64],
    codes: npt.NDArray[np.int64],
    places: npt.NDArray[np.int64],
    figures: Sequence[Cells],
) -> list[Cells]:
    """Return the same of cells of any type: empty ones count for nothing, texts are more than numbers."""
    largest: dict[tuple[int, int, int], tuple[bool, object]] = {}
    for code, place, *pair in zip(codes.tolist(), places.tolist(), *map(as_list, figures), strict=True):
        if place < 0 or all(value is None or value == 0 for value in pair):
            continue
        for which, value in enumerate(pair):
            if value is None:
                continue
            rank = (not isinstance(value, float), value)
            key = (code, place, which)
            if key not in largest or rank > largest[key]:
                largest[key] = rank
    return [
        [largest.get((code, place, which), (False, 0.0))[1] for code in wanted.tolist()]
        for place in range(len(TRANSPORTS))
        for which in range(len(_SIZE_AND_TIME))
    ]
