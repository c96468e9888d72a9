"""Parts of a job that do not change over its steps: groups, links, schedule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cluster_simulate.job.arrays import Ints
from cluster_simulate.job.job import RDMA
from cluster_simulate.job.layout import Layout, build_layout
from cluster_simulate.job.network import Wires, transport_of, wires_of_groups, wires_of_pairs
from cluster_simulate.job.schedule import Action, ordered_actions
from cluster_simulate.job.spec import JobSpec


@dataclass(frozen=True)
class Plant:
    """`wires` are by the first group of their set, `pairs` by (sending stage, receiving stage)."""

    spec: JobSpec
    layout: Layout
    actions: tuple[Action, ...]
    wires: dict[int, Wires]
    pairs: dict[tuple[int, int], Wires]

    def used_links(self) -> Ints:
        """Return the (src, dst) of every link that carries more than a few bytes."""
        world = self.layout.world.first
        every = [wires for first, wires in self.wires.items() if first != world] + list(self.pairs.values())
        if not every:
            every = list(self.wires.values())
        if not every:
            return np.zeros((0, 2), dtype=np.int64)
        links = np.concatenate([np.stack([w.src_rank.ravel(), w.dst_rank.ravel()], axis=1) for w in every])
        return np.unique(links, axis=0)


def build_plant(spec: JobSpec, seed: int) -> Plant:
    """Return the plant of a job; `seed` gives links their quality."""
    layout = build_layout(spec)
    sets = [layout.tp, layout.dp, layout.cp, layout.ep, layout.world]
    wires = {
        one.first: wires_of_groups(spec, one, seed, is_mesh=one is layout.ep)
        for one in sets
        if one is not None and one.size > 1
    }
    actions = ordered_actions(spec)
    stage_pairs = sorted({(action.stage, action.peer) for action in actions if action.verb == "send"})
    pairs = {pair: _pair_wires(spec, seed, *pair) for pair in stage_pairs}
    return Plant(spec, layout, actions, wires, pairs)


def _pair_wires(spec: JobSpec, seed: int, sender: int, receiver: int) -> Wires:
    """Return the links from one stage to another, named as the files name them.

    A batchSendRecv inside a host is a read by the receiver: its file has the entry, receiver first.
    """
    stage = np.arange(spec.stage_ranks, dtype=np.int64)
    src, dst = stage + sender * spec.stage_ranks, stage + receiver * spec.stage_ranks
    if spec.p2p == "batch":
        is_read = transport_of(spec, src, dst) != RDMA
        src, dst = np.where(is_read, dst, src), np.where(is_read, src, dst)
    return wires_of_pairs(spec, src, dst, seed)
