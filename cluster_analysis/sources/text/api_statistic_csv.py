"""api_statistic.csv: one row a call of the host into the runtime, over all steps, in µs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from cluster_analysis.sources import numbers
from cluster_analysis.sources.errors import BadFileError, Remark, left_out
from cluster_analysis.sources.text.csv_text import read_columns
from cluster_analysis.tables import schema
from cluster_run.facts import fact

_COLUMNS = {"total_us": "Time(us)", "avg_us": "Avg(us)", "min_us": "Min(us)", "max_us": "Max(us)"}


def read_api_statistic(path: Path, rank: int, remark: Remark) -> pa.Table:
    """Return the host's calls (APIS) of one file.

    Raises:
        BadFileError: nothing of the file can be used.
    """
    text = read_columns(path, ("Level", "API Name", "Count", *_COLUMNS.values()), remark)
    missing = {"API Name", "Count", "Time(us)"} - set(text.column_names)
    if missing:
        raise BadFileError(fact("no_column", columns=tuple(sorted(missing))))
    columns: dict[str, pa.Array] = {
        "rank": numbers.constant(rank, text.num_rows, pa.int32()),
        "level": numbers.encoded(
            text["Level"].to_pylist() if "Level" in text.column_names else [None] * text.num_rows
        ),
        "api": text["API Name"],
    }
    measured, n_bad = numbers.counts_and_times(text, _COLUMNS)
    if n_bad:
        remark(left_out(n_bad, "cell", "no_number"))
    return pa.table({**columns, **measured}, schema=schema.APIS)
