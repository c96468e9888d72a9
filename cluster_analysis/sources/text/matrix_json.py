"""communication_matrix.json: one entry a link, in ms and MB; ranks are local to the group.

`link_names` parses the names of its entries.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from cluster_analysis.sources.columns.columns import GivenColumns
from cluster_analysis.sources.columns.columns_file import ColumnsFile
from cluster_analysis.sources.columns.links import read_links
from cluster_analysis.sources.columns.place import columns_of
from cluster_analysis.sources.compiled.link_columns import links_of_files
from cluster_analysis.sources.errors import Remark
from cluster_analysis.sources.text.json_text import read_bytes
from cluster_reduce.matrix import write_links


def read_matrix(path: Path, rank: int, steps: frozenset[int] | None, remark: Remark) -> pa.Table:
    """Return the links (LINKS) of one file; `src_rank` and `dst_rank` stay null.

    Raises:
        BadFileError: nothing of the file can be used.
    """
    sent = columns_of(path)
    if sent is not None:
        return read_links(ColumnsFile(sent, "matrix"), rank, steps, remark)
    plain = links_of_files([str(path)], [rank], steps)
    if plain is not None:
        return plain.links()
    return read_links(GivenColumns(write_links, read_bytes(path), remark), rank, steps, remark)
