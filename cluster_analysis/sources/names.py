"""Names of communication operators: `hcom_allReduce__586_0_1@17522688603477080586`.

The operation, the last three digits of the group's hash, the running number in the group, the stream;
then the group's whole hash. Three digits collide quickly, so only the whole hash names a group.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis import schema

_TEXT = schema.COLLECTIVES.field("group").type
#: Leftmost match, longest first: `hcom_reduceScatter` is `reducescatter`, not `reduce`.
_OPERATION = (
    "(?P<operation>batchsendrecv|sendrecv|reducescatter|allreduce|allgatherv|allgather|alltoallvc|alltoallv|"
    "alltoall|broadcast|receive|recv|send|scatter|reduce|gather|barrier|invalid)"
)
_POINT_TO_POINT = pa.array(["send", "receive", "batchsendrecv"])
_SYNONYMS = {"recv": "receive", "sendrecv": "batchsendrecv"}
_MASK = 0xFFFFFFFF


def split_keys(keys: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Split `name@group` at the last `@` into names and groups (dictionary); group is "" without an `@`."""
    parts = pc.extract_regex(keys, r"^(?P<name>[\s\S]*)@(?P<group>[^@]*)$")
    names = pc.coalesce(pc.struct_field(parts, "name"), keys)
    groups = pc.coalesce(pc.struct_field(parts, "group"), pa.scalar(""))
    return names, pc.dictionary_encode(groups).cast(_TEXT)


def operations(names: pa.Array) -> pa.Array:
    """Return the lower-case operation in each name (dictionary): `allreduce`, `send`, …; else `unknown`.

    Operators of a graph (`stream_48_0_Receive-op663`, `Default/AllReduce-op3`) are read the same way.
    """
    lowered = pc.utf8_lower(names)
    found = pc.struct_field(pc.extract_regex(lowered, _OPERATION), "operation")
    encoded = pc.dictionary_encode(pc.coalesce(found, pa.scalar("unknown")))
    values = [_SYNONYMS.get(value, value) for value in encoded.dictionary.to_pylist()]
    # Through plain text and back, because two synonyms may have become one value.
    plain = pa.array(values, pa.string()).take(encoded.indices) if values else pa.array([], pa.string())
    return pc.dictionary_encode(plain).cast(_TEXT)


def indices_in_group(names: pa.Array) -> pa.Array:
    """Return the running number of each operator in its group, -1 where the name has none."""
    found = pc.extract_regex(names, r"__\d+_(?P<index>\d{1,9})(?:_\d+)*$")
    return pc.fill_null(pc.cast(pc.struct_field(found, "index"), pa.int32()), -1)


def point_to_point(op_types: pa.Array) -> pa.Array:
    """Return which operations are point to point, whatever the file filed them under.

    MindSpore files `hcom_send__` under `collective`, because it looks for a capital `Send`.
    """
    return pc.is_in(op_types.dictionary_decode(), value_set=_POINT_TO_POINT)


def group_hash(group_id: str) -> str:
    """Return the number that operator names carry for a group id of `parallel_group_info`.

    Two 32-bit sums, base 29 and base 131, joined; checked against real captures.
    """
    low, high = 0, 0
    for character in group_id:
        high = (high * 29 + ord(character)) & _MASK
        low = (low * 131 + ord(character)) & _MASK
    return str((high << 32) | low)
