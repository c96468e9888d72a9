"""communication_matrix.json: one entry a link, in ms and MB; ranks are local to the group.

Two dialects: `allreduce-top1@<group>` with `top1`, `middle`, `bottom1`… and `total` a kind of operator,
and, older, one entry an operator (`hcom_broadcast__483_1@<group>`). The profilers file reduceScatter
under `reduce`; the operator's own name, where there is one, says what it was.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.sources import names, numbers
from cluster_analysis.sources.compiled.link_columns import LinkColumns, link_columns
from cluster_analysis.sources.errors import BadFileError, Remark, left_out
from cluster_analysis.sources.measured import (
    MEASURED_LINKS,
    NEEDED_LINKS,
    tell_missing,
    without_negative,
)
from cluster_analysis.sources.text.communication_levels import Level, levels_by_step, whole_steps
from cluster_analysis.sources.text.json_text import read_bytes
from cluster_analysis.tables import schema

#: Variant of an entry that is one operator, not a sample or a sum.
OPERATOR_VARIANT = "op"
#: No job has ranks of more digits: a damaged one must not become a group of that size.
_ENDS = re.compile(r"^\s*(\d{1,6})\s*-\s*(\d{1,6})\s*$")
_SAMPLE = re.compile(r"(.+)-(top\d+|middle|bottom\d+|total)\Z")


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
    content = read_bytes(path)
    plain = link_columns(content, steps)
    if plain is not None:
        return _plain_table(plain, rank, remark)
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


def _plain_table(plain: LinkColumns, rank: int, remark: Remark) -> pa.Table:
    """Return LINKS of the columns of a whole file."""
    groups, op_types, variants, op_names = describe_links(plain.keys, plain.op_names)
    n_rows = len(plain.steps)
    columns = {
        "rank": numbers.constant(rank, n_rows, pa.int32()),
        "step": pa.array(plain.steps),
        "group": groups,
        "is_p2p": pc.or_(pa.array(plain.is_p2p), names.point_to_point(op_types)),
        "op_type": op_types,
        "variant": variants,
        "op_name": op_names,
        "src_local": plain.sources,
        "dst_local": plain.destinations,
        "src_rank": pa.nulls(n_rows, pa.int32()),
        "dst_rank": pa.nulls(n_rows, pa.int32()),
        "transport": plain.transports,
        "size_bytes": plain.sizes_bytes,
        "time_us": plain.times_us,
    }
    table = pa.table(columns, schema=schema.LINKS)
    if plain.has_missing:
        tell_missing(table, NEEDED_LINKS, remark)
    return without_negative(table, MEASURED_LINKS, remark) if plain.has_negative else table


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
        groups, op_types, variants, op_names = describe_links(pa.array(self._keys, pa.string()), given_names)
        ends = np.array(self._ends, np.int32)
        sizes = pa.array(map(attrgetter("size"), links), pa.float64())
        times = pa.array(map(attrgetter("time"), links), pa.float64())
        columns = {
            "rank": numbers.constant(rank, n_rows, pa.int32()),
            "step": pa.array(np.repeat(np.array([step for step, _, _ in self._places], np.int64), counts)),
            "group": groups,
            "is_p2p": pc.or_(filed_p2p, names.point_to_point(op_types)),
            "op_type": op_types,
            "variant": variants,
            "op_name": op_names,
            "src_local": pa.array(ends[:, 0]),
            "dst_local": pa.array(ends[:, 1]),
            "src_rank": pa.nulls(n_rows, pa.int32()),
            "dst_rank": pa.nulls(n_rows, pa.int32()),
            "transport": numbers.encoded(list(map(attrgetter("transport"), links))),
            "size_bytes": pc.multiply(sizes, numbers.BYTES_PER_MB),
            "time_us": pc.multiply(times, numbers.US_PER_MS),
        }
        table = pa.table(columns, schema=schema.LINKS)
        tell_missing(table, NEEDED_LINKS, self._remark)
        return without_negative(table, MEASURED_LINKS, self._remark)

    def _parsed(self, name: str) -> tuple[int, int] | None:
        if name not in self._known_ends:
            match = _ENDS.match(name)
            self._known_ends[name] = (int(match.group(1)), int(match.group(2))) if match else None
        return self._known_ends[name]


def describe_links(
    keys: pa.Array,
    given_names: pa.Array,
    given_operations: tuple[npt.NDArray[np.integer], Sequence[str]] | None = None,
) -> tuple[pa.Array, pa.Array, pa.Array, pa.Array]:
    """Return group, operation, variant and operator name of link entries named `keys`.

    A `total` names no operator: its operation is the one that all other entries of its key agree on.

    Args:
        keys: the entries' names, as they are or encoded.
        given_names: the operators that the entries name themselves, null where they name none.
        given_operations: where these are known, the operations of those, and which of them each entry has.
    """
    # The same few keys come back in each step and link: each is looked at once.
    encoded = keys if pa.types.is_dictionary(keys.type) else pc.dictionary_encode(keys)
    rows, known = encoded.indices, [_key(text) for text in encoded.dictionary.to_pylist()]
    op_names = given_names
    if given_names.null_count:
        own_names = pa.array([key.base if key.kind is None else None for key in known], pa.string())
        op_names = pc.coalesce(given_names, own_names.take(rows))
    kinds = [key.kind or key.base for key in known]
    if given_operations is None:
        named = names.operations(pc.coalesce(op_names, pa.array(kinds, pa.string()).take(rows)))
    else:
        places, values = given_operations
        has_none = given_names.is_null().to_numpy(zero_copy_only=False)
        places = np.where(has_none, len(values) + rows.to_numpy(), places)
        named = names.encoded(places, [*values, *map(names.operation_of, kinds)])
    operations, is_named = named.dictionary.to_pylist(), pc.is_valid(op_names).to_numpy(zero_copy_only=False)
    # So do the combinations of key, operation and whether that is the entry's own.
    shape = (max(1, len(known)), max(1, len(operations)), 2)
    codes = np.ravel_multi_index(
        (rows.to_numpy(), named.indices.to_numpy(), is_named.astype(np.int64)), shape
    )
    distinct, places = np.unique(codes, return_inverse=True)
    combinations = list(zip(*(part.tolist() for part in np.unravel_index(distinct, shape)), strict=True))
    shared: dict[tuple[str, str], set[str]] = {}
    for key, operation, has_name in combinations:
        kind = known[key].kind
        if kind is not None and has_name:
            shared.setdefault((known[key].group, kind), set()).add(operations[operation])
    resolved = []
    for key, operation, has_name in combinations:
        agreed = set() if has_name else shared.get((known[key].group, known[key].kind or ""), set())
        resolved.append(next(iter(agreed)) if len(agreed) == 1 else operations[operation])
    return (
        numbers.encoded([key.group for key in known]).take(rows),
        numbers.encoded(resolved).take(pa.array(places)),
        numbers.encoded([key.variant for key in known]).take(rows),
        op_names,
    )


@dataclass(frozen=True)
class _Key:
    """An entry's key: `kind-variant@group`, or `base@group` with the variant of one operator."""

    base: str
    group: str
    kind: str | None
    variant: str


def _key(text: str) -> _Key:
    base, mark, group = text.rpartition("@")
    if not mark:
        base, group = text, ""
    match = _SAMPLE.match(base)
    return _Key(base, group, *(match.groups() if match else (None, OPERATOR_VARIANT)))
