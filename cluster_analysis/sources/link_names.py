"""What the names of link entries say: group, operation, which sample, and the operator.

Two dialects: `allreduce-top1@<group>` with `top1`, `middle`, `bottom1`… and `total` a kind of operator,
and, older, one entry an operator (`hcom_broadcast__483_1@<group>`). The profilers file reduceScatter
under `reduce`; the operator's own name, where there is one, says what it was.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from cluster_analysis.sources import names
from cluster_analysis.tables import schema

#: Variant of an entry that is one operator, not a sample or a sum.
OPERATOR_VARIANT = "op"
_SAMPLE = re.compile(r"(.+)-(top\d+|middle|bottom\d+|total)\Z")
_T = TypeVar("_T", bound=Hashable)
_IntArray = npt.NDArray[np.integer]
#: Group, operation, variant and operator name of each entry.
Described = tuple[pa.Array, pa.Array, pa.Array, pa.Array]


class LinkNames(Struct, frozen=True):
    """The names of link entries, in columns of equal length (N,).

    Attributes:
        keys: which of `known_keys` each entry has.
        known_keys: the entries' own names.
        files: the number of its file of each entry: only entries of one file explain each other.
        operators: which of `known_operators` each entry names itself, -1 where it names none.
        known_operators: names of operators.
        operations: which operation each of these has, and the operations, where that is known already.
    """

    keys: _IntArray
    known_keys: Sequence[str]
    files: _IntArray
    operators: _IntArray
    known_operators: pa.Array
    operations: tuple[npt.NDArray[np.int32], list[str]] | None = None

    def described(self) -> Described:
        """Return group, operation, variant and operator name of each entry.

        A `total` names no operator: its operation is the one that all other entries of its key agree on.
        """
        known = [_key(text) for text in self.known_keys]
        # An entry that names no operator is one itself, or it has a kind of operator only.
        place = np.where(self.operators < 0, len(self.known_operators) + self.keys, self.operators)
        bases = pa.array([key.base if key.kind is None else None for key in known], pa.string())
        op_names = pa.concat_arrays([self.known_operators, bases])
        operation_codes, operations = self._operations([key.kind or key.base for key in known])
        is_named = op_names.is_valid().to_numpy(zero_copy_only=False)
        own = operation_codes[place]
        resolved = np.where(is_named[place], own, self._agreed(known, own, is_named[place]))
        return (
            _taken([key.group for key in known], self.keys),
            _in_order_of_rows(resolved, operations),
            _taken([key.variant for key in known], self.keys),
            op_names.take(pa.array(place)),
        )

    def _operations(self, values: Sequence[str]) -> tuple[npt.NDArray[np.int32], list[str]]:
        """Return the operation of each known operator and of `values` behind them, as numbers, and all."""
        if self.operations is None:
            texts = [*self.known_operators.to_pylist(), *values]
            return _coded([names.operation_of(text) for text in texts])
        codes, operations = self.operations
        known = {operation: code for code, operation in enumerate(operations)}
        more = [known.setdefault(names.operation_of(value), len(known)) for value in values]
        return np.concatenate([codes, np.array(more, np.int32)]), list(known)

    def _agreed(
        self, known: Sequence[_Key], operations: npt.NDArray[np.int32], is_named: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int32]:
        """Return what all named entries of each one's file, group and kind agree on, or else its own."""
        kinds, distinct = _coded([(key.group, key.kind) for key in known])
        place = self.files * len(distinct) + kinds[self.keys]
        n_places = int(place.max(initial=-1)) + 1
        least, most = np.full(n_places, np.iinfo(np.int32).max, np.int32), np.full(n_places, -1, np.int32)
        np.minimum.at(least, place[is_named], operations[is_named])
        np.maximum.at(most, place[is_named], operations[is_named])
        return np.where((least == most)[place], least[place], operations)


def describe_links(keys: pa.Array, given_names: pa.Array) -> Described:
    """Return group, operation, variant and operator name of link entries of one file; see `LinkNames`.

    Args:
        keys: the entries' names, as they are or encoded.
        given_names: the operators that the entries name themselves, null where they name none.
    """
    (key_codes, known_keys), (codes, known) = (_encoded(texts) for texts in (keys, given_names))
    return LinkNames(
        key_codes, known_keys.to_pylist(), np.zeros(len(key_codes), np.int64), codes, known
    ).described()


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


def _encoded(texts: pa.Array) -> tuple[_IntArray, pa.Array]:
    encoded = texts if pa.types.is_dictionary(texts.type) else pc.dictionary_encode(texts)
    return encoded.indices.fill_null(-1).to_numpy(), encoded.dictionary


def _coded(values: Sequence[_T]) -> tuple[npt.NDArray[np.int32], list[_T]]:
    """Return which of the distinct values each is, and these in the order in which they come first."""
    known: dict[_T, int] = {}
    codes = np.array([known.setdefault(value, len(known)) for value in values], np.int32)
    return codes, list(known)


def _in_order_of_rows(codes: npt.NDArray[np.int32], values: Sequence[str]) -> pa.DictionaryArray:
    """Return the values that rows have, as a dictionary in the order in which they come first."""
    first = np.full(len(values), len(codes))
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    order = np.argsort(first)[: np.count_nonzero(first < len(codes))]
    place = np.zeros(len(values), np.int32)
    place[order] = np.arange(len(order))
    return pa.DictionaryArray.from_arrays(
        pa.array(place[codes]), pa.array([values[one] for one in order.tolist()], pa.string())
    )


def _taken(values: Sequence[str], places: _IntArray) -> pa.DictionaryArray:
    codes, known = _coded(values)
    return pa.DictionaryArray.from_arrays(pa.array(codes[places]), pa.array(known, pa.string()))


class _Key(Struct, frozen=True):
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
