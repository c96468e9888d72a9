"""Bytes that each rank moved for a collective, by transport: the evidence on links without a matrix."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cluster_analysis.tables.schema import empty
from cluster_analysis.tables.sent import NAMELESS, SENT, TRANSPORTS
from cluster_analysis.trace.calls import codes, is_point_to_point, numbers


def sent_by_ranks(collectives: pa.Table, links: pa.Table) -> pa.Table:
    """Return SENT of the COLLECTIVES rows of a step; nothing where LINKS rows tell of single links.

    Both ends record a message, so that it needs no row here.
    """
    if links.num_rows:
        return empty(SENT)
    kinds, kind = codes(collectives["op_type"])
    is_collective = ~np.array([is_point_to_point(name) for name in kinds], bool)[kind]
    payload = numbers(collectives["payload_bytes"])
    parts = []
    for transport in TRANSPORTS:
        size, time = (numbers(collectives[f"{transport.lower()}_{unit}"]) for unit in ("bytes", "us"))
        with np.errstate(invalid="ignore"):
            moved = np.flatnonzero(is_collective & (size > 0) & (time > 0))
        if len(moved):
            rows = collectives.select(["step", "rank", "group", "op_type"]).take(pa.array(moved))
            # Links without an entry of their own: see COLLECTIVES.
            is_nameless = (transport == "HCCS") & np.isfinite(payload[moved])
            carrier = pa.DictionaryArray.from_arrays(
                pa.array(is_nameless.astype(np.int32)), pa.array([transport, NAMELESS])
            )
            columns = (*rows.columns, carrier, pa.array(size[moved]), pa.array(time[moved]))
            parts.append(pa.table(dict(zip(SENT.names, columns, strict=True)), schema=SENT))
    return pa.concat_tables(parts) if parts else empty(SENT)
