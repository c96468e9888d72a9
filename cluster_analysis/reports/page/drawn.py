"""Charts that the template draws: points, widths and shades. What scripts draw is a `Picture`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from cluster_analysis.result import AnalysisResult
from cluster_analysis.tables.schema import rows_of
from cluster_run.ids import host_number

#: Size of the picture of a curve, in its own units.
WIDTH, HEIGHT = 600, 120
_GIB = 2.0**30
#: Lines of one picture; of more ranks, those with the highest peaks are drawn.
_MAX_LINES = 64
_MAX_COMPONENTS = 4
_UNITS = ("B", "KiB", "MiB", "GiB")


class Curves(Struct, frozen=True):
    """Memory of one component: for each rank the points of its line, and the highest value as text."""

    component: str
    most: str
    lines: Sequence[tuple[int, str]]


class Bar(Struct, frozen=True):
    """Packets of one size: its share of the longest bar, and what is written next to it."""

    transport: str
    size: str
    share: float
    time: str
    n_packets: str
    bandwidth: str


class Cell(Struct, frozen=True):
    """One device: its rank, a shade from 0 to 1, and what is written in it."""

    rank: int
    shade: float
    lines: Sequence[str]


def memory_curves(result: AnalysisResult) -> list[Curves]:
    """Return the components whose memory was recorded over time, largest first."""
    table = result.table("memory")
    text = table["component"].cast(pa.string())
    peaks = table.set_column(table.schema.get_field_index("component"), "component", text)
    by_component = peaks.group_by(["component"], use_threads=False).aggregate([("reserved_bytes", "max")])
    found = []
    for row in sorted(by_component.to_pylist(), key=lambda one: -(one["reserved_bytes_max"] or 0.0)):
        most = row["reserved_bytes_max"]
        if most:
            own = peaks.filter(pc.equal(peaks["component"], row["component"]))
            found.append(Curves(row["component"], f"{most / _GIB:,.2f} GiB", _lines(own, most)))
    return found[:_MAX_COMPONENTS]


def _lines(table: pa.Table, most: float) -> list[tuple[int, str]]:
    last = pc.max(table["time_us"]).as_py() or 1.0
    points: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for rank, time, value in rows_of(table, "rank", "time_us", "reserved_bytes"):
        if value is not None:
            points[rank].append((WIDTH * time / last, HEIGHT * (1.0 - value / most)))
    highest = sorted(points, key=lambda rank: (min(y for _, y in points[rank]), rank))[:_MAX_LINES]
    return [(rank, " ".join(f"{x:.1f},{y:.1f}" for x, y in sorted(points[rank]))) for rank in sorted(highest)]


def packet_bars(result: AnalysisResult) -> list[Bar]:
    """Return packets by transport and size."""
    rows = result.table("packet_sizes").to_pylist()
    longest = max((row["total_us"] for row in rows), default=0.0)
    return [
        Bar(
            row["transport"],
            f"≥ {_size(row['from_bytes'])}",
            row["total_us"] / longest,
            f"{row['total_us'] / 1e3:,.2f} ms",
            f"{row['n_packets']:,}",
            "–" if row["bandwidth_gbps"] is None else f"{row['bandwidth_gbps']:,.1f} GB/s",
        )
        for row in rows
        if longest
    ]


def device_map(result: AnalysisResult) -> list[tuple[str, list[Cell]]]:
    """Return the devices of each host; the shade is that of FLOPs, else of memory, else of the clock."""
    rows = result.table("devices").to_pylist()
    name = next(
        one
        for one in ("flops_share", "memory_bytes", "lowest_clock_mhz", "rank")
        if one == "rank" or any(row[one] for row in rows)
    )
    most = max((float(row[name] or 0.0) for row in rows), default=0.0) or 1.0
    hosts: dict[str, list[Cell]] = defaultdict(list)
    for row in sorted(rows, key=lambda one: (one["device"] is None, one["device"], one["rank"])):
        shade = 0.0 if name == "rank" else float(row[name] or 0.0) / most
        hosts[row["host"] or ""].append(Cell(row["rank"], shade, _written(row)))
    return sorted(hosts.items(), key=lambda one: host_number(one[0]))


def _written(row: dict[str, float | None]) -> list[str]:
    found = []
    flops, memory, capacity = row["flops_share"], row["memory_bytes"], row["capacity_bytes"]
    if flops is not None:
        found.append(f"{100 * flops:.0f} % FLOPs")
    if memory:
        found.append(f"{memory / _GIB:.1f} GiB" + (f" / {capacity / _GIB:.0f}" if capacity else ""))
    low, high = row["lowest_clock_mhz"], row["highest_clock_mhz"]
    if low and high:
        found.append(f"{low:.0f} MHz" if low == high else f"{low:.0f}–{high:.0f} MHz")
    return found


def _size(value: float) -> str:
    unit = 0
    while value >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.0f} {_UNITS[unit]}"
