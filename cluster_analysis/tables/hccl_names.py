"""What numbers of HCCL stand for: in the profiler's databases (CANN 9, July 2026), and in names of groups."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

#: ENUM_HCCL_LINK_TYPE, by the names that communication_matrix.json has. HCCS through a switch is HCCS.
LINK_TYPES: Mapping[int, str] = {
    0: "LOCAL", 1: "HCCS", 2: "PCIE", 3: "RDMA", 4: "SIO", 5: "HCCS", 6: "RDMA", 7: "UB",
    8: "UBoE",
}  # fmt: skip
#: A transfer by these is no copy: of RDMA a task only posts it.
REMOTE_LINKS = frozenset({3, 6})
#: Bytes of an element, by the name in ENUM_HCCL_DATA_TYPE.
BYTES_OF_TYPE: Mapping[str, int] = {
    "INT8": 1, "UINT8": 1, "INT16": 2, "UINT16": 2, "FP16": 2, "BFP16": 2, "INT32": 4, "UINT32": 4, "FP32": 4,
    "INT64": 8, "UINT64": 8, "FP64": 8, "INT128": 16, "HIF8": 1, "FP8E4M3": 1, "FP8E5M2": 1, "FP8E8M0": 1,
}  # fmt: skip
#: What stands for a group that the profiler does not know.
NO_GROUP = ("", "N/A")
#: Begin of a group's name that means something for one rank only.
OWN_GROUP_PREFIX = "rank:"
_HASH = re.compile(r"^\d{15,20}$")
_MASK = 0xFFFFFFFF


def link_name(number: object) -> str:
    """Return what a kind of link is called; one that is not known is named by its number, never dropped."""
    known = LINK_TYPES.get(number) if isinstance(number, int) else None
    return known or f"link {number}"


@lru_cache(maxsize=4096)
def group_hash(group_id: str) -> str:
    """Return the number that operator names carry for a group id of `parallel_group_info`.

    Two 32-bit sums, base 29 and base 131, joined; checked against real captures.
    """
    low, high = 0, 0
    for character in group_id:
        high = (high * 29 + ord(character)) & _MASK
        low = (low * 131 + ord(character)) & _MASK
    return str((high << 32) | low)


def as_group_hash(name: str) -> str:
    """Return the group's hash for a group id, or for what is a hash already, or names no group."""
    return name if name in NO_GROUP or _HASH.match(name) else group_hash(name)
