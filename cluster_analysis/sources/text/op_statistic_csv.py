"""op_statistic.csv: one row a kind of kernel, over all steps of the capture, in µs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster_analysis.sources import numbers
from cluster_analysis.sources.errors import Remark, left_out
from cluster_analysis.sources.text.csv_text import named, read_columns
from cluster_analysis.tables import schema

_TEXT = schema.OPERATORS.field("op_type").type
_TIMES = {
    "total_us": "Total Time(us)",
    "min_us": "Min Time(us)",
    "avg_us": "Avg Time(us)",
    "max_us": "Max Time(us)",
}
_WANTED = ("OP Type", "Core Type", "Count", *_TIMES.values())


def read_op_statistic(path: Path, rank: int, remark: Remark) -> pa.Table:
    """Return the kinds of kernels (OPERATORS) of one file.

    Raises:
        BadFileError: nothing of the file can be used.
    """
    text = read_columns(path, _WANTED, remark)
    return operators_of(text, numbers.ranks_of(rank, text.num_rows), remark)


def operators_of(text: pa.Table, ranks: npt.NDArray[np.int32], remark: Remark) -> pa.Table:
    """Return OPERATORS of the text of one or more files; `ranks` (N,) is of each row.

    Raises:
        BadFileError: a column is missing.
    """
    text = named(text, _WANTED, needed=("OP Type", "Count", "Total Time(us)"))
    columns: dict[str, pa.Array] = {
        "rank": pa.array(ranks),
        "op_type": numbers.encoded(text["OP Type"].combine_chunks()),
        "core_type": pa.nulls(text.num_rows, _TEXT)
        if "Core Type" not in text.column_names
        else numbers.encoded(text["Core Type"].combine_chunks()),
    }
    measured, n_bad = numbers.counts_and_times(text, _TIMES)
    if n_bad:
        remark(left_out(n_bad, "cell", "no_number"))
    return pa.table({**columns, **measured}, schema=schema.OPERATORS)
