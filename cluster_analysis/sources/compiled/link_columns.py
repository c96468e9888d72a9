"""communication_matrix.json by the compiled reader: a link a row, in the files' order, without totals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from cluster_analysis.sources.compiled.arrays import array, named, texts
from cluster_analysis.sources.compiled.operator_columns import Rows
from cluster_analysis.sources.compiled.reader import compiled
from cluster_analysis.sources.link_names import LinkNames, links_table


def links_of_files(paths: Sequence[str], ranks: Sequence[int]) -> pa.Table | None:
    """Return the links (LINKS) of the files of one or more ranks; None where Python must read one of them.

    That is: there is no compiled reader, a file is not of the plain form, or there is something to report.

    Args:
        paths: where they are; one at a time is in memory.
        ranks: whose they are.
    """
    compiled_reader = compiled()
    given = None if compiled_reader is None else compiled_reader.links(paths)
    if given is None:
        return None
    rows = Rows(given, ranks)
    if not rows.are_steps:
        return None
    names = LinkNames(
        array(given["keys"], np.int32),
        texts(given["key_names"]).to_pylist(),
        rows.files,
        array(given["operators"], np.int32),
        texts(given["operator_names"]),
    )
    columns = {
        "rank": pa.array(rows.ranks),
        "step": pa.array(rows.steps),
        "src_local": pa.array(array(given["sources"], np.int32)),
        "dst_local": pa.array(array(given["destinations"], np.int32)),
        "transport": named(given["transports"], given["transport_names"]),
        "size_bytes": pa.array(array(given["sizes_bytes"], np.float64), from_pandas=True),
        "time_us": pa.array(array(given["times_us"], np.float64), from_pandas=True),
    }
    return links_table(names.described(), pa.array(rows.is_p2p), columns)
