"""The sizes of a job: who computes what, in which groups, in which order, and by how much things scatter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Turn(NamedTuple):
    """One forward or backward of one microbatch through one chunk of layers."""

    is_forward: bool
    micro: int
    chunk: int


@dataclass(frozen=True)
class Shape:
    """Sizes of a job. Works are ms of kernels, sizes MB (10^6 bytes), sigmas shares."""

    tensor: int = 1
    context: int = 1
    data: int = 8
    stages: int = 1
    experts: int = 1
    #: Chunks of layers that each stage holds: two make an interleaved pipeline.
    chunks: int = 1
    #: Whether the members of a context ring lie apart, with all replicas between them.
    is_context_outside: bool = False
    #: Whether sending to other experts is one kernel that waits in itself, and counts as computing.
    is_fused: bool = False
    steps: int = 6
    micros: int = 2
    layers: int = 2
    # -- the machine
    per_host: int = 8
    #: Devices that are joined by a full mesh of HCCS; the others of a host are reached over its fabric.
    per_mesh: int = 8
    #: Whether neighbours lie in different meshes (even and odd ones) instead of blocks.
    is_mesh_striped: bool = False
    far_transport: str = "PCIE"
    devices_per_card: int = 1
    hosts_per_rack: int = 2
    #: What a rack's uplink carries, as a share of what all of its cards can.
    uplink_share: float = 0.75
    # -- lengths
    work_ms: float = 5.0
    idle_ms: float = 0.06
    input_ms: float = 3.0
    tensor_mb: float = 24.0
    ring_mb: float = 20.0
    message_mb: float = 20.0
    experts_mb: float = 40.0
    gradients_mb: float = 120.0
    buckets: int = 2
    #: Whether weights are gathered beside what the next step begins with, or by the main stream.
    is_gather_beside: bool = False
    #: Share of a layer's work that is attention, which goes with the length of the sample.
    attention: float = 0.4
    # -- scatter
    kernel_sigma: float = 0.01
    device_sigma: float = 0.003
    host_sigma: float = 0.002
    dispatch_sigma: float = 0.02
    link_sigma: float = 0.002
    call_sigma: float = 0.003
    slow_singles: float = 0.002
    length_sigma: float = 0.0
    expert_sigma: float = 0.0
    hiccups: float = 0.002
    checkpoint_every: int = 0
    checkpoint_ms: float = 0.0
    skew_ms: float = 0.3
    # -- the files
    form: str = "text"
    wait_fields: str = "full"
    lost_share: float = 0.0
    has_sizes: bool = True

    @property
    def n_ranks(self) -> int:
        """How many ranks there are."""
        return self.tensor * self.context * self.data * self.stages

    @property
    def n_hosts(self) -> int:
        """How many hosts there are."""
        return -(-self.n_ranks // self.per_host)

    def rank(self, tensor: int, context: int, data: int, stage: int) -> int:
        """Return the rank at a place."""
        if self.is_context_outside:
            return tensor + self.tensor * (data + self.data * (context + self.context * stage))
        return tensor + self.tensor * (context + self.context * (data + self.data * stage))

    def place(self, rank: int) -> tuple[int, int, int, int]:
        """Return a rank's index in its tensor, context and data group, and its stage."""
        tensor, rest = rank % self.tensor, rank // self.tensor
        if self.is_context_outside:
            data, rest = rest % self.data, rest // self.data
            return tensor, rest % self.context, data, rest // self.context
        context, rest = rest % self.context, rest // self.context
        return tensor, context, rest % self.data, rest // self.data

    def expert(self, rank: int) -> int:
        """Return which experts a rank holds: its index in its group of experts."""
        return self.place(rank)[2] % self.experts

    def stage(self, rank: int) -> int:
        """Return a rank's stage."""
        return self.place(rank)[3]

    def groups(self) -> dict[str, tuple[int, ...]]:
        """Return the members of each group by its name, without groups of one."""
        found: dict[str, list[int]] = {"world": list(range(self.n_ranks))}
        for rank in range(self.n_ranks):
            t, c, d, p = self.place(rank)
            found.setdefault(f"tp/{c},{d},{p}", []).append(rank)
            found.setdefault(f"cp/{t},{d},{p}", []).append(rank)
            # Gradients are summed over samples, and over the parts of a sample.
            found.setdefault(f"dp/{t},{p}", []).append(rank)
            found.setdefault(f"pp/{t},{c},{d}", []).append(rank)
            if self.experts > 1:
                found.setdefault(f"ep/{t},{c},{p},{d // self.experts}", []).append(rank)
        return {name: tuple(ranks) for name, ranks in found.items() if len(ranks) > 1}

    def turns(self, stage: int) -> list[Turn]:
        """Return a stage's order: 1F1B, or interleaved by depth where it holds several chunks."""
        n = self.micros * self.chunks
        if self.chunks == 1:
            ahead = min(n, self.stages - stage - 1)
        else:
            ahead = min(n, 2 * (self.stages - stage - 1) + (self.chunks - 1) * self.stages)
        order = [self._turn(True, number) for number in range(ahead)]
        for number in range(n):
            if number + ahead < n:
                order.append(self._turn(True, number + ahead))
            order.append(self._turn(False, number))
        return order

    def _turn(self, is_forward: bool, number: int) -> Turn:
        """Return the `number`-th forward or backward: each chunk takes as many as there are stages."""
        if self.chunks == 1:
            return Turn(is_forward, number, 0)
        round_, rest = divmod(number, self.stages * self.chunks)
        chunk = rest // self.stages
        return Turn(
            is_forward,
            round_ * self.stages + rest % self.stages,
            chunk if is_forward else self.chunks - 1 - chunk,
        )
