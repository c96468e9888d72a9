"""Ranks, devices, stages, groups, packets and hosts, each as one table: what maps and pictures show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.numeric.arrays import codes, numbers
from cluster_analysis.tables.columns_described import (
    Devices,
    FiguresBetweenRanks,
    Flops,
    Groups,
    HostTimes,
    MemoryPeaks,
    PacketSizes,
    Stages,
)
from cluster_analysis.tables.columns_measured import PartsOfStep
from cluster_analysis.tables.model import Topology
from cluster_analysis.tables.schema import rows_of
from cluster_run.ids import Rank

Tables = Mapping[str, pa.Table]
#: Counter and label of each column of `HostTimes`, of `Flops`, and of what r1.x plans for `MemoryPeaks`.
_HOST_COUNTERS = {
    ("idle_us", "synchronising"): "synchronising_us",
    ("idle_us", "collecting"): "collecting_us",
    ("idle_us", "dispatching"): "dispatching_us",
    ("idle_us", "elsewhere"): "elsewhere_us",
    ("dispatch_delay_us", "median"): "dispatch_delay_us",
    ("dispatched_late_share", ""): "dispatched_late_share",
    ("host_cpu_busy_share", "all"): "host_cpu_busy_share",
}
_FLOPS = {
    ("flops_count", ""): "flops_count",
    ("flops_per_s", ""): "flops_per_s",
    ("flops_utilization_share", ""): "peak_share",
}
_PLANNED = {
    ("memory_theoretical_peak_bytes", ""): "allocated_bytes",
    ("memory_capacity_bytes", ""): "capacity_bytes",
}
_PEAKS = ("allocated_bytes", "reserved_bytes", "active_bytes")


def by_stage(steps: pa.Table, topology: Topology) -> pa.Table:
    """Return `Stages` of STEPS; ranks whose stage is not known stand together, with a null."""
    rows_of: dict[int | None, list[int]] = defaultdict(list)
    ranks = steps["rank"].to_pylist()
    for row, rank in enumerate(ranks):
        rows_of[topology.stages.get(Rank(rank))].append(row)
    values = {name: numbers(steps[name]) for name in PartsOfStep.schema.names}
    rows: list[dict[str, Any]] = []
    for stage in sorted(rows_of, key=lambda one: (one is None, one or 0)):
        here = np.array(rows_of[stage])
        means = {
            name: float(np.nanmean(own[here])) if np.isfinite(own[here]).any() else None
            for name, own in values.items()
        }
        rows.append({"stage": stage, "n_ranks": len({ranks[row] for row in here}), **means})
    return Stages.of_rows(rows)


def figures_between_ranks(counters: pa.Table) -> pa.Table:
    """Return `FiguresBetweenRanks` of COUNTERS, also for values that are equal on all ranks."""
    values: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    for row in counters.to_pylist():
        values[row["metric"], row["label"] or ""][row["rank"]] = row["value"]
    rows: list[dict[str, Any]] = [
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


def flops_of_ranks(kernels: pa.Table, counters: pa.Table) -> pa.Table:
    """Return `Flops` by rank: what r1.x states, else that of matrix products over the time they took.

    The share is of the fastest rank's, as the r1.x page has it (FLOPs / max FLOPs).
    """
    rows = {rank: {**row, "of": "step"} for rank, row in _counted(counters, _FLOPS).items()}
    products = kernels.filter(pc.is_valid(kernels["flops_count"]))
    summed = products.group_by(["rank"], use_threads=False).aggregate(
        [("flops_count", "sum"), ("total_us", "sum")]
    )
    for row in summed.to_pylist():
        if row["rank"] not in rows and row["total_us_sum"] > 0:
            per_s = row["flops_count_sum"] / (row["total_us_sum"] / 1e6)
            rows[row["rank"]] = {
                "rank": row["rank"],
                "of": "matrix products",
                "flops_count": row["flops_count_sum"],
                "flops_per_s": per_s,
            }
    most = max((float(row.get("flops_count") or 0.0) for row in rows.values()), default=0.0)
    for row in rows.values():
        row["share_of_largest"] = float(row.get("flops_count") or 0.0) / most if most else None
    return Flops.of_rows([rows[rank] for rank in sorted(rows)])


def memory_peaks(memory: pa.Table, counters: pa.Table, topology: Topology) -> pa.Table:
    """Return `MemoryPeaks`: recorded peaks, and r1.x' theoretical peak against the device's capacity."""
    grouped = memory.group_by(["rank", "component"], use_threads=False).aggregate(
        [(name, "max") for name in _PEAKS]
    )
    rows: list[dict[str, Any]] = [
        {"rank": row["rank"], "component": row["component"], **{name: row[f"{name}_max"] for name in _PEAKS}}
        for row in grouped.to_pylist()
    ]
    rows += [{**row, "component": "theoretical"} for row in _counted(counters, _PLANNED).values()]
    _with_peers(rows, topology)
    rows.sort(key=lambda row: (int(row["rank"]), str(row["component"])))
    return MemoryPeaks.of_rows(rows)


def _with_peers(rows: list[dict[str, Any]], topology: Topology) -> None:
    """Add to each row the median of its component over the ranks of its stage."""
    together: dict[tuple[object, object], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        together[topology.stages.get(Rank(int(row["rank"]))), row["component"]].append(row)
    for group in together.values():
        values = [one.get("reserved_bytes") or one.get("allocated_bytes") for one in group]
        known = [float(one) for one in values if one is not None]
        for one in group:
            one["peers_median_bytes"] = float(np.median(known)) if known else None


def devices(tables: Tables, topology: Topology) -> pa.Table:
    """Return `Devices`: FLOPs, memory and clock of each rank, where any of them is known."""
    rows: dict[int, dict[str, Any]] = defaultdict(dict)
    for row in tables["flops"].to_pylist():
        rows[row["rank"]]["flops_share"] = row["share_of_largest"]
    for row in tables["memory_peaks"].to_pylist():
        own = rows[row["rank"]]
        most = max((row[name] or 0.0) for name in ("reserved_bytes", "allocated_bytes"))
        own["memory_bytes"] = max(most, float(own.get("memory_bytes") or 0.0))
        own["capacity_bytes"] = own.get("capacity_bytes") or row["capacity_bytes"]
    clocks = tables["frequency"].group_by(["rank"], use_threads=False)
    for row in clocks.aggregate([("frequency_mhz", "min"), ("frequency_mhz", "max")]).to_pylist():
        rows[row["rank"]]["lowest_clock_mhz"] = row["frequency_mhz_min"]
        rows[row["rank"]]["highest_clock_mhz"] = row["frequency_mhz_max"]
    of_rank = {int(rank): rank for rank in topology.ranks}
    for rank, row in rows.items():
        known = of_rank.get(rank)
        row["rank"] = rank
        row["host"] = topology.hosts.get(known) if known is not None else None
        row["device"] = topology.devices.get(known) if known is not None else None
    return Devices.of_rows([rows[rank] for rank in sorted(rows)])


def groups(topology: Topology) -> pa.Table:
    """Return `Groups`, by role and members."""
    rows: list[dict[str, Any]] = [
        {
            "role": one.role,
            "group": one.name or one.group,
            "n_ranks": len(one.ranks),
            "ranks": list(one.ranks),
            "communicator": one.group,
        }
        for one in topology.groups.values()
        if len(one.ranks) > 1
    ]
    rows.sort(key=lambda row: (str(row["role"]), row["ranks"], str(row["group"])))
    return Groups.of_rows(rows)


def packet_sizes(packets: pa.Table) -> pa.Table:
    """Return `PacketSizes`: packets of all ranks by transport and size, rounded down to powers of two."""
    if not packets.num_rows:
        return PacketSizes.schema.empty_table()
    transports, transport = codes(packets["transport"])
    size = numbers(packets["packet_bytes"])
    power = np.floor(np.log2(np.maximum(size, 1.0))).astype(np.int64)
    n, time = numbers(packets["n_packets"]), np.nan_to_num(numbers(packets["total_us"]))
    rows: list[dict[str, Any]] = []
    for code, exponent in sorted(set(zip(transport.tolist(), power.tolist(), strict=True))):
        here = (transport == code) & (power == exponent)
        total_us, moved = float(time[here].sum()), float((n * size)[here].sum())
        rows.append(
            {
                "transport": transports[code],
                "from_bytes": float(2**exponent),
                "n_packets": int(n[here].sum()),
                "size_bytes": moved,
                "total_us": total_us,
                "bandwidth_gbps": moved / total_us / 1e3 if total_us else None,
            }
        )
    return PacketSizes.of_rows(rows)


def host_times(counters: pa.Table) -> pa.Table:
    """Return `HostTimes`: what the host did while its device idled, and how long launches lie ahead."""
    rows = _counted(counters, _HOST_COUNTERS)
    return HostTimes.of_rows([rows[rank] for rank in sorted(rows)])


def _counted(counters: pa.Table, columns: Mapping[tuple[str, str], str]) -> dict[int, dict[str, Any]]:
    """Return those of COUNTERS that have a column, by their metrics and labels: a row a rank."""
    rows: dict[int, dict[str, Any]] = defaultdict(dict)
    for rank, metric, label, value in rows_of(counters, "rank", "metric", "label", "value"):
        if column := columns.get((metric, label or "")):
            rows[rank] |= {"rank": rank, column: value}
    return rows
