"""The columns of communication_matrix.json → the table that the file itself gives."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.sources import numbers
from cluster_analysis.sources.columns.columns import Columns, damaged
from cluster_analysis.sources.columns.levels import Levels
from cluster_analysis.sources.errors import Remark
from cluster_analysis.sources.link_names import Described, LinkNames, links_table
from cluster_analysis.sources.measured import MEASURED_LINKS, tell_missing, without_impossible
from cluster_analysis.tables import schema


def links_of(file: Columns, rank: int, remark: Remark) -> pa.Table:
    """Return LINKS of one file; what they lack goes to `remark`."""
    levels = Levels(file, "n_links", "src_local")
    keys, operators = (levels.of_rows(file.names(name)) for name in ("key", "op_name"))
    columns = {
        "rank": pa.array(numbers.ranks_of(rank, levels.n_rows)),
        "step": pa.array(levels.steps),
        "src_local": _local_ranks(levels.of_rows(file.ints("src_local"))),
        "dst_local": _local_ranks(levels.of_rows(file.ints("dst_local"))),
        "transport": levels.of_rows(file.texts("transport")),
        "size_bytes": _scaled(levels.of_rows(file.floats("size_mb")), numbers.BYTES_PER_MB),
        "time_us": _scaled(levels.of_rows(file.floats("time_ms")), numbers.US_PER_MS),
    }
    if not levels.n_rows:
        return schema.LINKS.empty_table()
    table = links_table(_described(keys, operators), pa.array(levels.is_p2p), columns)
    tell_missing(table, "links", remark)
    return without_impossible(table, MEASURED_LINKS, remark)


def _described(keys: pa.Array, operators: pa.Array) -> Described:
    """Return what `LinkNames` makes of the entries' names; one without letters names no operator."""
    keys, operators = keys.dictionary_encode(), operators.dictionary_encode()
    places, texts = operators.indices.to_numpy(), operators.dictionary
    is_none = pc.equal(texts, "").to_numpy(zero_copy_only=False)
    given, owners = np.where(is_none[places], -1, places), np.zeros(len(keys), np.int64)
    return LinkNames(keys.indices.to_numpy(), keys.dictionary.to_pylist(), owners, given, texts).described()


def _scaled(values: npt.NDArray[np.float64], factor: float) -> pa.Array:
    """Return values times factor; NaN becomes null."""
    with np.errstate(over="ignore"):
        return pa.array(values * factor, from_pandas=True)


def _local_ranks(values: npt.NDArray[np.int64]) -> pa.Array:
    local = values.astype(np.int32)
    if (local != values).any():
        raise damaged("ranks")
    return pa.array(local)
