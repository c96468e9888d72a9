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
        counts: of each file how many rows it has, -1 for one that Python must read.
        columns: the cells.
    """

    header: bytes
    counts: list[int]
    columns: list[pa.Array]


def csv_columns(paths: Sequence[str]) -> CsvColumns | None:
    """Return those of the header of the first that are plain; None without the compiled reader."""
    module = compiled()
    if module is None:
        return None
    header, counts, columns = module.csv(paths)
    return CsvColumns(header, array(counts, np.int32).tolist(), list(map(texts, columns)))
