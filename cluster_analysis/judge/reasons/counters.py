"""One counter of suspects beside the same counter of others. Counters sum up a whole capture: they explain,
and accuse nobody."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.numeric.stats import median, sigma


@dataclass(frozen=True)
class Beside:
    """A counter of a suspect, and of those that it is compared with: their median, scatter and number."""

    own: float
    others: float
    scatter: float
    n_others: int


def by_rank(counters: pa.Table, metric: str, label: str = "") -> dict[int, float]:
    """Return the value of one counter by rank, of COUNTERS; ranks that have none are left out."""
    wanted = pc.and_(
        pc.equal(counters["metric"].cast(pa.string()), metric), pc.equal(counters["label"], label)
    )
    table = counters.filter(wanted)
    return dict(zip(table["rank"].to_pylist(), table["value"].to_pylist(), strict=True))


def beside(values: Mapping[int, float], own: float, others: Iterable[int]) -> Beside:
    """Return a value beside those of other ranks, as far as these have one."""
    known = np.array([values[rank] for rank in others if rank in values], float)
    if not len(known):
        return Beside(own, float("nan"), float("nan"), 0)
    return Beside(own, float(median(known)), float(sigma(known)), len(known))
