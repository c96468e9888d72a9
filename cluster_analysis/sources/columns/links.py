"""The columns of communication_matrix.json → the table that the file itself gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
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
    given, keys = (levels.kept_names(file.names(name)) for name in ("op_name", "key"))
    given_names = given.texts()
    given_names = pc.if_else(pc.equal(given_names, ""), None, given_names)
    known_keys, places = keys.distinct()
    known = pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), known_keys.texts())
    groups, op_types, variants, op_names = describe_links(known, given_names, given.operations_of_stems())
    sizes, times = (levels.kept_numbers(file.floats(name)) for name in ("size_mb", "time_ms"))
    columns = {
        "rank": numbers.constant(rank, levels.n_rows, pa.int32()),
        "step": pa.array(levels.steps),
        "group": groups,
        "is_p2p": pc.or_(pa.array(levels.is_p2p), names.point_to_point(op_types)),
        "op_type": op_types,
        "variant": variants,
        "op_name": op_names,
        "src_local": _local_ranks(file, "src_local", levels),
        "dst_local": _local_ranks(file, "dst_local", levels),
        "src_rank": pa.nulls(levels.n_rows, pa.int32()),
        "dst_rank": pa.nulls(levels.n_rows, pa.int32()),
        "transport": levels.kept_texts(file.texts("transport")),
        "size_bytes": _scaled(sizes, numbers.BYTES_PER_MB),
        "time_us": _scaled(times, numbers.US_PER_MS),
    }
    table = pa.table(columns, schema=schema.LINKS)
    tell_missing(table, NEEDED_LINKS, remark)
    are_below_0 = any(np.fmin.reduce(values, initial=0.0) < 0 for values in (sizes, times))
    return without_negative(table, MEASURED_LINKS, remark) if are_below_0 else table


def _scaled(values: npt.NDArray[np.float64], factor: float) -> pa.Array:
    """Return values times factor; NaN becomes null."""
    with np.errstate(over="ignore"):
        return pa.array(values * factor, from_pandas=True)


def _local_ranks(file: ColumnsFile, name: str, levels: Levels) -> pa.Array:
    return pa.array(levels.kept_numbers(file.ints(name))).cast(pa.int32())
