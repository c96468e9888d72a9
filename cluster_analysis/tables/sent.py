"""Bytes that ranks sent, by transport: known of every operator, also without records of single links."""

from __future__ import annotations

import pyarrow as pa

from cluster_reduce import form

_TEXT = pa.dictionary(pa.int32(), pa.string())

#: Transports whose sums each operator has, in the spelling of link entries.
TRANSPORTS = form.TRANSPORTS
#: Those of links inside a host, whose sum SDMA is.
OF_HOST = frozenset(form.OF_HOST)
#: Columns of a table that has both of each: bytes, and µs.
TRANSPORT_BYTES = tuple(f"{name.lower()}_bytes" for name in TRANSPORTS)
TRANSPORT_TIMES = tuple(f"{name.lower()}_us" for name in TRANSPORTS)
TRANSPORT_COLUMNS = tuple(
    name for both in zip(TRANSPORT_BYTES, TRANSPORT_TIMES, strict=True) for name in both
)
#: Transport of links that have no column: UB and UBoE stand under SDMA alone, or under a name of their own.
NAMELESS = "SDMA"

#: One row a rank, collective and transport, without link entries: what the rank's own links carried for
#: it, and for how long, all of them added.
SENT = pa.schema(
    [
        ("step", pa.int64()),
        ("rank", pa.int32()),
        ("group", _TEXT),
        ("op_type", _TEXT),
        ("transport", _TEXT),
        ("size_bytes", pa.float64()),
        ("time_us", pa.float64()),
    ]
)
