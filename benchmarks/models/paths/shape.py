"""What a job looks like, and what is wrong with it. One value, no behaviour but arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Form = Literal["text", "database"]
Style = Literal["single", "mixed", "batched"]
Way = Literal["1f1b", "gpipe", "bidirectional"]


@dataclass(frozen=True)
class Spread:
    """What differs in a healthy job. Sources: real captures and published figures."""

    #: Multiplies the scatter of the real trace's blocks (2.1 % without it: 1.5 to 2.1 % are published).
    blocks: float = 0.5
    #: A chip for good, and all chips of a rack (two hosts) in a step: the second family of section 4.3.
    chip: float = 0.002
    rack: float = 0.002
    #: Idle time before a block: robust CV 4 to 6 % inside a stage, more on poor hosts.
    gap: float = 0.06
    #: Length of samples: one factor a replica and step, and one a microbatch.
    samples: float = 0.0
    #: Load of experts, for good and per step.
    experts: float = 0.0
    #: Work of the last stage against the others (the real trace: 1.6).
    last_stage: float = 1.0
    wire: float = 0.004
    wire_each: float = 0.01
    #: Single observations of a link at 0.6 of its bandwidth: 3.2 % in a real capture.
    hiccups: float = 0.004
    exit_us: float = 20.0
    clock_ms: float = 5.0
    lost: float = 0.0


@dataclass(frozen=True)
class Shape:
    """Ranks: tensor fastest, then data, then stages; `replica_first` swaps the last two."""

    tensor: int = 1
    data: int = 1
    stages: int = 1
    experts: int = 1
    per_host: int = 8
    replica_first: bool = False
    steps: int = 5
    blocks: int = 4
    microbatches: int = 4
    way: Way = "1f1b"
    style: Style = "mixed"
    #: What carries gradients: sums in pieces beside the backward, scattered at the end, or sharded.
    gradients: Literal["pieces", "scattered", "sharded"] = "scattered"
    #: Share of the pieces that go beside the backward.
    beside: float = 0.6
    block_ms: float = 15.0
    gap_ms: float = 0.3
    input_ms: float = 2.0
    gradients_mb: float = 200.0
    message_mb: float = 32.0
    tensor_mb: float = 16.0
    #: The join of all ranks at the end of a step leaves no record: a wait that no file shows.
    hidden_join: bool = False
    form: Form = "text"
    wait_fields: Literal["full", "none"] = "none"
    spread: Spread = Spread()

    @property
    def n_ranks(self) -> int:
        """Number of ranks."""
        return self.tensor * self.data * self.stages

    @property
    def n_hosts(self) -> int:
        """Number of hosts."""
        return (self.n_ranks + self.per_host - 1) // self.per_host

    def host_ranks(self, host: int) -> tuple[int, ...]:
        """Return the ranks of a host."""
        return tuple(rank for rank in range(self.n_ranks) if rank // self.per_host == host)

    def rank_at(self, tensor: int, replica: int, stage: int) -> int:
        """Return the rank in a place."""
        outer = replica * self.stages + stage if self.replica_first else stage * self.data + replica
        return tensor + self.tensor * outer

    def seat(self, rank: int) -> tuple[int, int, int]:
        """Return a rank's (tensor, replica, stage)."""
        outer, tensor = divmod(rank, self.tensor)
        if self.replica_first:
            replica, stage = divmod(outer, self.stages)
        else:
            stage, replica = divmod(outer, self.data)
        return tensor, replica, stage


@dataclass(frozen=True)
class Trouble:
    """A fault. `times` multiplies, `plus_ms` adds; () as `steps` is every step."""

    kind: str
    what: Literal["chip", "matrix", "launch", "feed", "wire", "stall"]
    times: float = 1.0
    plus_ms: float = 0.0
    ranks: tuple[int, ...] = ()
    hosts: tuple[int, ...] = ()
    wires: tuple[tuple[int, int], ...] = ()
    groups: tuple[str, ...] = ()
    steps: tuple[int, ...] = ()
    grows: bool = False
    accepted: tuple[str, ...] = ()

    def at(self, step: int, n_steps: int) -> float:
        """Return how much of the fault is at work in a step: 0 to 1."""
        if self.steps and step not in self.steps:
            return 0.0
        return step / max(1, n_steps - 1) if self.grows else 1.0
