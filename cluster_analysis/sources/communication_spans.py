"""Where in communication.json each operator's JSON lies, so that it can be copied without being decoded.

The decoder checks the whole file and hands out views into its buffer; a view's address tells the position.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping

import msgspec
import numpy as np
import pyarrow as pa

from cluster_analysis.schema import OPERATOR_SPANS
from cluster_analysis.sources import numbers


class Spans:
    """The places of one file's operators, in its order."""

    def __init__(self, content: bytes, file_bytes: int) -> None:
        """`content` is the file of that size, without a byte order mark; positions count it."""
        self._base = pa.py_buffer(content).address - (file_bytes - len(content))
        self._keys: list[str] = []
        self._places: list[tuple[int, int]] = []
        self._addresses = array("q")
        self._lengths = array("i")

    def add(self, step: int, operators: Mapping[str, msgspec.Raw]) -> None:
        """Note the operators of a step; each is a view into the content."""
        self._keys += operators
        self._places.append((step, len(operators)))
        self._addresses.extend([pa.py_buffer(raw).address for raw in operators.values()])
        self._lengths.extend(map(len, operators.values()))

    def table(self, rank: int) -> pa.Table:
        """Return OPERATOR_SPANS of what was added."""
        n_rows = len(self._keys)
        steps = np.array([step for step, _ in self._places], np.int64)
        columns = {
            "rank": numbers.constant(rank, n_rows, pa.int32()),
            "step": pa.array(np.repeat(steps, [count for _, count in self._places])),
            "key": numbers.encoded(self._keys),
            "position": pa.array(np.arange(n_rows, dtype=np.int32)),
            "offset": pa.array(np.frombuffer(self._addresses, np.int64) - self._base),
            "length": pa.array(np.frombuffer(self._lengths, np.int32)),
        }
        return pa.table(columns, schema=OPERATOR_SPANS)
