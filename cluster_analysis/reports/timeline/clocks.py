"""The clocks of the hosts, from collectives: all ranks of one leave it together.

For two hosts the difference of their ends of the same collective is the difference of their clocks, plus
jitter (tens of µs). A line through these differences gives offset and drift of the pair; a weighted
least-squares fit over all pairs gives those of each host, against one reference. Starts are of no use for
this: ranks arrive whenever they arrive. Broadcasts and the like are left out: their ends are not common.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from cluster_analysis.numeric.arrays import codes
from cluster_analysis.numeric.sorting import begins, combined, places_in_runs
from cluster_analysis.numeric.stats import MAD_TO_SIGMA
from cluster_analysis.tables.operations import COMMON_END
from cluster_run.ids import HostId, Rank, host_number

Array = np.ndarray[Any, Any]

#: A drift is fitted only where a capture is this long; in a shorter one it is noise.
MIN_DRIFT_SPAN_S = 10.0
_MIN_OBSERVATIONS = 3


class HostClock(Struct, frozen=True):
    """How far a host's clock is ahead of the reference's, at `Clocks.origin_ns`.

    `error_us` is the spread of the differences it was fitted to; None where the host shares no collective
    with the reference, directly or through others. Its times are then as they were written.
    """

    offset_us: float
    drift_ppm: float
    error_us: float | None
    n_observations: int


class Clocks(Struct, frozen=True):
    """The clocks of all hosts of a job; ranks whose host is unknown have a clock each, under `rank N`."""

    reference: str
    origin_ns: int
    by_host: Mapping[str, HostClock]
    host_of: Mapping[Rank, str]

    def aligned_us(self, rank: Rank, times_ns: Array) -> Array:
        """Return times of one rank (int64 ns, own clock) on the reference's clock, in µs since the origin."""
        clock = self.by_host[self.host_of[rank]]
        own_us = (times_ns - self.origin_ns).astype(np.float64) / 1000
        return own_us - clock.offset_us - clock.drift_ppm * 1e-6 * own_us


def estimate_clocks(collectives: Sequence[pa.Table], hosts: Mapping[Rank, HostId]) -> Clocks:
    """Estimate offset, drift and error of each host's clock.

    Args:
        collectives: tables of schema COLLECTIVES; together they hold each rank's operators once.
        hosts: where the ranks run; ranks that are missing get a clock of their own.
    """
    ranks = sorted({Rank(rank) for table in collectives for rank in table["rank"].unique().to_pylist()})
    host_of = {rank: str(hosts[rank]) if rank in hosts else f"rank {rank}" for rank in ranks}
    names = sorted(set(host_of.values()), key=host_number)
    if not names:
        return Clocks("", 0, {}, {})
    number = {name: position for position, name in enumerate(names)}
    starts = [pc.min(table["start_ns"]).as_py() for table in collectives if table.num_rows]
    origin_ns = min((start for start in starts if start is not None), default=0)
    ends = _ends_by_host(collectives, {rank: number[host] for rank, host in host_of.items()}, origin_ns)
    pairs = _pairs(ends, len(names))
    by_host = dict(zip(names, _fitted(pairs, len(names)), strict=True))
    return Clocks(names[0], origin_ns, by_host, host_of)


class _Pair(Struct, frozen=True):
    first: int
    second: int
    offset_us: float
    drift_ppm: float
    sigma_us: float
    n: int


def _ends_by_host(
    collectives: Sequence[pa.Table], host_number: Mapping[Rank, int], origin_ns: int
) -> pa.Table:
    """One row a collective and host: `key` of the collective, `host`, mean end in µs since the origin."""
    parts = []
    for table in collectives:
        kinds = table["op_type"].cast(pa.string())
        usable = pc.and_(
            pc.is_in(kinds, value_set=pa.array(COMMON_END)),
            pc.and_(pc.is_valid(table["start_ns"]), pc.is_valid(table["elapse_us"])),
        )
        rows = table.filter(pc.fill_null(usable, False))
        if rows.num_rows == 0:
            continue
        start_us = (rows["start_ns"].to_numpy() - origin_ns).astype(np.float64) / 1000
        numbers = np.array([host_number[Rank(rank)] for rank in rows["rank"].to_pylist()], dtype=np.int32)
        parts.append(
            pa.table(
                {
                    "group": rows["group"].cast(pa.string()),
                    "step": rows["step"],
                    "place": _place_in_group(rows),
                    "host": numbers,
                    "end_us": start_us + rows["elapse_us"].to_numpy(),
                }
            )
        )
    if not parts:
        return pa.table({"key": np.zeros(0, np.int64), "host": np.zeros(0, np.int32), "end_us": np.zeros(0)})
    whole = (
        pa.concat_tables(parts)
        .group_by(["group", "step", "place", "host"], use_threads=False)
        .aggregate([("end_us", "mean")])
    )
    _, key = combined(codes(whole["group"])[1], whole["step"].to_numpy(), whole["place"].to_numpy())
    return pa.table({"key": key, "host": whole["host"], "end_us": whole["end_us_mean"]})


def _place_in_group(rows: pa.Table) -> Array:
    """Number the operators of each rank, step and group in the order of their start."""
    _, member = combined(codes(rows["group"])[1], rows["step"].to_numpy(), rows["rank"].to_numpy())
    order = np.lexsort((rows["start_ns"].to_numpy(), member))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = places_in_runs(begins(member[order]))
    return place


def _pairs(ends: pa.Table, n_hosts: int) -> list[_Pair]:
    """Each pair of hosts that share collectives: neighbours in the order of host numbers, within each one."""
    key, host, end_us = (ends[name].to_numpy() for name in ("key", "host", "end_us"))
    order = np.lexsort((host, key))
    key, host, end_us = key[order], host[order], end_us[order]
    same = np.flatnonzero(key[1:] == key[:-1])
    difference_us, when_us = end_us[same + 1] - end_us[same], end_us[same]
    names = host[same].astype(np.int64) * n_hosts + host[same + 1]
    found = []
    for name in np.unique(names):
        chosen = names == name
        if int(chosen.sum()) >= _MIN_OBSERVATIONS:
            found.append(
                _fit_pair(int(name) // n_hosts, int(name) % n_hosts, when_us[chosen], difference_us[chosen])
            )
    return found


def _fit_pair(first: int, second: int, when_us: Array, difference_us: Array) -> _Pair:
    """A robust line through the differences: medians of the two halves give the slope."""
    slope = 0.0
    if np.ptp(when_us) > MIN_DRIFT_SPAN_S * 1e6:
        late = when_us > np.median(when_us)
        if late.any() and not late.all():
            rise = np.median(difference_us[late]) - np.median(difference_us[~late])
            slope = float(rise / (np.median(when_us[late]) - np.median(when_us[~late])))
    residual = difference_us - slope * when_us
    offset_us = float(np.median(residual))
    sigma_us = float(MAD_TO_SIGMA * np.median(np.abs(residual - offset_us)))
    return _Pair(first, second, offset_us, slope * 1e6, sigma_us, len(when_us))


def _fitted(pairs: Sequence[_Pair], n_hosts: int) -> list[HostClock]:
    """Weighted least squares over the pairs; host 0 is the reference."""
    reached = _reached(pairs, n_hosts)
    usable = [pair for pair in pairs if reached[pair.first]]
    laplacian = np.zeros((n_hosts, n_hosts))
    right = np.zeros((n_hosts, 2))
    spread: list[list[float]] = [[] for _ in range(n_hosts)]
    counts = [0] * n_hosts
    for pair in usable:
        # A floor of 1 µs: pairs that agree exactly (one clock) must not outweigh all others.
        weight = pair.n / max(pair.sigma_us, 1.0) ** 2
        a, b = pair.first, pair.second
        laplacian[[a, b], [a, b]] += weight
        laplacian[[a, b], [b, a]] -= weight
        move = weight * np.array([pair.offset_us, pair.drift_ppm])
        right[b] += move
        right[a] -= move
        for end in (a, b):
            spread[end].append(pair.sigma_us)
            counts[end] += pair.n
    keep = [host for host in range(1, n_hosts) if reached[host]]
    solved = np.zeros((n_hosts, 2))
    if keep:
        solved[keep] = np.linalg.solve(laplacian[np.ix_(keep, keep)], right[keep])
    return [
        HostClock(
            offset_us=float(solved[host, 0]),
            drift_ppm=float(solved[host, 1]),
            error_us=(float(np.median(spread[host])) if spread[host] else 0.0) if reached[host] else None,
            n_observations=counts[host],
        )
        for host in range(n_hosts)
    ]


def _reached(pairs: Sequence[_Pair], n_hosts: int) -> list[bool]:
    """Which hosts are connected with host 0 through pairs."""
    neighbours: list[list[int]] = [[] for _ in range(n_hosts)]
    for pair in pairs:
        neighbours[pair.first].append(pair.second)
        neighbours[pair.second].append(pair.first)
    reached = [False] * n_hosts
    todo = [0]
    while todo:
        host = todo.pop()
        if not reached[host]:
            reached[host] = True
            todo += neighbours[host]
    return reached
