"""cluster_communication_matrix.json as text, made of MATRIX."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.insight.blocks import Blocks, RankSets
from cluster_analysis.insight.matrix import of_all_steps
from cluster_analysis.insight.naming import op_key
from cluster_analysis.numeric.arrays import codes
from cluster_analysis.numeric.sorting import begins
from cluster_run.ids import Rank

#: Links in one piece of text: some megabytes.
_N_ROWS = 20_000


def write_matrix_file(tables: Sequence[pa.Table], members: Mapping[str, tuple[Rank, ...]], path: str) -> None:
    """Write cluster_communication_matrix.json to `path`, of MATRIX of each step: a task for a worker.

    It is sorted by group, step, operation and link.
    """
    sets = RankSets(members)
    with open(path, "wb", 1024 * 1024) as stream:
        stream.writelines(sets.nested(_links(Blocks(of_all_steps(tables), sets, by="place"))))


def _links(blocks: Blocks) -> Iterator[tuple[tuple[int, int], Iterator[bytes]]]:
    """Yield each set and step, and its links as text."""
    for some in _cut(sorted(blocks.places()), blocks):
        first, last = blocks.rows(*some[0])[0], blocks.rows(*some[-1])[1]
        links = _LinkTexts(blocks.table.slice(first, last - first))
        for place in some:
            begin, end = blocks.rows(*place)
            yield place, links.texts(begin - first, end - first)


def _cut(places: Sequence[tuple[int, int]], blocks: Blocks) -> Iterator[list[tuple[int, int]]]:
    """Cut the places, which lie side by side, into some of about `_N_ROWS` rows together."""
    some: list[tuple[int, int]] = []
    n_rows = 0
    for place in places:
        first, last = blocks.rows(*place)
        some.append(place)
        n_rows += last - first
        if n_rows >= _N_ROWS:
            yield some
            some, n_rows = [], 0
    if some:
        yield some


class _LinkTexts:
    """The links of many blocks as text: each call into Arrow costs as much as the text of ten of them."""

    def __init__(self, rows: pa.Table) -> None:
        group = rows["group"].cast(pa.string())
        keys = [rows["label"], group]
        (_, label), (_, of_group) = map(codes, keys)
        self._begins = np.flatnonzero(begins(label) | begins(of_group))
        at = pa.array(self._begins)
        labels, groups = (key.take(at).to_pylist() for key in keys)
        self._keys = [op_key(label, name).encode() for label, name in zip(labels, groups, strict=True)]
        self._texts = _link_json(rows).cast(pa.binary()).to_pylist()

    def texts(self, first: int, last: int) -> Iterator[bytes]:
        """Yield each `"label@group": {"0-1": {…}, …}` of the rows of one block."""
        low, high = np.searchsorted(self._begins, [first, last]).tolist()
        bounds = [*self._begins[low:high].tolist(), last]
        for key, (begin, end) in zip(self._keys[low:high], pairwise(bounds), strict=True):
            yield b'"%b": {%b}' % (key, b", ".join(self._texts[begin:end]))


def _link_json(rows: pa.Table) -> pa.ChunkedArray:
    """Return `"0-1": {…}` of each row."""
    text = {name: rows[name].cast(pa.string()) for name in _SHOWN}
    return pc.binary_join_element_wise(
        '"',
        text["src_rank"],
        "-",
        text["dst_rank"],
        '": {"Transport Type": "',
        text["transport"],
        '", "Transit Time(ms)": ',
        text["time_ms"],
        ', "Transit Size(MB)": ',
        text["size_mb"],
        ', "Op Name": "',
        text["op_name"],
        '", "Bandwidth(GB/s)": ',
        text["bandwidth_gbps"],
        "}",
        "",
    )


_SHOWN = ("src_rank", "dst_rank", "transport", "time_ms", "size_mb", "op_name", "bandwidth_gbps")
