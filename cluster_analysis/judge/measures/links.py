"""Links: each directed link against links of the same transport, kind of operator and size."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from msgspec import Struct

from cluster_analysis.judge.measures.slow_units import Units, beyond_class, judge_units
from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.grouped import medians_of, order_by
from cluster_analysis.numeric.sorting import begins, combined, distinct, first_positions, half_octaves
from cluster_analysis.replay.job_evidence import JobEvidence
from cluster_analysis.tables.model import Topology
from cluster_analysis.tables.schema import LINK_SUMMARY, empty
from cluster_analysis.thresholds.limits import Thresholds
from cluster_analysis.thresholds.network import DEVICES_PER_BOARD, SMALL_BYTES
from cluster_analysis.trace.calls import codes, is_representative, numbers
from cluster_run.ids import Rank


class Observations(Struct, frozen=True):
    """One entry an observation of a link. `excess` is ln(time per byte) above the class's median link.

    `pair` numbers the pairs of `src` and `dst` through, in their order.
    """

    src: IntArray
    dst: IntArray
    pair: IntArray
    step: IntArray
    transport: IntArray
    kind: IntArray
    group: IntArray
    size_bytes: FloatArray
    time_us: FloatArray
    excess: FloatArray
    transports: tuple[str, ...]
    kinds: tuple[str, ...]
    groups: tuple[str, ...]


def observe(evidence: JobEvidence, topology: Topology, limits: Thresholds) -> Observations | None:
    """Turn link rows into observations; totals only where nothing finer is known. None without any."""
    table = evidence.links
    if not table.num_rows:
        return None
    (transports, transport), (kinds, kind), (groups, group) = (
        codes(table[name]) for name in ("transport", "op_type", "group")
    )
    src, dst = (np.asarray(table[name].to_numpy(), np.int32) for name in ("src_rank", "dst_rank"))
    step = np.asarray(table["step"].to_numpy(), np.int64)
    size, time = numbers(table["size_bytes"]), numbers(table["time_us"])
    is_usual = is_representative(table["variant"])
    moves = np.isin(transport, [i for i, name in enumerate(transports) if name.upper() != "LOCAL"])
    keep = moves & is_usual if is_usual.any() else moves
    # Small messages are all latency: they say nothing on bandwidth, and a slow link looks healthy in them.
    large = keep & (size >= SMALL_BYTES)
    rows = np.flatnonzero(large if large.any() else keep)
    pair = combined(src[rows], dst[rows])[1]
    first = _is_first((step[rows], kind[rows], pair), time[rows])
    rows, pair = rows[first], pair[first]
    src, dst, step = src[rows], dst[rows], step[rows]
    transport, kind, group, size, time = transport[rows], kind[rows], group[rows], size[rows], time[rows]
    alike = (transport, kind, half_octaves(size), _reach(src, dst, topology))
    excess = beyond_class(pair, alike, np.log(time / size), limits.link_effect)
    return Observations(
        src, dst, pair, step, transport, kind, group, size, time, excess, transports, kinds, groups
    )


def _is_first(names: tuple[IntArray, ...], time_us: FloatArray) -> BoolArray:
    """Which rows are the first of their names and time; no two operators last as long to the last digit.

    The fastest, the middle and the slowest operator of a kind are one where a step has a single one.
    """
    code = combined(*names)[1]
    order = order_by(time_us, code)
    is_new = begins(code[order])
    is_new[1:] |= np.diff(time_us[order]) != 0
    first = np.zeros(len(order), bool)
    first[np.minimum.reduceat(order, np.flatnonzero(is_new))] = True
    return first


def _reach(src: IntArray, dst: IntArray, topology: Topology) -> IntArray:
    """How far links reach: between boards of a host (0), within one (1), elsewhere (2); speeds differ."""
    ranks, at = distinct(np.r_[src, dst])
    ids = [Rank(rank) for rank in ranks.tolist()]
    number_of = {host: number for number, host in enumerate(sorted(set(topology.hosts.values())))}
    host = np.array(
        [number_of[topology.hosts[one]] if one in topology.hosts else -1 for one in ids], np.int64
    )
    board = np.array([int(topology.devices.get(one, -1)) // DEVICES_PER_BOARD for one in ids], np.int64)
    one, other = at[: len(src)], at[len(src) :]
    is_inside = (host[one] >= 0) & (host[one] == host[other])
    return np.asarray(np.where(is_inside, board[one] == board[other], 2))


def judge_links(seen: Observations, limits: Thresholds) -> Units:
    """Find the slow links, each transport of a pair of ranks by itself."""
    link = combined(seen.transport, seen.pair)[1]
    first = first_positions(link)
    members = tuple(zip(seen.src[first].tolist(), seen.dst[first].tolist(), strict=True))
    transport = tuple(seen.transports[code] for code in seen.transport[first].tolist())
    return judge_units(link, seen.excess, members, np.zeros(len(first), bool), transport, limits.link_effect)


def link_summary(seen: Observations | None) -> pa.Table:
    """LINK_SUMMARY: sums by link, transport and kind of operator beside the class's median link."""
    if seen is None or not len(seen.src):
        return empty(LINK_SUMMARY)
    row = combined(seen.transport, seen.kind, seen.pair)[1]
    first = first_positions(row)
    n = len(first)
    size, time = np.bincount(row, seen.size_bytes, n), np.bincount(row, seen.time_us, n)
    excess = np.expm1(medians_of(seen.excess, row))
    bandwidth = size / time / 1e3
    names = [pa.array(part, pa.string()) for part in (seen.transports, seen.kinds)]
    return pa.table(
        {
            "src_rank": pa.array(seen.src[first]),
            "dst_rank": pa.array(seen.dst[first]),
            "transport": pa.DictionaryArray.from_arrays(pa.array(seen.transport[first]), names[0]),
            "op_type": pa.DictionaryArray.from_arrays(pa.array(seen.kind[first]), names[1]),
            "n_observations": pa.array(np.bincount(row, minlength=n).astype(np.int32)),
            "size_bytes": pa.array(size),
            "time_us": pa.array(time),
            "bandwidth_gbps": pa.array(bandwidth),
            "class_bandwidth_gbps": pa.array(bandwidth * (1.0 + excess), from_pandas=True),
            "excess_share": pa.array(excess, from_pandas=True),
        }
    ).cast(LINK_SUMMARY)
