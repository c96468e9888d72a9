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
from cluster_analysis.numeric.grouped import medians_of, order_by, quantiles_of
from cluster_analysis.numeric.sorting import begins, combined, distinct, first_positions, half_octaves
from cluster_analysis.numeric.stats import binomial_tail, sigma
from cluster_analysis.replay.job_evidence import JobEvidence
from cluster_analysis.tables.model import Topology
from cluster_analysis.tables.schema import LINK_SUMMARY, empty
from cluster_analysis.thresholds.common import FEWEST_PEERS, HALFWAY, TWICE
from cluster_analysis.thresholds.limits import Thresholds
from cluster_analysis.thresholds.network import (
    DEVICES_PER_BOARD,
    HEALTHY_QUANTILE,
    SMALL_BYTES,
)
from cluster_analysis.trace.calls import codes, is_representative, numbers

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
    is_usual = is_representative(table["variant"])
    if is_usual.any():
        table = table.filter(pa.array(is_usual))
    transports, transport = codes(table["transport"])
    kinds, kind = codes(table["op_type"])
    keep = np.isin(transport, [i for i, name in enumerate(transports) if name.upper() != "LOCAL"])
    size, time = numbers(table["size_bytes"]), numbers(table["time_us"])
    # Small messages are all latency: they say nothing on bandwidth, and a slow link looks healthy in them.
    large = keep & (size >= SMALL_BYTES)
    rows = np.flatnonzero(large if large.any() else keep)
    step = np.asarray(table["step"].to_numpy(), np.int64)
    src, dst = (np.asarray(table[name].to_numpy(), np.int32)[rows] for name in ("src_rank", "dst_rank"))
    pair = combined(src, dst)[1]
    # The fastest, the middle and the slowest operator of a kind are one where a step has a single one.
    first = _is_first((step[rows], kind[rows], pair), time[rows])
    rows, src, dst, pair = rows[first], src[first], dst[first], pair[first]
    transport, kind, size, time = transport[rows], kind[rows], size[rows], time[rows]
    # Servers of two boards have two classes of links under one name: within a board, and between them.
    board = np.where(_is_inside(src, dst, host_of), _same_board(src, dst, device_of), 2)
    alike = (transport, kind, half_octaves(size), board)
    excess = beyond_class(pair, alike, np.log(time / size), limits.link_effect)
    return Observations(src, dst, pair, transport, kind, size, time, excess, transports, kinds)


def _is_first(names: tuple[IntArray, ...], time_us: FloatArray) -> BoolArray:
    """Which rows are the first of their names and time; no two operators last as long to the last digit."""
    code = combined(*names)[1]
    order = order_by(time_us, code)
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


def beyond_class(
    unit: IntArray, classes: tuple[IntArray, ...], slowness: FloatArray, effect: float
) -> FloatArray:
    """Return ln(time per byte) minus that of the class's middle healthy unit, a link or a group (N,).

    A slow uplink makes up to half of all links slow, so that their median would be no reference. What lies
    within the least effect of the 30 % quantile is healthy, and the middle of that is the reference.

    Of two the slower one is known to be slow where contention could not make it so: else nobody knows how
    those of the class scatter, and they compare nothing: NaN. So does a single one.

    Args:
        unit: whose observation each one is (N,).
        classes: what it must share with others to be compared with them, each (N,).
        slowness: ln(time per byte) (N,).
        effect: the least effect, as a share of the time.
    """
    class_of = combined(*classes)[1]
    member = combined(class_of, unit)[1]
    own = medians_of(slowness, member)
    member_class = class_of[first_positions(member)]
    above = own - quantiles_of(own, member_class, HEALTHY_QUANTILE)[member_class]
    reference = medians_of(np.where(above <= np.log1p(effect), own, np.nan), member_class)
    farthest = np.zeros(len(reference))
    np.maximum.at(farthest, member_class, above)
    is_few = np.bincount(member_class, minlength=len(reference)) < FEWEST_PEERS
    reference[is_few & (farthest < np.log(TWICE))] = np.nan
    return slowness - reference[class_of]


def judge_links(seen: Observations, limits: Thresholds) -> LinkTable:
    """Find the slow links: ≥ 10 % slower in the middle, and rarely so by chance."""
    link = combined(seen.transport, seen.pair)[1]
    first = first_positions(link)
    transport = seen.transport[first]
    level = medians_of(seen.excess, link)
    spread = np.full(len(first), np.nan)
    n_peers = np.zeros(len(first), np.int32)
    for code in np.unique(transport):
        inside = np.flatnonzero((transport == code) & np.isfinite(level))
        if not len(inside):
            continue
        n_peers[inside] = len(inside) - 1
        # Scatter from the fast side only, as if the slow one were like it: that may be the fault.
        fast = level[inside][level[inside] <= 0.0]
        spread[inside] = np.fmax(sigma(np.r_[fast, -fast]), limits.floor_single)
    n, slow, chance = beyond_chance(seen.excess, link, level, limits.link_effect)
    return LinkTable(
        seen.src[first], seen.dst[first], transport, level, spread, n, n_peers, slow, chance, seen.transports
    )


def beyond_chance(
    excess: FloatArray, unit: IntArray, level: FloatArray, effect: float
) -> tuple[IntArray, BoolArray, FloatArray]:
    """Return how often each unit was observed, which are slow, and by what chance, all (U,).

    Contention slows some transfers of any link for a moment: chance is how probable so many slow ones are on
    a healthy unit, some of whose are, as often as those of the others show.

    Args:
        excess: of each observation (N,), NaN where it compares nothing.
        unit: whose it is (N,).
        level: the units' middle excess (U,).
        effect: the least effect, as a share of the time.
    """
    known = np.isfinite(excess)
    least = np.log1p(effect)
    n = np.bincount(unit, known, len(level)).astype(np.int32)
    n_slow = np.bincount(unit, np.where(known, excess, -np.inf) > HALFWAY * least, len(level)).astype(
        np.int64
    )
    slow = np.nan_to_num(level, nan=-np.inf) >= least
    healthy = excess[~slow[unit] & known]
    chance = np.ones(len(level))
    found = np.flatnonzero(slow)
    as_slow = _n_above(healthy, HALFWAY * level[found]) + 0.5
    for here, n_as_slow in zip(found.tolist(), as_slow.tolist(), strict=True):
        rate = n_as_slow / (len(healthy) + 1)
        chance[here] = float(binomial_tail(int(n_slow[here]), int(n[here]), rate))
    return n, slow & (chance * len(level) <= 1.0), chance


def _n_above(values: FloatArray, limits: FloatArray) -> IntArray:
    """How many of the values lie above each of the limits (L,); most values lie below all of them."""
    largest = np.sort(values[values > limits.min(initial=np.inf)])
    return len(largest) - np.searchsorted(largest, limits, side="right")


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
