"""op_statistic.csv: one row a kind of kernel, over all steps of the capture, in µs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from cluster_analysis.sources import numbers
from cluster_analysis.sources.errors import BadFileError, Remark, left_out
from cluster_analysis.sources.text.csv_text import read_columns
from cluster_analysis.tables import schema
from cluster_run.facts import fact

_TEXT = schema.OPERATORS.field("op_type").type
_TIMES = {
    "total_us": "Total Time(us)",
    "min_us": "Min Time(us)",
    "avg_us": "Avg Time(us)",
    "max_us": "Max Time(us)",
}


def read_op_statistic(path: Path, rank: int, remark: Remark) -> pa.Table:
    """Return the kinds of kernels (OPERATORS) of one file.

    Raises:
        BadFileError: nothing of the file can be used.
    """
    text = read_columns(path, ("OP Type", "Core Type", "Count", *_TIMES.values()), remark)
    missing = {"OP Type", "Count", "Total Time(us)"} - set(text.column_names)
    if missing:
        raise BadFileError(fact("no_column", columns=tuple(sorted(missing))))
    columns: dict[str, pa.Array] = {
        "rank": numbers.constant(rank, text.num_rows, pa.int32()),
        "op_type": numbers.encoded(text["OP Type"].combine_chunks()),
        "core_type": pa.nulls(text.num_rows, _TEXT)
        if "Core Type" not in text.column_names
        else numbers.encoded(text["Core Type"].combine_chunks()),
    }
    measured, n_bad = numbers.counts_and_times(text, _TIMES)
    if n_bad:
        remark(left_out(n_bad, "cell", "no_number"))
    return pa.table({**columns, **measured}, schema=schema.OPERATORS)
