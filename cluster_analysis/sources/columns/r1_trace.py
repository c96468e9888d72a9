"""The columns of step_trace_raw_*.csv → the file itself, byte for byte."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cluster_analysis.sources.columns.columns_file import ColumnsFile
from cluster_analysis.sources.errors import BadFileError
from cluster_reduce.r1_trace import kinds_of_columns
from cluster_run.facts import fact


def trace_of(path: Path) -> bytes:
    """Return what the file held.

    Raises:
        BadFileError: the columns are damaged.
    """
    file = ColumnsFile(path, "r1_trace")
    header = file.names("header").texts().to_pylist()
    labels = file.texts("label").to_pylist()
    cells = np.zeros((len(labels), len(header)), np.int64)
    for name, places in zip(("begin", "length", "end", "other"), kinds_of_columns(header), strict=True):
        values = file.ints(name)
        if len(values) != len(labels) * len(places):
            raise BadFileError(fact("not_of_form", detail="columns: cells of a table"))
        cells[:, places] = values.reshape(len(labels), len(places))
    rows = [
        ",".join([label or "", *map(str, row[1:])]) for label, row in zip(labels, cells.tolist(), strict=True)
    ]
    return "\n".join([",".join(header), *rows, ""]).encode()
