"""How much memory the tables of a run may take before they go to files."""

from __future__ import annotations

from cluster_analysis.engine.protocol import Engine

#: The tables take about this share of the bytes they were read from (1.16 KB of JSON become 0.2 KB).
TABLE_SHARE = 0.25


def must_file(engine: Engine, size_bytes: int, limit_bytes: int) -> bool:
    """Return whether the large tables must go to files of the scratch directory, if tasks see it at all."""
    return engine.shares_scratch and (engine.wants_files or size_bytes * TABLE_SHARE > limit_bytes)
