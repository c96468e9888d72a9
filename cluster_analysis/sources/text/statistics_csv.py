"""op_statistic.csv: one row a kind of kernel; api_statistic.csv: one a call of the host into the runtime.

Both are over all steps of the capture, in µs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster_analysis.sources import numbers
from cluster_analysis.sources.errors import Remark, left_out
from cluster_analysis.sources.text.csv_text import named, read_columns
from cluster_analysis.tables import schema

_OP_TIMES = {
    "total_us": "Total Time(us)",
    "min_us": "Min Time(us)",
    "avg_us": "Avg Time(us)",
    "max_us": "Max Time(us)",
}
_OP_COLUMNS = ("OP Type", "Core Type", "Count", *_OP_TIMES.values())
_API_TIMES = {"total_us": "Time(us)", "avg_us": "Avg(us)", "min_us": "Min(us)", "max_us": "Max(us)"}
_API_COLUMNS = ("Level", "API Name", "Count", *_API_TIMES.values())


def read_op_statistic(path: Path, rank: int, remark: Remark) -> pa.Table:
    """Return the kinds of kernels (OPERATORS) of one file.

    Raises:
        BadFileError: nothing of the file can be used.
    """
    text = read_columns(path, _OP_COLUMNS, remark)
    return operators_of(text, rank, remark)


def operators_of(text: pa.Table, ranks: int | npt.NDArray[np.int32], remark: Remark) -> pa.Table:
    """Return OPERATORS of the text of one or more files; `ranks` (N,) is of each row.

    Raises:
        BadFileError: a column is missing.
    """
    text = named(text, _OP_COLUMNS, needed=("OP Type", "Count", "Total Time(us)"))
    names = {"op_type": "OP Type", "core_type": "Core Type"}
    return _table(text, schema.OPERATORS, ranks, names, _OP_TIMES, remark)


def read_api_statistic(path: Path, rank: int, remark: Remark) -> pa.Table:
    """Return the host's calls (APIS) of one file.

    Raises:
        BadFileError: nothing of the file can be used.
    """
    text = read_columns(path, _API_COLUMNS, remark)
    return apis_of(text, rank, remark)


def apis_of(text: pa.Table, ranks: int | npt.NDArray[np.int32], remark: Remark) -> pa.Table:
    """Return APIS of the text of one or more files; `ranks` (N,) is of each row.

    Raises:
        BadFileError: a column is missing.
    """
    text = named(text, _API_COLUMNS, needed=("API Name", "Count", "Time(us)"))
    names = {"level": "Level", "api": "API Name"}
    return _table(text, schema.APIS, ranks, names, _API_TIMES, remark)


def _table(
    text: pa.Table,
    kind: pa.Schema,
    ranks: int | npt.NDArray[np.int32],
    names: Mapping[str, str],
    times: Mapping[str, str],
    remark: Remark,
) -> pa.Table:
    known = {ours: text[theirs].to_pylist() for ours, theirs in names.items() if theirs in text.column_names}
    measured, n_bad = numbers.counts_and_times(text, times)
    if n_bad:
        remark(left_out(n_bad, "cell", "no_number"))
    return schema.rows(kind, ranks, **known, **measured)
