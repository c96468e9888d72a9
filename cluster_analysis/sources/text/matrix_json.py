"""communication_matrix.json: one entry a link, in ms and MB; ranks are local to the group.

`link_names` parses the names of its entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from cluster_analysis.sources.columns.columns import Columns, GivenColumns
from cluster_analysis.sources.columns.columns_file import ColumnsFile
from cluster_analysis.sources.columns.links import links_of
from cluster_analysis.sources.columns.place import columns_of
from cluster_analysis.sources.compiled.columns import links_of_files
from cluster_analysis.sources.compiled.reader import of_plain_files
from cluster_analysis.sources.errors import FileOfRank, Remark
from cluster_analysis.sources.text.json_text import read_bytes
from cluster_analysis.tables.schema import one_behind_the_other
from cluster_reduce.matrix import write_links


def read_matrix(files: Sequence[FileOfRank], remark: Remark) -> pa.Table:
    """Return the links (LINKS) of the files of one or more ranks; `src_rank` and `dst_rank` stay null.

    Raises:
        BadFileError: nothing of a file can be used.
        NotTogetherError: one of several files is not of the plain form; alone it is read by Python.
    """
    paths = [Path(path) for path, _ in files]
    sent = [columns_of(path) for path in paths]
    plain = of_plain_files(files, sent, links_of_files)
    if plain is not None:
        return plain
    found = []
    for path, columns, (_, rank) in zip(paths, sent, files, strict=True):
        given: Columns = (
            GivenColumns(write_links, read_bytes(path), remark)
            if columns is None
            else ColumnsFile(columns, "matrix")
        )
        found.append(links_of(given, rank, remark))
    return one_behind_the_other(found)
