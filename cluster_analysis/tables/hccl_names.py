"""Numbers of HCCL as the profiler's databases hold them, by name: those of CANN 9 (msprof, July 2026)."""

from __future__ import annotations

from collections.abc import Mapping

#: ENUM_HCCL_LINK_TYPE, by the names that communication_matrix.json has. HCCS through a switch is HCCS.
LINK_TYPES: Mapping[int, str] = {
    0: "LOCAL",
    1: "HCCS",
    2: "PCIE",
    3: "RDMA",
    4: "SIO",
    5: "HCCS",
    6: "RDMA",
    7: "UB",
    8: "UBoE",
}
#: A transfer by these is no copy: of RDMA a task only posts it.
REMOTE_LINKS = frozenset({3, 6})
#: Bytes of an element, by the name in ENUM_HCCL_DATA_TYPE.
BYTES_OF_TYPE: Mapping[str, int] = {
    "INT8": 1, "UINT8": 1, "INT16": 2, "UINT16": 2, "FP16": 2, "BFP16": 2, "INT32": 4, "UINT32": 4, "FP32": 4,
    "INT64": 8, "UINT64": 8, "FP64": 8, "INT128": 16, "HIF8": 1, "FP8E4M3": 1, "FP8E5M2": 1, "FP8E8M0": 1,
}  # fmt: skip


def link_name(number: object) -> str:
    """Return what a kind of link is called; one that is not known is named by its number, never dropped."""
    known = LINK_TYPES.get(number) if isinstance(number, int) else None
    return known or f"link {number}"
