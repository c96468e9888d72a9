"""tables/*.parquet: the merged tables, units in the column names. The same tables give the same bytes."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from cluster_analysis.result import Reported
from cluster_run.layout import TABLES_NAME

#: Version of the tables' columns, kept in each file's metadata under `schema`.
SCHEMA = "cluster-tables/1"
_ROWS_A_GROUP = 1 << 20


def files(given: Reported) -> Iterator[tuple[str, bytes]]:
    """Give one file a table."""
    for name, table in sorted(given.result.tables.items()):
        yield f"{TABLES_NAME}/{name}.parquet", _encoded(table.replace_schema_metadata({"schema": SCHEMA}))


def _encoded(table: pa.Table) -> bytes:
    stream = pa.BufferOutputStream()
    pq.write_table(
        table,
        stream,
        compression="zstd",
        row_group_size=_ROWS_A_GROUP,
        write_statistics=True,
        store_schema=True,
    )
    content: bytes = stream.getvalue().to_pybytes()
    return content
