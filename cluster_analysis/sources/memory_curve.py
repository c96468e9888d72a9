"""Memory over time, thinned: the largest values in each of equal spans of the capture."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.sources import numbers
from cluster_analysis.sources.errors import Remark, unheard
from cluster_analysis.sources.text.csv_text import read_columns
from cluster_analysis.tables import schema

#: Moments a component: enough to draw, and the peaks are kept.
N_MOMENTS = 120
_MIB = 2.0**20
_COLUMNS = {
    "allocated_bytes": "Total Allocated(MB)",
    "reserved_bytes": "Total Reserved(MB)",
    "active_bytes": "Total Active(MB)",
}


def read_memory_curve(path: Path, rank: int, remark: Remark) -> pa.Table | None:
    """Return MEMORY of memory_record.csv; None where it has no record. Bad cells are reported elsewhere."""
    needed = ("Component", "Timestamp(us)")
    text = read_columns(path, (*needed, *_COLUMNS.values()), unheard, needed=needed)
    # As ns, because µs since 1970 with three decimals do not fit a float64.
    times, _ = numbers.to_ns(text["Timestamp(us)"].combine_chunks())
    columns: dict[str, pa.Array] = {"component": text["Component"], "time_ns": times}
    for name, column in _COLUMNS.items():
        if column in text.column_names:
            columns[name] = pc.multiply(numbers.to_float64(text[column])[0], _MIB)
        else:
            columns[name] = pa.nulls(text.num_rows, pa.float64())
    return thinned(pa.table(columns), rank)


def thinned(records: pa.Table, rank: int) -> pa.Table | None:
    """Return MEMORY of records with `component`, `time_ns` and the columns of bytes."""
    records = records.filter(pc.is_valid(records["time_ns"]))
    if not records.num_rows:
        return None
    first, last = pc.min(records["time_ns"]).as_py(), pc.max(records["time_ns"]).as_py()
    span = max(1, -(-(last - first + 1) // N_MOMENTS))
    moment = pc.divide(pc.subtract(records["time_ns"], first), span)
    grouped = (
        records.append_column("moment", moment)
        .group_by(["component", "moment"], use_threads=False)
        .aggregate([(name, "max") for name in _COLUMNS])
        .sort_by([("component", "ascending"), ("moment", "ascending")])
    )
    return schema.rows(
        schema.MEMORY,
        rank,
        component=grouped["component"].to_pylist(),
        time_us=pc.divide(pc.cast(pc.multiply(grouped["moment"], span), pa.float64()), numbers.NS_PER_US),
        **{name: grouped[f"{name}_max"] for name in _COLUMNS},
    )
