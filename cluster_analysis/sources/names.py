"""Names of communication operators: `hcom_allReduce__586_0_1@17522688603477080586`.

The operation, the last three digits of the group's hash, the running number in the group, the stream;
then the group's whole hash. Three digits collide quickly, so only the whole hash names a group.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.numeric.arrays import IntArray
from cluster_analysis.tables import schema
from cluster_analysis.tables.hccl_names import NO_GROUP
from cluster_analysis.tables.operations import MESSAGES, OPERATIONS, SYNONYMS

#: Which of its file's distinct texts each row has, and these texts, None for a missing one.
Coded = tuple[IntArray, Sequence[str | None]]
#: How PyTorch names the time in which the loop waits for its next batch.
DATA_LOADER = "enumerate(DataLoader)"

_TEXT = schema.COLLECTIVES.field("group").type
#: Leftmost match, longest first: `hcom_reduceScatter` is `reducescatter`, not `reduce`.
_OPERATION = re.compile("|".join(sorted((*OPERATIONS, *SYNONYMS), key=len, reverse=True)))
_MESSAGES = pa.array(MESSAGES)


def is_group(text: str) -> bool:
    """Return whether what stands behind the `@` of a name names a group.

    Where there is no `@`, torch_npu puts the operator into the group's place in links.
    """
    return text not in NO_GROUP and "__" not in text


def split_keys(keys: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Split `name@group` at the last `@` into names and groups (dictionary); group is "" without an `@`."""
    parts = pc.split_pattern(keys, "@", max_splits=1, reverse=True)
    lengths = pc.list_value_length(parts)
    names = pc.list_element(parts, 0) if len(keys) else pa.array([], pa.string())
    whole = pc.all(pc.equal(lengths, 2)).as_py()
    groups = pc.list_element(parts, 1) if whole and len(keys) else _second_or_empty(parts, lengths)
    return names, pc.dictionary_encode(groups).cast(_TEXT)


def _second_or_empty(parts: pa.Array, lengths: pa.Array) -> pa.Array:
    pairs = zip(parts.to_pylist(), lengths.to_pylist(), strict=True)
    return pa.array([part[1] if length == 2 else "" for part, length in pairs], pa.string())


def operations(names: pa.Array) -> pa.Array:
    """Return the lower-case operation in each name (dictionary): `allreduce`, `send`, …; else `unknown`.

    Operators of a graph (`stream_48_0_Receive-op663`, `Default/AllReduce-op3`) are read the same way.
    """
    if not len(names):
        return pa.array([], _TEXT)
    # Few names differ before their numbers, so few are searched.
    stems = pc.dictionary_encode(pc.list_element(pc.split_pattern(names, "__", max_splits=1), 0))
    values = [operation(stem) for stem in stems.dictionary.to_pylist()]
    plain = pa.array(values, pa.string()).take(stems.indices)
    if "unknown" in values:
        searched = pa.array([operation(name) for name in names.to_pylist()], pa.string())
        plain = pc.if_else(pc.equal(plain, "unknown"), searched, plain)
    return pc.dictionary_encode(plain).cast(_TEXT)


def operation(name: str | None) -> str:
    """Return the operation in one name; see `operations`."""
    match = _OPERATION.search((name or "").rpartition("/")[2].lower())
    return SYNONYMS.get(match.group(), match.group()) if match else "unknown"


def columns(names: pa.Array, filed_p2p: pa.Array | None = None) -> dict[str, pa.Array]:
    """Return the columns of a table of operators or links that their names give.

    Which are point to point they say, whatever the file says (`filed_p2p`): MindSpore files `hcom_send__`
    under `collective`, because it looks for a capital `Send`.
    """
    op_types = operations(names)
    is_p2p = point_to_point(op_types)
    given = is_p2p if filed_p2p is None else pc.or_(filed_p2p, is_p2p)
    return {"op_name": names, "op_type": op_types, "is_p2p": given}


def of_operators(names: pa.Array, filed_p2p: pa.Array | None = None) -> dict[str, pa.Array]:
    """Return the columns of COLLECTIVES that their names give."""
    return {**columns(names, filed_p2p), "op_index": indices_in_group(names)}


def indices_in_group(names: pa.Array) -> pa.Array:
    """Return the running number of each operator in its group, -1 where the name has none."""
    found = pc.extract_regex(names, r"__\d+_(?P<index>\d{1,9})(?:_\d+)*$")
    return pc.fill_null(pc.cast(pc.struct_field(found, "index"), pa.int32()), -1)


def point_to_point(op_types: pa.Array) -> pa.Array:
    """Return which operations are point to point."""
    is_one = pc.is_in(op_types.dictionary, value_set=_MESSAGES)
    return pc.fill_null(is_one.take(op_types.indices), False)


def coded_rows(coded: Coded) -> pa.DictionaryArray:
    """Return the text of each row; null for a missing one.

    The dictionary holds no text that no row has, in the order of their first rows.
    """
    places, texts = coded
    return pa.array(texts, pa.string()).take(pa.array(places)).dictionary_encode()
