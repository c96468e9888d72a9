"""How long data takes on each link, and so each operator: alpha + size / bandwidth, by transport and kind.

Groups inside one host use the full mesh of its links, larger ones a ring in order of rank (all-to-all: a
mesh). An operator
lasts as long as its slowest link; a link's own entry in the files shows its own time.
Bandwidths are those measured on real captures of the 910B: 18.7 to 20.9 GB/s a HCCS link by kind of
operator, 24.35 GB/s a RDMA line.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cluster_simulate.job import layout as kinds
from cluster_simulate.job.arrays import Floats, Ints
from cluster_simulate.job.faults import LinkEffect
from cluster_simulate.job.job import HCCS, PCIE, RDMA
from cluster_simulate.job.layout import GroupSet
from cluster_simulate.job.noise import generator, hashed_normal, standard
from cluster_simulate.job.spec import JobSpec

#: Time of a message before its first byte, by transport: HCCS, RDMA, PCIE.
_ALPHA_US = np.array([20.0, 18.0, 25.0])
_MESSAGE_US = np.array([1.6, 9.5, 4.0])
#: GB/s by transport (rows) and kind of operator (columns, as `OP_KINDS`).
_GBPS = np.array(
    [
        [19.06, 18.70, 19.47, 17.50, 18.00, 20.90, 20.90, 20.90],
        [24.30, 24.30, 24.35, 23.80, 24.00, 24.28, 24.28, 24.28],
        [11.80, 11.60, 12.10, 10.90, 11.50, 12.30, 12.30, 12.30],
    ]
)
#: How often a link carries a group's share of the whole buffer: `passes * size / n` on a mesh,
#: `passes * size * (n - 1) / n` on a ring.
_PASSES = {kinds.ALL_REDUCE: 2.0, kinds.REDUCE_SCATTER: 1.0, kinds.ALL_GATHER: 1.0, kinds.ALL_TO_ALL: 1.0}
#: Below this an operator is pure latency and has no congestion.
_SMALL_BYTES = 64e3
_DEVICES_PER_HALF = 4
_LINKS_HIT = 1.0 / 3.0
_FLOW_SLOWDOWN = 0.06


@dataclass(frozen=True)
class Wires:
    """The links of a set of groups: `src[k]` is the local member at which each group's k-th link begins.

    `dst_rank`, `src_rank`, `transport` and `quality` are [group, link]; `quality` multiplies the time.
    """

    src: Ints
    src_rank: Ints
    dst_rank: Ints
    transport: Ints
    quality: Floats
    is_ring: bool


def transport_of(spec: JobSpec, src: Ints, dst: Ints) -> Ints:
    """Return the transport between ranks."""
    same_host = spec.host_of(src) == spec.host_of(dst)
    same_half = spec.device_of(src) // _DEVICES_PER_HALF == spec.device_of(dst) // _DEVICES_PER_HALF
    inner = np.where(same_half, HCCS, PCIE)
    if not spec.healthy.inner_halves:
        inner = np.full_like(inner, HCCS)
    chosen: Ints = np.where(same_host, inner, RDMA).astype(np.int64)
    return chosen


def wires_of_groups(spec: JobSpec, groups: GroupSet, seed: int, *, is_mesh: bool) -> Wires:
    """Return the links that the collectives of groups use: a mesh inside hosts, or where asked for."""
    n = groups.size
    hosts = spec.host_of(groups.members)
    is_ring = not is_mesh and bool((hosts != hosts[:, :1]).any())
    if is_ring:
        src = np.arange(n, dtype=np.int64)
        dst = (src + 1) % n
    else:
        pairs = [(one, other) for one in range(n) for other in range(n) if one != other]
        src, dst = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    ends = groups.members[:, src], groups.members[:, dst]
    return _wires(spec, seed, src=src, src_rank=ends[0], dst_rank=ends[1], is_ring=is_ring)


def wires_of_pairs(spec: JobSpec, src_rank: Ints, dst_rank: Ints, seed: int) -> Wires:
    """Return one link a pair of ranks, as point-to-point operators use them."""
    none = np.zeros(1, dtype=np.int64)
    return _wires(spec, seed, src=none, src_rank=src_rank[:, None], dst_rank=dst_rank[:, None], is_ring=False)


def _wires(spec: JobSpec, seed: int, *, src: Ints, src_rank: Ints, dst_rank: Ints, is_ring: bool) -> Wires:
    quality = 1.0 + spec.noise.link_sigma * hashed_normal(seed, "link", src_rank, dst_rank)
    transport = transport_of(spec, src_rank, dst_rank)
    return Wires(src, src_rank, dst_rank, transport, quality, is_ring)


def link_bytes(wires: Wires, kind: int, size_bytes: float, n: int) -> float:
    """Return what one link carries of an operator on a buffer of `size_bytes` over `n` ranks."""
    if kind in kinds.P2P_KINDS:
        return size_bytes
    share = (n - 1) / n if wires.is_ring else 1.0 / n
    return _PASSES.get(kind, 1.0) * size_bytes * share


class Network:
    """Link times of one step of one job: draws in program order, faults multiplied in afterwards."""

    def __init__(self, spec: JobSpec, seed: int, step: int, effects: tuple[LinkEffect, ...]) -> None:
        self._spec = spec
        self._seed = seed
        self._step = step
        self._effects = effects
        self._rng = generator(seed, "network", step)
        self._factors: dict[int, Floats] = {}

    def link_times(
        self, wires: Wires, rows: slice, kind: int, size_bytes: float, n: int, load: Floats | float = 1.0
    ) -> Floats:
        """Return the µs of each [group, link] for one operator, faults included.

        `load` multiplies what each link carries: all-to-all sends busy experts more.
        """
        bytes_each = link_bytes(wires, kind, size_bytes, n)
        transport = wires.transport[rows]
        factor = self._factor(wires)[rows]
        noise, healthy = self._spec.noise, self._spec.healthy
        scatter = 1.0 + noise.link_op_sigma * standard(noise, self._rng, factor.shape)
        if bytes_each < _SMALL_BYTES:
            n_rounds = 2.0 * np.ceil(np.log2(n))
            short: Floats = _MESSAGE_US[transport] * n_rounds * scatter
            return short
        n_messages = 2.0 * (n - 1) if wires.is_ring else 2.0
        hit = self._rng.random((len(factor), 1)) < healthy.congestion_share / _LINKS_HIT
        busy = hit & (self._rng.random(factor.shape) < _LINKS_HIT)
        scatter *= np.where(busy, healthy.congestion_slowdown, 1.0)
        moving = bytes_each * load / (_GBPS[transport, kind] * 1e3) * factor
        times: Floats = (_ALPHA_US[transport] + _MESSAGE_US[transport] * n_messages + moving) * scatter
        return times

    def crowding(self, wires: Wires, rows: slice, begin: Floats, seconds: Floats) -> Floats:
        """Return a factor a group: operators that leave one host at once share the way (second family)."""
        if self._spec.noise.family != "ar1" or not (wires.transport[rows] == RDMA).any():
            return np.ones(len(begin))
        host = self._spec.host_of(wires.src_rank[rows, 0])
        meets = (begin[:, None] < (begin + seconds)[None, :]) & (begin[None, :] < (begin + seconds)[:, None])
        flows = (meets & (host[:, None] == host[None, :])).sum(axis=1)
        factor: Floats = 1.0 + _FLOW_SLOWDOWN * np.log2(np.maximum(flows, 1))
        return factor

    def _factor(self, wires: Wires) -> Floats:
        key = id(wires)
        if key not in self._factors:
            step_noise = hashed_normal(
                self._seed + 7919 * (self._step + 1), "step", wires.src_rank, wires.dst_rank
            )
            factor = wires.quality * (1.0 + self._spec.noise.link_step_sigma * step_noise)
            for effect in self._effects:
                factor = factor * effect.factor(wires.src_rank, wires.dst_rank, wires.transport, self._step)
            self._factors[key] = factor
        return self._factors[key]
