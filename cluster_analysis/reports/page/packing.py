"""Columns for the page: typed arrays behind a JSON header, compressed, as text.

    base64( deflate( u32 header length | header JSON, padded to 8 | column | column | … ) )

The header's `columns` maps a name to `[type, offset from the end of the header, number of values]`. Columns
start at multiples of 8, so that the page can lay typed arrays over the decompressed bytes without a copy.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct

Array = np.ndarray[Any, Any]
#: numpy's name of a type → what the page calls it. Little-endian, as every browser is.
_TYPES = {"float32": "f4", "int32": "i4", "uint8": "u1"}
_DTYPES = {short: np.dtype(long).newbyteorder("<") for long, short in _TYPES.items()}
_ALIGNMENT = 8


class Picture(Struct, frozen=True):
    """What a picture adds to the payload: an entry of the header, None without a picture, and its columns."""

    header: dict[str, Any]
    columns: dict[str, Array]


def pack(header: Mapping[str, object], columns: Mapping[str, Array]) -> str:
    """Return `header` (JSON values) and `columns` (float32, int32 or uint8) as ASCII text.

    Raises:
        ValueError: a column has another type, or the header holds a NaN.
    """
    layout: dict[str, list[object]] = {}
    chunks: list[bytes] = []
    offset = 0
    for name, values in columns.items():
        short = _TYPES.get(values.dtype.name)
        if short is None:
            raise ValueError(
                f"report column {name} has type {values.dtype.name}, one of {list(_TYPES)} wanted"
            )
        content = np.ascontiguousarray(values.reshape(-1), dtype=_DTYPES[short]).tobytes()
        layout[name] = [short, offset, values.size]
        chunks.append(_padded(content))
        offset += len(chunks[-1])
    try:
        text = json.dumps({**header, "columns": layout}, allow_nan=False, separators=(",", ":"))
    except ValueError as error:
        raise ValueError(f"report header: {error}") from error
    # The length field is 4 bytes; 4 blanks more keep the columns aligned.
    head = struct.pack("<I", len(text.encode())) + b"\0" * 4 + _padded(text.encode())
    return base64.b64encode(zlib.compress(head + b"".join(chunks), 6)).decode("ascii")


def _padded(content: bytes) -> bytes:
    return content + b" " * (-len(content) % _ALIGNMENT)
