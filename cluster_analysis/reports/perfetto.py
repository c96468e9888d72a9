"""trace.json.gz: the communication of all ranks on one clock, for Perfetto and chrome://tracing."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from cluster_analysis.result import AnalysisResult


def render(result: AnalysisResult, collectives: Sequence[pa.Table]) -> bytes:
    """Return the trace, gzip-compressed.

    Args:
        result: what was found; findings become marked slices.
        collectives: tables of schema COLLECTIVES; together they hold each rank's operators once. They are
            gone through twice (clocks, then slices), so a list or anything else that can be read again.
    """
    raise NotImplementedError
