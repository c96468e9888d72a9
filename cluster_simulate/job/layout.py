"""Parallel layout: the ranks' places, the communication groups, and their names as HCCL spells them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cluster_run.ids import GroupRole
from cluster_simulate.job.arrays import Ints
from cluster_simulate.job.spec import JobSpec

#: HCCL's names of operators; `Ops.kind` indexes them.
OP_KINDS = (
    "allReduce",
    "reduceScatter",
    "allGather",
    "alltoallv",
    "broadcast",
    "send",
    "receive",
    "batchSendRecv",
)
ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, ALL_TO_ALL, BROADCAST, SEND, RECEIVE, BATCH_SEND_RECV = range(8)
P2P_KINDS = frozenset({SEND, RECEIVE, BATCH_SEND_RECV})


@dataclass(frozen=True)
class GroupSet:
    """Groups of one size that act together; `members[i]` are the ranks of group `first + i`."""

    first: int
    members: Ints

    @property
    def size(self) -> int:
        """Ranks of each group."""
        return int(self.members.shape[1])


@dataclass(frozen=True)
class GroupTable:
    """All groups of a job by number. `labels` are the names profiler metadata gives the roles."""

    roles: tuple[GroupRole, ...]
    labels: tuple[str, ...]
    names: tuple[str, ...]
    hashes: tuple[str, ...]
    members: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Layout:
    """The group sets a schedule uses; None where the degree of parallelism is 1."""

    table: GroupTable
    world: GroupSet
    tp: GroupSet | None
    pp: GroupSet | None
    dp: GroupSet | None
    cp: GroupSet | None
    ep: GroupSet | None


def double_hash(name: str) -> int:
    """Return the number after the `@` of operator names: two 32-bit polynomial hashes side by side."""
    low = high = 0
    for character in name:
        high = (high * 29 + ord(character)) & 0xFFFFFFFF
        low = (low * 131 + ord(character)) & 0xFFFFFFFF
    return (high << 32) | low


def build_layout(spec: JobSpec) -> Layout:
    """Return the groups of a job, numbered in a fixed order."""
    ranks = np.arange(spec.n_ranks, dtype=np.int64).reshape(spec.pp, spec.dp, spec.cp, spec.tp)
    width = spec.dp * spec.cp
    replicas = ranks.reshape(spec.pp, width, spec.tp).transpose(0, 2, 1).reshape(-1, width)
    experts = ranks.reshape(spec.pp, spec.dp // spec.ep, spec.ep, spec.cp, spec.tp)
    wanted: list[tuple[str, GroupRole, str, Ints, bool]] = [
        ("world", "world", "default_group", ranks.reshape(1, -1), True),
        ("tp", "tp", "tp", ranks.reshape(-1, spec.tp), spec.tp > 1),
        ("pp", "pp", "pp", ranks.reshape(spec.pp, -1).T, spec.pp > 1),
        ("dp", "dp", "dp_cp" if spec.cp > 1 else "dp", replicas, width > 1),
        ("cp", "cp", "cp", ranks.transpose(0, 1, 3, 2).reshape(-1, spec.cp), spec.cp > 1),
        ("ep", "ep", "exp", experts.transpose(0, 1, 3, 4, 2).reshape(-1, spec.ep), spec.ep > 1),
    ]  # fmt: skip
    sets: dict[str, GroupSet | None] = {}
    roles: list[GroupRole] = []
    labels: list[str] = []
    members: list[tuple[int, ...]] = []
    for key, role, label, table, is_used in wanted:
        sets[key] = GroupSet(len(roles), np.ascontiguousarray(table)) if is_used else None
        if is_used:
            roles += [role] * len(table)
            labels += [label] * len(table)
            members += [tuple(row) for row in table.tolist()]
    names = tuple(_communicator_name(spec, number, row[0]) for number, row in enumerate(members))
    hashes = tuple(str(double_hash(name)) for name in names)
    world = sets.pop("world")
    if world is None:
        raise AssertionError("a job always has its world group")
    return Layout(GroupTable(tuple(roles), tuple(labels), names, hashes, tuple(members)), world, **sets)


def server_id(host: int) -> str:
    """Return the made-up address of a host, from the range that is reserved for examples of private nets."""
    return f"10.20.{host // 250}.{host % 250 + 1}"


def host_name(host: int) -> str:
    """Return the made-up name of a host."""
    return f"node{host + 1:03d}"


def _communicator_name(spec: JobSpec, number: int, first_rank: int) -> str:
    root = server_id(spec.host_of(first_rank))
    return f"{root}%enp189s0f0_60000_{number}_{1736410538306028 + 7919 * number}"
