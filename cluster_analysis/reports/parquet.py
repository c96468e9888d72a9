"""tables/*.parquet: the merged tables, units in the column names. The same tables give the same bytes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cluster_analysis.result import AnalysisResult

#: Version of the tables' columns, kept in each file's metadata under `schema`.
SCHEMA = "cluster-tables/1"
_ROWS_A_GROUP = 1 << 20


def write(result: AnalysisResult, folder: Path) -> None:
    """Write one file a table into `folder`, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in sorted(result.tables.items()):
        described = table.replace_schema_metadata({"schema": SCHEMA})
        _write_one(described, folder / f"{name}.parquet")


def _write_one(table: pa.Table, path: Path) -> None:
    pq.write_table(
        table,
        path,
        compression="zstd",
        row_group_size=_ROWS_A_GROUP,
        write_statistics=True,
        store_schema=True,
    )
