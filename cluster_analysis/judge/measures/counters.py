"""Counters of ranks. They sum up a whole capture: they explain, and accuse nobody."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc


def by_rank(counters: pa.Table, metric: str, label: str = "") -> dict[int, float]:
    """Return the value of one counter by rank, of COUNTERS; ranks that have none are left out."""
    is_metric = pc.equal(counters["metric"].cast(pa.string()), metric)
    table = counters.filter(pc.and_(is_metric, pc.equal(counters["label"], label)))
    return dict(zip(table["rank"].to_pylist(), table["value"].to_pylist(), strict=True))
