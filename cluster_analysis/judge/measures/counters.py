"""Counters of ranks. They sum up a whole capture, so they only explain."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc


def by_rank(
    counters: pa.Table, metric: str, label: str | None = "", combine: Callable[[float, float], float] = min
) -> dict[int, float]:
    """Return the value of one counter of COUNTERS by rank; ranks that have none are left out.

    With None for the label those of all labels count: their sum, least or most.
    """
    table = counters.filter(pc.equal(counters["metric"].cast(pa.string()), metric))
    if label is not None:
        table = table.filter(pc.equal(table["label"], label))
    found: dict[int, float] = {}
    for rank, value in zip(table["rank"].to_pylist(), table["value"].to_pylist(), strict=True):
        if value is not None:
            found[rank] = combine(found[rank], value) if rank in found else value
    return found
