"""The columns of communication_matrix.json → the table that the file itself gives."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.sources import names, numbers
from cluster_analysis.sources.columns.columns_file import ColumnsFile
from cluster_analysis.sources.columns.levels import Levels
from cluster_analysis.sources.errors import Remark
from cluster_analysis.sources.measured import MEASURED_LINKS, NEEDED_LINKS, tell_missing, without_negative
from cluster_analysis.sources.text.matrix_json import describe_links
from cluster_analysis.tables import schema


def read_link_columns(path: Path, rank: int, steps: frozenset[int] | None, remark: Remark) -> pa.Table:
    """Return the links (LINKS) of one file; `src_rank` and `dst_rank` stay null.

    Raises:
        BadFileError: the columns are damaged.
    """
    file = ColumnsFile(path, "matrix")
    levels = Levels(file, "n_links", "key.places", steps)
    if not levels.n_rows:
        return schema.empty(schema.LINKS)
    given = levels.kept(file.names("op_name").texts())
    given_names = pc.if_else(pc.equal(given, ""), None, given)
    keys = levels.kept(file.names("key").texts())
    groups, op_types, variants, op_names = describe_links(keys, given_names)
    sizes, times = (
        pa.array(levels.kept_numbers(file.floats(name)), from_pandas=True) for name in ("size_mb", "time_ms")
    )
    columns = {
        "rank": numbers.constant(rank, levels.n_rows, pa.int32()),
        "step": pa.array(levels.steps),
        "group": groups,
        "is_p2p": pc.or_(pa.array(levels.is_p2p), names.point_to_point(op_types)),
        "op_type": op_types,
        "variant": variants,
        "op_name": op_names,
        "src_local": pc.cast(levels.kept(pa.array(file.ints("src_local"))), pa.int32()),
        "dst_local": pc.cast(levels.kept(pa.array(file.ints("dst_local"))), pa.int32()),
        "src_rank": pa.nulls(levels.n_rows, pa.int32()),
        "dst_rank": pa.nulls(levels.n_rows, pa.int32()),
        "transport": levels.kept_texts(file.texts("transport")).cast(schema.LINKS.field("transport").type),
        "size_bytes": pc.multiply(sizes, numbers.BYTES_PER_MB),
        "time_us": pc.multiply(times, numbers.US_PER_MS),
    }
    table = pa.table(columns, schema=schema.LINKS)
    tell_missing(table, NEEDED_LINKS, remark)
    return without_negative(table, MEASURED_LINKS, remark)
