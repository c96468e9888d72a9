"""What the names of link entries say: group, operation, which sample, and the operator.

Two dialects: `allreduce-top1@<group>` with `top1`, `middle`, `bottom1`… and `total` a kind of operator,
and, older, one entry an operator (`hcom_broadcast__483_1@<group>`). The profilers file reduceScatter
under `reduce`; the operator's own name, where there is one, says what it was.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.sources import names
from cluster_analysis.tables import schema

#: Variant of an entry that is one operator, not a sample or a sum.
OPERATOR_VARIANT = "op"
_SAMPLE = re.compile(r"(.+)-(top\d+|middle|bottom\d+|total)\Z")
_IntArray = npt.NDArray[np.integer]
#: Group, operation, variant and operator name of each entry.
Described = tuple[pa.Array, pa.Array, pa.Array, pa.Array]


@dataclass(frozen=True)
class LinkNames:
    """The names of link entries, in columns of equal length (N,).

    Attributes:
        keys: which of `known_keys` each entry has.
        known_keys: the entries' own names.
        files: of each of these the number of its file: only entries of one file explain each other.
        operators: which of `known_operators` each entry names itself, -1 where it names none.
        known_operators: names of operators.
    """

    keys: _IntArray
    known_keys: Sequence[str]
    files: Sequence[int]
    operators: _IntArray
    known_operators: Sequence[str]

    def described(self) -> Described:
        """Return group, operation, variant and operator name of each entry.

        A `total` names no operator: its operation is the one that all other entries of its key agree on.
        """
        known = [_key(text) for text in self.known_keys]
        # An entry that names no operator is one itself, or it has a kind of operator only.
        place = np.where(self.operators < 0, len(self.known_operators) + self.keys, self.operators)
        op_names = [*self.known_operators, *(key.base if key.kind is None else None for key in known)]
        values = [*self.known_operators, *(key.kind or key.base for key in known)]
        operation_codes, operations = _coded([names.operation_of(value) for value in values])
        is_named = np.array([name is not None for name in op_names], bool)
        # Few combinations of key, operation and whether that is the entry's own: each is looked at once.
        shape = (max(1, len(known)), max(1, len(operations)), 2)
        row_parts = (self.keys, operation_codes[place], is_named[place].astype(np.int64))
        distinct, combination = np.unique(np.ravel_multi_index(row_parts, shape), return_inverse=True)
        parts = (part.tolist() for part in np.unravel_index(distinct, shape))
        resolved = self._resolved(known, operations, list(zip(*parts, strict=True)))
        return (
            _taken([key.group for key in known], self.keys),
            _taken(resolved, combination),
            _taken([key.variant for key in known], self.keys),
            pa.array(op_names, pa.string()).take(pa.array(place)),
        )

    def _resolved(
        self, known: Sequence[_Key], operations: Sequence[str], combinations: Sequence[tuple[int, int, int]]
    ) -> list[str]:
        """Return the operation of each combination of key, operation, and whether it is the entry's own."""
        shared: dict[tuple[int, str, str], set[str]] = {}
        for at, operation, has_name in combinations:
            key = known[at]
            if key.kind is not None and has_name:
                shared.setdefault((self.files[at], key.group, key.kind), set()).add(operations[operation])
        resolved = []
        for at, operation, has_name in combinations:
            key = known[at]
            agreed = set() if has_name else shared.get((self.files[at], key.group, key.kind or ""), set())
            resolved.append(next(iter(agreed)) if len(agreed) == 1 else operations[operation])
        return resolved


def describe_links(keys: pa.Array, given_names: pa.Array) -> Described:
    """Return group, operation, variant and operator name of link entries of one file; see `LinkNames`.

    Args:
        keys: the entries' names, as they are or encoded.
        given_names: the operators that the entries name themselves, null where they name none.
    """
    (key_codes, known_keys), (codes, known) = (_encoded(texts) for texts in (keys, given_names))
    return LinkNames(key_codes, known_keys, [0] * len(known_keys), codes, known).described()


def links_table(described: Described, filed_p2p: pa.Array, columns: Mapping[str, pa.Array]) -> pa.Table:
    """Return LINKS of what the entries' names say and the other columns; `src_rank` and `dst_rank` stay null.

    Args:
        described: what `LinkNames` says of the entries.
        filed_p2p: whether each is filed under point to point.
        columns: all other columns.
    """
    groups, op_types, variants, op_names = described
    unknown = pa.nulls(len(op_names), pa.int32())
    told = {
        "group": groups,
        "is_p2p": pc.or_(filed_p2p, names.point_to_point(op_types)),
        "op_type": op_types,
        "variant": variants,
        "op_name": op_names,
        "src_rank": unknown,
        "dst_rank": unknown,
    }
    return pa.table({**columns, **told}, schema=schema.LINKS)


def _encoded(texts: pa.Array) -> tuple[_IntArray, list[str]]:
    encoded = texts if pa.types.is_dictionary(texts.type) else pc.dictionary_encode(texts)
    return encoded.indices.fill_null(-1).to_numpy(), encoded.dictionary.to_pylist()


def _coded(values: Sequence[str]) -> tuple[npt.NDArray[np.int32], list[str]]:
    """Return which of the distinct values each is, and these in the order in which they come first."""
    known: dict[str, int] = {}
    codes = np.array([known.setdefault(value, len(known)) for value in values], np.int32)
    return codes, list(known)


def _taken(values: Sequence[str], places: _IntArray) -> pa.DictionaryArray:
    codes, known = _coded(values)
    return pa.DictionaryArray.from_arrays(pa.array(codes[places]), pa.array(known, pa.string()))


@dataclass(frozen=True)
class _Key:
    """An entry's key: `kind-variant@group`, or `base@group` with the variant of one operator."""

    base: str
    group: str
    kind: str | None
    variant: str


@lru_cache(maxsize=1 << 12)
def _key(text: str) -> _Key:
    base, mark, group = text.rpartition("@")
    if not mark:
        base, group = text, ""
    match = _SAMPLE.match(base)
    return _Key(base, group, *(match.groups() if match else (None, OPERATOR_VARIANT)))
