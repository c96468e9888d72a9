"""Counters of ranks. They sum up a whole capture: they explain, and accuse nobody."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.numeric.stats import median


def by_rank(counters: pa.Table, metric: str, label: str = "") -> dict[int, float]:
    """Return the value of one counter by rank, of COUNTERS; ranks that have none are left out."""
    wanted = pc.and_(
        pc.equal(counters["metric"].cast(pa.string()), metric), pc.equal(counters["label"], label)
    )
    table = counters.filter(wanted)
    return dict(zip(table["rank"].to_pylist(), table["value"].to_pylist(), strict=True))


def of_typical_rank(counters: pa.Table, metric: str, label: str, n_steps: int) -> float | None:
    """What the typical rank spent in something, a step; None where no file times it."""
    spent = by_rank(counters, metric, label)
    return float(median(np.array(list(spent.values()), float))) / max(n_steps, 1) if spent else None
