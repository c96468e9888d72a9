"""Links: each directed link against links of the same transport, kind of operator and size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import count

import numpy as np
import pyarrow as pa

from cluster_analysis.judge.measures.slow_units import Observations, beyond_class
from cluster_analysis.numeric.arrays import FloatArray, IntArray, codes, has_text, numbers
from cluster_analysis.numeric.grouped import medians_of
from cluster_analysis.numeric.sorting import combined, distinct, first_positions, half_octaves
from cluster_analysis.replay.job_evidence import JobEvidence
from cluster_analysis.replay.replay import Graph
from cluster_analysis.tables.model import Topology
from cluster_analysis.tables.schema import LINK_SUMMARY
from cluster_analysis.thresholds.common import MOSTLY
from cluster_analysis.thresholds.judging import SMALL_BYTES
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.ids import Rank


def observe(
    evidence: JobEvidence, topology: Topology, limits: Thresholds, graph: Graph | None = None
) -> Observations | None:
    """Turn link rows into observations; totals only where nothing finer is known. None without any.

    Kinds of operators and groups are numbered as in the graph.
    """
    table, types, known = evidence.links, graph.types if graph else (), graph.groups if graph else ()
    if not table.num_rows:
        return None
    transports, transport = codes(table["transport"])
    (kinds, kind), (groups, group) = codes(table["op_type"], types), codes(table["group"], known)
    src, dst = (np.asarray(table[name].to_numpy(), np.int32) for name in ("src_rank", "dst_rank"))
    step = np.searchsorted(evidence.steps, table["step"].to_numpy())
    size, time = numbers(table["size_bytes"]), numbers(table["time_us"])
    # Files name the fastest operator, the one in the middle and the three slowest: with more slow than fast
    # ones, a few calls of many that met others on their way would be the median of the known ones.
    is_usual = ~has_text(table["variant"], "total", "bottom2", "bottom3")
    moves = np.isin(transport, [i for i, name in enumerate(transports) if name.upper() != "LOCAL"])
    keep = moves & is_usual if is_usual.any() else moves
    large = keep & (size >= SMALL_BYTES)
    rows = np.flatnonzero(large if large.any() else keep)
    # If a step has a single operator of a kind, the files name it as the fastest, the middle and the slowest:
    # equal to the last digit, so it counts once.
    same_time = np.unique(time[rows], return_inverse=True)[1]
    names = (*(name[rows] for name in (step, kind, transport, src, dst)), same_time)
    rows = rows[np.sort(first_positions(combined(*names)[1]))]
    src, dst, step, transport = src[rows], dst[rows], step[rows], transport[rows]
    kind, size, time = kind[rows], size[rows], time[rows]
    unit = combined(transport, src, dst)[1]
    first = first_positions(unit)
    alike, slowness = combined(transport, kind, half_octaves(size))[1], np.log(time / size)
    reach = _reach(unit, src[first], dst[first], alike, slowness, topology)
    excess = beyond_class(unit, (alike, reach[unit]), slowness, limits.link_effect)
    members = tuple(zip(src[first].tolist(), dst[first].tolist(), strict=True))
    carriers = tuple(transports[code] for code in transport[first].tolist())
    return Observations(
        unit, step, kind, group[rows], size, time, excess, kinds, groups,
        members, np.zeros(len(first), bool), carriers, np.ones(len(first), bool),
    )  # fmt: skip


def _reach(
    unit: IntArray, src: IntArray, dst: IntArray, alike: IntArray, slowness: FloatArray, topology: Topology
) -> IntArray:
    """How far the link of each observation reaches: to another host (0), inside one (1), inside a board (2).

    No file tells which devices share a board: the number, side by side or in turn, is taken with which links
    inside boards, and links between them, differ least from others of their kind; none if that tells little.

    Each observation (N,) is of the link `unit`, from `src` to `dst` (U,), `slowness` being ln(time per byte),
    and is compared with those that are `alike`.
    """
    ranks, end = distinct(np.r_[src, dst])
    own, other = np.split(end, 2)
    host = np.array([topology.hosts.get(Rank(rank), "") for rank in ranks.tolist()], str)
    # Where no file numbers devices, ranks stand in their order.
    number_on = defaultdict[str, Iterator[int]](count)
    place = {rank: next(number_on[topology.hosts[rank]]) for rank in sorted(topology.hosts)}
    device = np.array([(topology.devices or place).get(Rank(rank), 0) for rank in ranks.tolist()])
    inside = ((host[own] != "") & (host[own] == host[other])).astype(np.int64)
    row = combined(alike, unit)[1]
    first = first_positions(row)
    of_unit, level = unit[first], medians_of(slowness, row)

    def spread(reach: IntArray) -> float:
        alike_too = combined(alike[first], reach[of_unit])[1]
        return float(np.abs(level - medians_of(level, alike_too)[alike_too]).sum())

    n_devices = int(device.max(initial=0)) + 1
    boards = [
        inside + inside * (board[own] == board[other])
        for n in range(2, n_devices)
        if n_devices % n == 0
        for board in (device // n, device % n)
    ]
    best: IntArray = min(boards, key=spread, default=inside)
    return best if spread(best) < MOSTLY * spread(inside) else inside


def link_summary(seen: Observations | None) -> pa.Table:
    """LINK_SUMMARY: sums by link, transport and kind of operator, with the median link of the class."""
    if seen is None or not len(seen.unit):
        return LINK_SUMMARY.empty_table()
    row = combined(seen.unit, seen.kind)[1]
    first = first_positions(row)
    size, time = (np.bincount(row, sums) for sums in (seen.size_bytes, seen.time_us))
    excess = np.expm1(medians_of(seen.excess, row))
    bandwidth = size / time / 1e3
    unit = seen.unit[first].tolist()
    return pa.table(
        {
            "src_rank": pa.array([seen.members[at][0] for at in unit]),
            "dst_rank": pa.array([seen.members[at][1] for at in unit]),
            "transport": pa.array([seen.transport[at] for at in unit]).dictionary_encode(),
            "op_type": pa.array([seen.kinds[kind] for kind in seen.kind[first]]).dictionary_encode(),
            "n_observations": pa.array(np.bincount(row)),
            "size_bytes": pa.array(size),
            "time_us": pa.array(time),
            "bandwidth_gbps": pa.array(bandwidth),
            "class_bandwidth_gbps": pa.array(bandwidth * (1.0 + excess), from_pandas=True),
            "excess_share": pa.array(excess, from_pandas=True),
        }
    ).cast(LINK_SUMMARY)
