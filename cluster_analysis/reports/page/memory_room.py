"""Whether the memory of a rank comes so near to its capacity that a reader should see it first."""

from __future__ import annotations

import numpy as np

from cluster_analysis.numeric.columns import numbers
from cluster_analysis.result import AnalysisResult

#: From this share of the capacity on a longer sequence, or fragments, may be one too many.
FULL_SHARE = 0.92


def fullest_share(result: AnalysisResult) -> float | None:
    """Return the highest peak as a share of its device's memory; None where either is not known."""
    table = result.tables.get("memory_peaks")
    if table is None or not table.num_rows:
        return None
    reserved, allocated, capacity = (
        numbers(table[f"{one}_bytes"]) for one in ("reserved", "allocated", "capacity")
    )
    share = np.where(np.isnan(reserved), allocated, reserved) / np.where(capacity > 0, capacity, np.nan)
    return None if np.isnan(share).all() else float(np.nanmax(share))


def is_nearly_full(result: AnalysisResult) -> bool:
    """Return whether memory stands before the other pictures."""
    return (fullest_share(result) or 0.0) >= FULL_SHARE
