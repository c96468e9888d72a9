"""The parts of a step by pipeline stage: the mean over its ranks and steps."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pyarrow as pa

from cluster_analysis.tables.columns_described import Stages
from cluster_analysis.tables.model import Topology
from cluster_analysis.trace.calls import numbers
from cluster_run.ids import Rank

_PARTS = tuple(name for name in Stages.schema.names if name.endswith("_us"))


def by_stage(steps: pa.Table, topology: Topology) -> pa.Table:
    """Return `Stages` of STEPS; ranks whose stage is not known stand together, with a null."""
    rows_of: dict[int | None, list[int]] = defaultdict(list)
    ranks = steps["rank"].to_pylist()
    for row, rank in enumerate(ranks):
        rows_of[topology.stages.get(Rank(rank))].append(row)
    values = {name: numbers(steps[name]) for name in _PARTS}
    rows: list[dict[str, object]] = []
    for stage in sorted(rows_of, key=lambda one: (one is None, one or 0)):
        here = np.array(rows_of[stage])
        means = {
            name: float(np.nanmean(own[here])) if np.isfinite(own[here]).any() else None
            for name, own in values.items()
        }
        rows.append({"stage": stage, "n_ranks": len({ranks[row] for row in here}), **means})
    return Stages.of_rows(rows)
