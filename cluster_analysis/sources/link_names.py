"""Parse names of link entries: group, operation, sample, and the operator.

Two spellings: `allreduce-top1@<group>` with `top1`, `middle`, `bottom1`… and `total` a kind of operator,
and, older, one entry an operator (`hcom_broadcast__483_1@<group>`). The profilers file reduceScatter
under `reduce`; the operator's own name, where there is one, says what it was.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from cluster_analysis.numeric.arrays import BoolArray, IntArray
from cluster_analysis.sources import names
from cluster_analysis.sources.names import coded_rows
from cluster_analysis.tables import schema

#: Variant of an entry that is one operator, not a sample or a sum.
OPERATOR_VARIANT = "op"
_SAMPLE = re.compile(r"(.+)-(top\d+|middle|bottom\d+|total)\Z")
_T = TypeVar("_T", bound=Hashable)


class LinkNames(Struct, frozen=True):
    """The names of link entries, in columns of equal length (N,).

    Attributes:
        keys: which of `known_keys` each entry has.
        known_keys: the entries' own names.
        files: the number of its file of each entry: only entries of one file explain each other.
        operators: which of `known_operators` each entry names itself, -1 where it names none.
        known_operators: names of operators.
    """

    keys: IntArray
    known_keys: Sequence[str]
    files: IntArray
    operators: IntArray
    known_operators: pa.Array

    @classmethod
    def of_one_file(cls, keys: pa.DictionaryArray, operators: pa.DictionaryArray) -> LinkNames:
        """Return the names of one file's entries; an operator without letters is none."""
        places, known = operators.indices.to_numpy(), operators.dictionary
        is_none = pc.equal(known, "").to_numpy(zero_copy_only=False)
        named = np.where(is_none[places], -1, places)
        return cls(keys.indices.to_numpy(), keys.dictionary.to_pylist(), np.zeros_like(places), named, known)

    def columns(self) -> dict[str, pa.Array]:
        """Return the columns of LINKS that the names give.

        A `total` names no operator: its operation is the one that all other entries of its key agree on.
        """
        keys = _Keys.of(self.known_keys)
        # An entry that names no operator is one itself, or it has a kind of operator only.
        own_names = pa.array([base if kind is None else None for base, kind in keys.kinds()], pa.string())
        op_names = pa.concat_arrays([self.known_operators, own_names])
        base_of = keys.base_codes[self.keys]
        place = np.where(self.operators < 0, len(self.known_operators) + base_of, self.operators)
        values = [*self.known_operators.to_pylist(), *(kind or base for base, kind in keys.kinds())]
        operations = names.operations(pa.array(values, pa.string()))
        is_named = op_names.is_valid().to_numpy(zero_copy_only=False)
        own = operations.indices.to_numpy()[place]
        resolved = np.where(is_named[place], own, self._agreed(keys, own, is_named[place]))
        variants, distinct = _coded([variant for _, variant in keys.samples])
        return {
            "group": _taken(keys.group_codes[self.keys], keys.groups),
            "op_type": coded_rows((resolved, operations.dictionary.to_pylist())),
            "variant": _taken(variants[base_of], distinct),
            "op_name": op_names.take(pa.array(place)),
        }

    def _agreed(
        self, keys: _Keys, operations: npt.NDArray[np.int32], is_named: BoolArray
    ) -> npt.NDArray[np.int32]:
        """Return the operation that named entries of its file, group and kind agree on, else its own."""
        n_together, together = keys.by_group_and_kind()
        place = self.files * n_together + together[self.keys]
        n_places = int(place.max(initial=-1)) + 1
        least, most = np.full(n_places, np.iinfo(np.int32).max, np.int32), np.full(n_places, -1, np.int32)
        np.minimum.at(least, place[is_named], operations[is_named])
        np.maximum.at(most, place[is_named], operations[is_named])
        return np.where((least == most)[place], least[place], operations)


def links_table(
    ranks: int | npt.NDArray[np.int32],
    link_names: LinkNames,
    filed_p2p: pa.Array,
    **columns: pa.Array | npt.NDArray[Any],
) -> pa.Table:
    """Return LINKS from the entries' names and the other columns; `src_rank` and `dst_rank` stay null.

    Args:
        ranks: the rank of all entries, or of each.
        link_names: the names of the entries.
        filed_p2p: whether each is filed under point to point.
        columns: all other columns.
    """
    named = link_names.columns()
    is_p2p = pc.or_(filed_p2p, names.point_to_point(named["op_type"]))
    return schema.rows(schema.LINKS, ranks, **named, is_p2p=is_p2p, **columns)


def _coded(values: Sequence[_T]) -> tuple[npt.NDArray[np.int32], list[_T]]:
    """Return which of the distinct values each is, and these in the order in which they come first."""
    known = list(dict.fromkeys(values))
    code_of = dict(zip(known, range(len(known)), strict=True))
    return np.fromiter(map(code_of.__getitem__, values), np.int32, len(values)), known


def _taken(codes: IntArray, values: Sequence[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(values, pa.string()))


class _Keys(Struct, frozen=True):
    """Entries' keys: `kind-variant@group`, or `base@group` with the variant of one operator.

    Attributes:
        base_codes: which of `samples` each key has.
        bases: what stands in front of the group.
        samples: kind and variant of each of these; no kind where it is one operator.
        group_codes: which of `groups` each key has.
        groups: the groups.
    """

    base_codes: npt.NDArray[np.int32]
    bases: Sequence[str]
    samples: Sequence[tuple[str | None, str]]
    group_codes: npt.NDArray[np.int32]
    groups: Sequence[str]

    @classmethod
    def of(cls, keys: Sequence[str]) -> _Keys:
        """Take the keys apart; the ranks' files have few different ones in front of many groups."""
        parts = [text.rpartition("@") for text in keys]
        base_codes, bases = _coded([base if mark else group for base, mark, group in parts])
        known = [group if mark and names.is_group(group) else "" for _, mark, group in parts]
        group_codes, groups = _coded(known)
        return cls(base_codes, bases, [_sample(base) for base in bases], group_codes, groups)

    def kinds(self) -> Iterable[tuple[str, str | None]]:
        """Give each base and its kind."""
        return ((base, kind) for base, (kind, _) in zip(self.bases, self.samples, strict=True))

    def by_group_and_kind(self) -> tuple[int, IntArray]:
        """Return how many groups and kinds go together, and the number of those of each key."""
        kind_codes, kinds = _coded([kind for kind, _ in self.samples])
        codes = self.group_codes.astype(np.int64) * len(kinds) + kind_codes[self.base_codes]
        distinct, places = np.unique(codes, return_inverse=True)
        return len(distinct), places.reshape(-1)


def _sample(base: str) -> tuple[str | None, str]:
    """Return kind and variant."""
    match = _SAMPLE.match(base)
    return (match[1], match[2]) if match else (None, OPERATOR_VARIANT)
