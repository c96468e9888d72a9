"""Every figure of a capture as a whole, between the ranks that have it: the least, the middle, the most."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pyarrow as pa

from cluster_analysis.tables.columns_described import FiguresBetweenRanks


def figures_between_ranks(counters: pa.Table) -> pa.Table:
    """Return `FiguresBetweenRanks` of COUNTERS; what no rank has more or less of stands there too."""
    values: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for row in counters.to_pylist():
        values[row["metric"], row["label"] or ""][row["rank"]] = row["value"]
    rows: list[dict[str, object]] = [
        {
            "metric": metric,
            "label": label,
            "n_ranks": len(by_rank),
            "min_value": min(by_rank.values()),
            "median_value": float(np.median(list(by_rank.values()))),
            "max_value": max(by_rank.values()),
            "max_rank": max(sorted(by_rank), key=lambda rank: by_rank[rank]),
        }
        for (metric, label), by_rank in sorted(values.items())
    ]
    return FiguresBetweenRanks.of_rows(rows)
