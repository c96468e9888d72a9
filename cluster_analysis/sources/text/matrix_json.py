"""communication_matrix.json: one entry a link, in ms and MB; ranks are local to the group.

What the names of its entries say is in `link_names`.
"""

from __future__ import annotations

import re
from operator import attrgetter
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.sources import names, numbers
from cluster_analysis.sources.compiled.link_columns import links_of_files
from cluster_analysis.sources.errors import BadFileError, Remark, left_out
from cluster_analysis.sources.link_names import describe_links, links_table
from cluster_analysis.sources.measured import (
    MEASURED_LINKS,
    NEEDED_LINKS,
    tell_missing,
    without_negative,
)
from cluster_analysis.sources.text.communication_levels import Level, levels_by_step, whole_steps
from cluster_analysis.sources.text.json_text import read_bytes
from cluster_analysis.tables import schema

#: No job has ranks of more digits: a damaged one must not become a group of that size.
_ENDS = re.compile(r"^\s*(\d{1,6})\s*-\s*(\d{1,6})\s*$")


class _Link(msgspec.Struct, gc=False, frozen=True):
    transport: str | None = msgspec.field(name="Transport Type", default=None)
    size: float | None = msgspec.field(name="Transit Size(MB)", default=None)
    time: float | None = msgspec.field(name="Transit Time(ms)", default=None)
    pytorch_name: str | None = msgspec.field(name="Op Name", default=None)
    mindspore_name: str | None = msgspec.field(name="op_name", default=None)


_Pairs = dict[str, _Link]
_Links = dict[str, _Pairs]


_LEVELS: msgspec.json.Decoder[Level[_Pairs]] = msgspec.json.Decoder(Level[_Pairs])
_FLAT: msgspec.json.Decoder[_Links] = msgspec.json.Decoder(_Links)


def read_matrix(path: Path, rank: int, steps: frozenset[int] | None, remark: Remark) -> pa.Table:
    """Return the links (LINKS) of one file; `src_rank` and `dst_rank` stay null.

    Raises:
        BadFileError: nothing of the file can be used.
    """
    plain = links_of_files([str(path)], [rank], steps)
    if plain is not None:
        return plain.links()
    content = read_bytes(path)
    try:
        rows = _rows_of(content, steps, remark)
    except BadFileError as error:
        rows = _rows_of(whole_steps(content, error, remark), steps, remark)
    return rows.table(rank)


def _rows_of(content: bytes, steps: frozenset[int] | None, remark: Remark) -> _Rows:
    rows = _Rows(remark)
    for step, is_p2p, links in levels_by_step(content, _LEVELS, _FLAT, remark):
        if steps is None or step in steps:
            rows.add(step, is_p2p, links)
    return rows


class _Rows:
    """Links of one file as columns, made into a table once: a table a step would cost more than its rows."""

    def __init__(self, remark: Remark) -> None:
        self._remark = remark
        self._keys: list[str] = []
        self._ends: list[tuple[int, int]] = []
        self._links: list[_Link] = []
        self._places: list[tuple[int, bool, int]] = []
        self._known_ends: dict[str, tuple[int, int] | None] = {}

    def add(self, step: int, filed_p2p: bool, links: _Links) -> None:
        """Take in the links of one step and level."""
        n_before, n_bad = len(self._keys), 0
        for key, entry in links.items():
            if key.startswith(names.TOTAL_PREFIX):
                continue
            for name, link in entry.items():
                ends = self._parsed(name)
                if ends is None:
                    n_bad += 1
                    continue
                self._keys.append(key)
                self._ends.append(ends)
                self._links.append(link)
        self._places.append((step, filed_p2p, len(self._keys) - n_before))
        if n_bad:
            self._remark(left_out(n_bad, "link", "not_source_destination", step=step))

    def table(self, rank: int) -> pa.Table:
        """Return all rows as LINKS."""
        n_rows = len(self._keys)
        if not n_rows:
            return schema.empty(schema.LINKS)
        links = self._links
        counts = [count for _, _, count in self._places]
        filed_p2p = pa.array(np.repeat([is_p2p for _, is_p2p, _ in self._places], counts))
        # A total names no operator: the key is missing, or its value is empty.
        given_names = pa.array(
            [link.pytorch_name or link.mindspore_name or None for link in links], pa.string()
        )
        described = describe_links(pa.array(self._keys, pa.string()), given_names)
        ends = np.array(self._ends, np.int32)
        sizes = pa.array(map(attrgetter("size"), links), pa.float64())
        times = pa.array(map(attrgetter("time"), links), pa.float64())
        columns = {
            "rank": numbers.constant(rank, n_rows, pa.int32()),
            "step": pa.array(np.repeat(np.array([step for step, _, _ in self._places], np.int64), counts)),
            "src_local": pa.array(ends[:, 0]),
            "dst_local": pa.array(ends[:, 1]),
            "transport": numbers.encoded(list(map(attrgetter("transport"), links))),
            "size_bytes": pc.multiply(sizes, numbers.BYTES_PER_MB),
            "time_us": pc.multiply(times, numbers.US_PER_MS),
        }
        table = links_table(described, filed_p2p, columns)
        tell_missing(table, NEEDED_LINKS, self._remark)
        return without_negative(table, MEASURED_LINKS, self._remark)

    def _parsed(self, name: str) -> tuple[int, int] | None:
        if name not in self._known_ends:
            match = _ENDS.match(name)
            self._known_ends[name] = (int(match.group(1)), int(match.group(2))) if match else None
        return self._known_ends[name]
