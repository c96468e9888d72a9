"""api_statistic.csv: one row a call of the host into the runtime, over all steps, in µs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster_analysis.sources import numbers
from cluster_analysis.sources.errors import Remark, left_out
from cluster_analysis.sources.text.csv_text import named, read_columns
from cluster_analysis.tables import schema

_COLUMNS = {"total_us": "Time(us)", "avg_us": "Avg(us)", "min_us": "Min(us)", "max_us": "Max(us)"}
_WANTED = ("Level", "API Name", "Count", *_COLUMNS.values())


def read_api_statistic(path: Path, rank: int, remark: Remark) -> pa.Table:
    """Return the host's calls (APIS) of one file.

    Raises:
        BadFileError: nothing of the file can be used.
    """
    text = read_columns(path, _WANTED, remark)
    return apis_of(text, numbers.ranks_of(rank, text.num_rows), remark)


def apis_of(text: pa.Table, ranks: npt.NDArray[np.int32], remark: Remark) -> pa.Table:
    """Return APIS of the text of one or more files; `ranks` (N,) is of each row.

    Raises:
        BadFileError: a column is missing.
    """
    text = named(text, _WANTED, needed=("API Name", "Count", "Time(us)"))
    columns: dict[str, pa.Array] = {
        "rank": pa.array(ranks),
        "level": numbers.encoded(
            text["Level"].to_pylist() if "Level" in text.column_names else [None] * text.num_rows
        ),
        "api": text["API Name"],
    }
    measured, n_bad = numbers.counts_and_times(text, _COLUMNS)
    if n_bad:
        remark(left_out(n_bad, "cell", "no_number"))
    return pa.table({**columns, **measured}, schema=schema.APIS)
