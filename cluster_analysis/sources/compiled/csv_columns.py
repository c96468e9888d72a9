"""Small CSV files of several ranks by the compiled reader: their cells as text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from msgspec import Struct

from cluster_analysis.sources.compiled.arrays import array, texts
from cluster_analysis.sources.compiled.reader import compiled


class CsvColumns(Struct, frozen=True):
    """Files of one header, one behind the other.

    Attributes:
        header: the first line of each.
        counts: of each file how many rows it has.
        columns: the cells.
    """

    header: bytes
    counts: list[int]
    columns: list[pa.Array]


def csv_columns(paths: Sequence[str]) -> CsvColumns | None:
    """Return files of one header; None where Python must read one of them."""
    module = compiled()
    found = None if module is None else module.csv(paths)
    if found is None:
        return None
    header, counts, columns = found
    return CsvColumns(header, array(counts, np.int32).tolist(), list(map(texts, columns)))
