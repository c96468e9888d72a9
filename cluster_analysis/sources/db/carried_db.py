"""Bytes of each operator over each transport: CommAnalyzerBandwidth, a row an operator and transport.

It has a row a packet size with size and time repeated, so they are taken once; most rows are zeros, as is
what lacks a row.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster_analysis.sources.db.cells import Numbers, as_number, each, rows_of
from cluster_analysis.sources.db.sqlite import Database
from cluster_analysis.sources.errors import Remark
from cluster_analysis.tables.sent import TRANSPORT_COLUMNS, TRANSPORTS

BANDWIDTH = "CommAnalyzerBandwidth"
#: Columns of CommAnalyzerBandwidth for each packet size.
PACKET_FIGURES = ("package_size", "count", "total_duration")
_SIZE_AND_TIME = ("transit_size", "transit_time")


def read_carried(
    database: Database, keys: dict[str, pa.DictionaryArray], n: int, remark: Remark
) -> dict[str, Numbers]:
    """Return MB and ms of n operators, by TRANSPORT_COLUMNS; all are empty without the table.

    `keys` name the operators, each a column (n,); the table may lack some of them.
    """
    width = len(TRANSPORT_COLUMNS)
    if not database.offers(remark, BANDWIDTH, "hccl_op_name", "transport_type", *_SIZE_AND_TIME):
        return dict.fromkeys(TRANSPORT_COLUMNS, np.full(n, np.nan))
    shared = [name for name in keys if database.has(BANDWIDTH, name)]
    names, marks = ", ".join(shared), ", ".join("?" * len(TRANSPORTS))
    most = ", ".join(f"MAX({name})" for name in _SIZE_AND_TIME)
    rows = database.rows(
        f"SELECT {most}, transport_type, {names} FROM {BANDWIDTH} WHERE transport_type IN ({marks}) "
        f"AND ({' OR '.join(f'{name} <> 0' for name in _SIZE_AND_TIME)}) GROUP BY transport_type, {names}",
        TRANSPORTS,
    )
    found: dict[tuple[str | None, ...], list[float]] = {}
    for size, time, transport, *key in rows:
        own = found.setdefault(tuple(None if one is None else str(one) for one in key), [0.0] * width)
        at = 2 * TRANSPORTS.index(transport)
        own[at : at + 2] = (0.0 if one is None else as_number(one) for one in (size, time))
    nothing = [0.0] * width
    of_operators = [found.get(key, nothing) for key in rows_of(keys[name] for name in shared)]
    columns = np.array(of_operators, np.float64).reshape(n, width).T
    return dict(zip(TRANSPORT_COLUMNS, columns, strict=True))


def transport_places(database: Database) -> npt.NDArray[np.int64]:
    """Return the place of each row's transport in TRANSPORTS (N,), -1 for another one."""
    known = {name: at for at, name in enumerate(TRANSPORTS)}
    transports = database.texts(BANDWIDTH, "transport_type")["transport_type"]
    return np.array(each(transports, lambda one: known.get(one, -1)), np.int64)
