"""Counters of ranks. They sum up a whole capture: they explain, and accuse nobody."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc


def by_rank(counters: pa.Table, metric: str, label: str = "") -> dict[int, float]:
    """Return the value of one counter by rank, of COUNTERS; ranks that have none are left out."""
    is_metric = pc.equal(counters["metric"].cast(pa.string()), metric)
    table = counters.filter(pc.and_(is_metric, pc.equal(counters["label"], label)))
    return dict(zip(table["rank"].to_pylist(), table["value"].to_pylist(), strict=True))


def over_labels(
    counters: pa.Table, metric: str, combine: Callable[[float, float], float]
) -> dict[int, float]:
    """Return one value by rank of a counter that has several, of COUNTERS: their sum, least or most."""
    table = counters.filter(pc.equal(counters["metric"].cast(pa.string()), metric))
    found: dict[int, float] = {}
    for rank, value in zip(table["rank"].to_pylist(), table["value"].to_pylist(), strict=True):
        if value is not None:
            found[rank] = combine(found[rank], value) if rank in found else value
    return found
