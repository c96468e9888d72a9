"""Links: each directed link against links of the same transport, kind of operator and size.

Bandwidth depends on all three, so averages over sizes compare nothing. 3 % of single observations are
40 % slow on healthy links; the median over a link's independent observations is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.sorting import begins, distinct, first_positions, half_octaves, stable_order
from cluster_analysis.numeric.stats import benjamini_hochberg, binomial_tail, sigma, student_tail
from cluster_analysis.replay.job_evidence import JobEvidence
from cluster_analysis.tables.model import Topology
from cluster_analysis.tables.schema import LINK_SUMMARY, empty
from cluster_analysis.thresholds.common import FEWEST_PEERS, HALFWAY, LEAST_DF, TWICE
from cluster_analysis.thresholds.limits import Thresholds
from cluster_analysis.thresholds.network import (
    DEVICES_PER_BOARD,
    HEALTHY_QUANTILE,
    SMALL_BYTES,
)
from cluster_analysis.trace.calls import codes, is_sum, numbers

#: What observations are made of.
_OBSERVED = ["step", "op_type", "variant", "src_rank", "dst_rank", "transport", "size_bytes", "time_us"]


@dataclass(frozen=True)
class Observations:
    """One entry an observation of a link. `excess` is ln(time per byte) above the class's median link.

    `pair` numbers the pairs of `src` and `dst` through, in their order.
    """

    src: IntArray
    dst: IntArray
    pair: IntArray
    transport: IntArray
    kind: IntArray
    bucket: IntArray
    step: IntArray
    size_bytes: FloatArray
    time_us: FloatArray
    excess: FloatArray
    transports: tuple[str, ...]
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class LinkTable:
    """One entry a directed link and transport. `level` is the median excess, `slow` passed the gates.

    `chance` is how probable it is that so many observations are slow on a healthy link, some of whose are.
    """

    src: IntArray
    dst: IntArray
    transport: IntArray
    level: FloatArray
    sigma: FloatArray
    n: IntArray
    n_peers: IntArray
    slow: np.ndarray[tuple[int], np.dtype[np.bool_]]
    chance: FloatArray
    transports: tuple[str, ...]


def observe(evidence: JobEvidence, topology: Topology, limits: Thresholds) -> Observations | None:
    """Turn link rows into observations; totals only where nothing finer is known. None without any."""
    table = evidence.links.select(_OBSERVED)
    if not table.num_rows:
        return None
    host_of = {int(rank): host for rank, host in topology.hosts.items()}
    device_of = {int(rank): int(device) for rank, device in topology.devices.items()}
    is_total = is_sum(table["variant"])
    if not is_total.all():
        table = table.filter(pa.array(~is_total))
    transports, transport = codes(table["transport"])
    kinds, kind = codes(table["op_type"])
    keep = np.isin(transport, [i for i, name in enumerate(transports) if name.upper() != "LOCAL"])
    size, time = numbers(table["size_bytes"]), numbers(table["time_us"])
    # Small messages are all latency: they say nothing on bandwidth, and a slow link looks healthy in them.
    large = keep & (size >= SMALL_BYTES)
    rows = np.flatnonzero(large if large.any() else keep)
    step = np.asarray(table["step"].to_numpy(), np.int64)
    src, dst = (np.asarray(table[name].to_numpy(), np.int32)[rows] for name in ("src_rank", "dst_rank"))
    pair = _combine(src, dst)
    # The fastest, the middle and the slowest operator of a kind are one where a step has a single one.
    first = _is_first((step[rows], kind[rows], pair), time[rows])
    rows, src, dst, pair = rows[first], src[first], dst[first], pair[first]
    transport, kind, size, time = transport[rows], kind[rows], size[rows], time[rows]
    bucket = half_octaves(size)
    # Servers of two boards have two classes of links under one name: within a board, and between them.
    board = np.where(_is_inside(src, dst, host_of), _same_board(src, dst, device_of), 2)
    excess = _excess(pair, (transport, kind, bucket, board), np.log(time / size), limits)
    return Observations(
        src, dst, pair, transport, kind, bucket, step[rows], size, time, excess, transports, kinds
    )


def _is_first(names: tuple[IntArray, ...], time_us: FloatArray) -> BoolArray:
    """Which rows are the first of their names and time; no two operators last as long to the last digit."""
    code = _combine(*names)
    order = _by_group_and_value(time_us, code)
    is_new = begins(code[order])
    is_new[1:] |= np.diff(time_us[order]) != 0
    first = np.zeros(len(order), bool)
    first[np.minimum.reduceat(order, np.flatnonzero(is_new))] = True
    return first


def _is_inside(src: IntArray, dst: IntArray, host_of: Mapping[int, str]) -> BoolArray:
    """Whether both ends are known to be on one host."""
    numbers_of = {host: number for number, host in enumerate(sorted(set(host_of.values())))}
    codes_of = {rank: numbers_of[host] for rank, host in host_of.items()}
    one, other = _mapped(src, codes_of), _mapped(dst, codes_of)
    return np.asarray((one >= 0) & (one == other))


def _same_board(src: IntArray, dst: IntArray, device_of: Mapping[int, int]) -> IntArray:
    one, other = _mapped(src, device_of), _mapped(dst, device_of)
    return np.asarray(one // DEVICES_PER_BOARD == other // DEVICES_PER_BOARD).astype(np.int64)


def _mapped(ranks: IntArray, values: Mapping[int, int]) -> IntArray:
    known, inverse = distinct(ranks)
    return np.array([values.get(int(rank), -1) for rank in known], np.int64)[inverse]


def _excess(
    pair: IntArray, classes: tuple[IntArray, ...], slowness: FloatArray, limits: Thresholds
) -> FloatArray:
    """ln(time per byte) minus that of the class's middle healthy link.

    A slow uplink makes up to half of all links slow, so that their median would be no reference. What lies
    within the least effect of the 30 % quantile is healthy, and the middle of that is the reference.

    Of two links the slower one is known to be slow where contention could not make it so: else nobody
    knows how links of the class scatter, and they compare nothing: NaN. So does a single one.
    """
    class_of = _combine(*classes)
    link_of = _combine(class_of, pair)
    own = _medians(slowness, link_of)
    link_class = class_of[first_positions(link_of)]
    n_classes = int(class_of.max(initial=-1)) + 1
    above = own - _quantiles_by(own, link_class, n_classes, HEALTHY_QUANTILE)[link_class]
    is_healthy = above <= np.log1p(limits.link_effect)
    reference = _medians_by(np.where(is_healthy, own, np.nan), link_class, n_classes)
    farthest = np.zeros(n_classes)
    np.maximum.at(farthest, link_class, above)
    is_few = np.bincount(link_class, minlength=n_classes) < FEWEST_PEERS
    reference[is_few & (farthest < np.log(TWICE))] = np.nan
    return slowness - reference[class_of]


def _combine(*parts: IntArray) -> IntArray:
    """Number the distinct tuples through."""
    if not len(parts[0]):
        return np.empty(0, np.int32)
    code = np.zeros(len(parts[0]), np.int64)
    for part in parts:
        low = int(part.min())
        code = code * (int(part.max()) - low + 1) + (part - low)
    return distinct(code)[1]


def _medians(values: FloatArray, groups: IntArray) -> FloatArray:
    """Median of each group 0…G-1, ignoring NaN."""
    return _medians_by(values, groups, int(groups.max(initial=-1)) + 1)


def _medians_by(values: FloatArray, groups: IntArray, n_groups: int) -> FloatArray:
    result = np.full(n_groups, np.nan)
    known = np.flatnonzero(np.isfinite(values))
    order = known[_by_group_and_value(values[known], groups[known])]
    ordered = groups[order]
    begin = np.searchsorted(ordered, np.arange(n_groups))
    count = np.searchsorted(ordered, np.arange(n_groups), side="right") - begin
    filled = count > 0
    low, high = begin[filled] + (count[filled] - 1) // 2, begin[filled] + count[filled] // 2
    result[filled] = (values[order[low]] + values[order[high]]) / 2
    return result


def _by_group_and_value(values: FloatArray, groups: IntArray) -> IntArray:
    by_value = np.argsort(values)
    return by_value[stable_order(groups[by_value])]


def _quantiles_by(values: FloatArray, groups: IntArray, n_groups: int, quantile: float) -> FloatArray:
    result = np.full(n_groups, np.nan)
    order = _by_group_and_value(values, groups)
    ordered = groups[order]
    begin = np.searchsorted(ordered, np.arange(n_groups))
    count = np.searchsorted(ordered, np.arange(n_groups), side="right") - begin
    filled = count > 0
    result[filled] = values[order[begin[filled] + ((count[filled] - 1) * quantile).astype(np.int64)]]
    return result


def judge_links(seen: Observations, limits: Thresholds) -> LinkTable:
    """Find the slow links: significant in their transport, ≥ 10 % slower in the middle."""
    link = _combine(seen.transport, seen.pair)
    first = first_positions(link)
    n_links = len(first)
    level = _medians(seen.excess, link)
    least = np.log1p(limits.link_effect)
    slow_seen = np.where(np.isfinite(seen.excess), seen.excess > HALFWAY * least, False)
    n = np.bincount(link, np.isfinite(seen.excess), n_links).astype(np.int32)
    share = np.bincount(link, slow_seen, n_links) / np.maximum(n, 1)
    transport = seen.transport[first]
    spread, p = np.full(n_links, np.nan), np.full(n_links, np.nan)
    slow = np.zeros(n_links, bool)
    n_peers = np.zeros(n_links, np.int32)
    for code in np.unique(transport):
        inside = np.flatnonzero((transport == code) & np.isfinite(level))
        if not len(inside):
            continue
        n_peers[inside] = len(inside) - 1
        bulk = level[inside]
        # Scatter from the fast side only, as if the slow one were like it: that may be the fault.
        fast = bulk[bulk <= 0.0]
        scale = float(np.fmax(sigma(np.r_[fast, -fast]), limits.floor_single))
        spread[inside] = scale
        p[inside] = student_tail(bulk / scale, max(LEAST_DF, len(inside) - 2))
        chosen = benjamini_hochberg(p[inside], limits.false_discovery_rate)
        slow[inside] = chosen & (bulk >= least)
    chance = np.ones(n_links)
    healthy = seen.excess[~slow[link] & np.isfinite(seen.excess)]
    for here in np.flatnonzero(slow):
        chance[here] = chance_of(float(level[here]), float(share[here]), int(n[here]), healthy)
    slow &= chance * n_links <= 1.0
    return LinkTable(
        seen.src[first], seen.dst[first], transport, level, spread, n, n_peers, slow, chance, seen.transports
    )


def chance_of(level: float, share: float, n: int, healthy: FloatArray) -> float:
    """How probable `share` of `n` observations at `level` is by chance, given the excess of healthy ones.

    Contention slows some transfers of any link for a moment: so often as the others show.
    """
    as_slow = float((healthy > HALFWAY * level).sum()) + 0.5
    return float(binomial_tail(round(share * n), n, as_slow / (len(healthy) + 1)))


def link_summary(seen: Observations | None) -> pa.Table:
    """LINK_SUMMARY: sums by link, transport and kind of operator beside the class's median link."""
    if seen is None or not len(seen.src):
        return empty(LINK_SUMMARY)
    row = _combine(seen.transport, seen.kind, seen.pair)
    first = first_positions(row)
    n = len(first)
    size, time = np.bincount(row, seen.size_bytes, n), np.bincount(row, seen.time_us, n)
    excess = np.expm1(_medians(seen.excess, row))
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
