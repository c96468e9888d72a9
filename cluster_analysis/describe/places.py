"""Devices, groups, packets and hosts, each as one table: what maps and pictures are drawn of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.tables.columns_described import Devices, Groups, HostTimes, PacketSizes
from cluster_analysis.tables.model import Topology
from cluster_analysis.trace.calls import codes, numbers

Tables = Mapping[str, pa.Table]
#: Counter and label of each column of `HostTimes`.
_HOST_COUNTERS = {
    ("idle_us", "synchronising"): "synchronising_us",
    ("idle_us", "collecting"): "collecting_us",
    ("idle_us", "dispatching"): "dispatching_us",
    ("idle_us", "elsewhere"): "elsewhere_us",
    ("dispatch_delay_us", "median"): "dispatch_delay_us",
    ("dispatched_late_share", ""): "dispatched_late_share",
    ("host_cpu_busy_share", "all"): "host_cpu_busy_share",
}


def devices(tables: Tables, topology: Topology) -> pa.Table:
    """Return `Devices`: FLOPs, memory and clock of each rank, where any of them is known."""
    rows: dict[int, dict[str, object]] = defaultdict(dict)
    for row in tables["flops"].to_pylist():
        rows[row["rank"]]["flops_share"] = row["share_of_largest"]
    for row in tables["memory_peaks"].to_pylist():
        own = rows[row["rank"]]
        most = max((row[name] or 0.0) for name in ("reserved_bytes", "allocated_bytes"))
        own["memory_bytes"] = max(most, float(own.get("memory_bytes") or 0.0))  # type: ignore[arg-type]
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
    rows: list[dict[str, object]] = [
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
    rows: list[dict[str, object]] = []
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
    rows: dict[int, dict[str, object]] = defaultdict(dict)
    wanted = counters.filter(
        pc.is_in(counters["metric"].cast(pa.string()), pa.array([metric for metric, _ in _HOST_COUNTERS]))
    )
    for row in wanted.to_pylist():
        column = _HOST_COUNTERS.get((row["metric"], row["label"]))
        if column:
            rows[row["rank"]] |= {"rank": row["rank"], column: row["value"]}
    return HostTimes.of_rows([rows[rank] for rank in sorted(rows)])
