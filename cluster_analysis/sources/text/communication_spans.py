"""Where in communication.json each operator's JSON lies, so that it can be copied without being decoded.

The decoder checks the whole file and hands out views into its buffer; a view's address tells the
position. This costs about a millisecond a megabyte.
"""

from __future__ import annotations

from array import array

import msgspec
import numpy as np
import pyarrow as pa

from cluster_analysis.sources import names, numbers
from cluster_analysis.sources.errors import unheard
from cluster_analysis.sources.text.communication_levels import Level, levels_by_step
from cluster_analysis.tables.schema import OPERATOR_SPANS

_LEVELS: msgspec.json.Decoder[Level[msgspec.Raw]] = msgspec.json.Decoder(Level[msgspec.Raw])
_FLAT: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])


def operator_spans(content: bytes, n_skipped: int, rank: int, steps: frozenset[int] | None) -> pa.Table:
    """Return OPERATOR_SPANS of a file that was read without its first `n_skipped` bytes.

    Raises:
        BadFileError: it is not such a file.
    """
    keys: list[str] = []
    places: list[tuple[int, int]] = []
    addresses, lengths = array("q"), array("i")
    for step, _, ops in levels_by_step(content, _LEVELS, _FLAT, unheard):
        if steps is not None and step not in steps:
            continue
        for key in [key for key in ops if key.startswith(names.TOTAL_PREFIX)]:
            del ops[key]
        keys += ops
        places.append((step, len(ops)))
        addresses.extend([pa.py_buffer(view).address for view in ops.values()])
        lengths.extend(map(len, ops.values()))
    base = pa.py_buffer(content).address - n_skipped
    counts = [count for _, count in places]
    columns = {
        "rank": numbers.constant(rank, len(keys), pa.int32()),
        "step": pa.array(np.repeat(np.array([step for step, _ in places], np.int64), counts)),
        "key": numbers.encoded(keys),
        "position": pa.array(np.arange(len(keys), dtype=np.int32)),
        "offset": pa.array(np.frombuffer(addresses, np.int64) - base),
        "length": pa.array(np.frombuffer(lengths, np.int32)),
    }
    return pa.table(columns, schema=OPERATOR_SPANS)
