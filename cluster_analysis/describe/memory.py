"""Peaks of memory by rank and component, compared with those of the other ranks of the stage."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pyarrow as pa

from cluster_analysis.tables.columns_described import MemoryPeaks
from cluster_analysis.tables.model import Topology
from cluster_run.ids import Rank

_PEAKS = ("allocated_bytes", "reserved_bytes", "active_bytes")


def peaks(memory: pa.Table, counters: pa.Table, topology: Topology) -> pa.Table:
    """Return `MemoryPeaks`: recorded peaks, and r1.x' theoretical peak against the device's capacity."""
    grouped = memory.group_by(["rank", "component"], use_threads=False).aggregate(
        [(name, "max") for name in _PEAKS]
    )
    rows: list[dict[str, object]] = [
        {
            "rank": row["rank"],
            "component": row["component"],
            **{name: row[f"{name}_max"] for name in _PEAKS},
        }
        for row in grouped.to_pylist()
    ]
    theory: dict[int, dict[str, float]] = defaultdict(dict)
    for row in counters.to_pylist():
        if row["metric"] in ("memory_theoretical_peak_bytes", "memory_capacity_bytes"):
            theory[row["rank"]][row["metric"]] = row["value"]
    rows += [
        {
            "rank": rank,
            "component": "theoretical",
            "allocated_bytes": found.get("memory_theoretical_peak_bytes"),
            "capacity_bytes": found.get("memory_capacity_bytes"),
        }
        for rank, found in theory.items()
    ]
    _relative_to_peers(rows, topology)
    rows.sort(key=lambda row: (int(row["rank"]), str(row["component"])))  # type: ignore[call-overload]
    return MemoryPeaks.of_rows(rows)


def _relative_to_peers(rows: list[dict[str, object]], topology: Topology) -> None:
    """Add to each row the median of its component over the ranks of its stage."""
    together: dict[tuple[object, object], list[dict[str, object]]] = defaultdict(list)
    for row in rows:
        together[topology.stages.get(Rank(int(row["rank"]))), row["component"]].append(row)  # type: ignore[call-overload]
    for group in together.values():
        values = [one.get("reserved_bytes") or one.get("allocated_bytes") for one in group]
        known = [float(one) for one in values if one is not None]  # type: ignore[arg-type]
        for one in group:
            one["peers_median_bytes"] = float(np.median(known)) if known else None
