"""How much memory the tables of a run may take before they go to files."""

from __future__ import annotations

from dask.utils import parse_bytes

from cluster_analysis.engine.protocol import Engine
from cluster_run.errors import UsageError

#: The tables take about this share of the bytes they were read from (1.16 KB of JSON become 0.2 KB).
TABLE_SHARE = 0.25


def must_file(engine: Engine, size_bytes: int, limit_bytes: int) -> bool:
    """Return whether the large tables must go to files of the scratch directory, if tasks see it at all."""
    return engine.shares_scratch and (engine.wants_files or size_bytes * TABLE_SHARE > limit_bytes)


def parse_size(text: str) -> int:
    """Parse `512M` (1000), `1.5GB`, `2GiB` (1024) or a number of bytes.

    Raises:
        UsageError: it is none of these, or 0.
    """
    try:
        size: int = parse_bytes(text)
    except (ValueError, OverflowError):
        size = 0
    if size <= 0:
        raise UsageError(f"not a size: {text!r}", "write it like 512M or 2GiB")
    return size
