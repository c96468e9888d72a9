"""What runs on a device: operations on streams, tied by what each must wait for."""

from __future__ import annotations

from dataclasses import dataclass, field

KERNELS, COLLECTIVE, EXCHANGE, HOST = range(4)
#: Streams of a rank. Operations of one stream run one after the other.
MAIN, DATA, PIPE, HOST_STREAM = range(4)

#: Types of kernels and their share of a block, as op_statistic.csv of a real job has them (Qwen3 sample).
BLOCKS: dict[str, tuple[tuple[str, float, int], ...]] = {
    "forward": (
        ("MatMulV3", 0.47, 7), ("FlashAttentionScore", 0.28, 1), ("Add", 0.08, 4), ("RmsNorm", 0.05, 2),
        ("SwiGlu", 0.04, 1), ("Cast", 0.04, 6), ("RotaryPositionEmbedding", 0.04, 2),
    ),
    "backward": (
        ("MatMulV3", 0.42, 14), ("FlashAttentionScoreGrad", 0.33, 1), ("Add", 0.08, 8),
        ("RmsNormGrad", 0.07, 2), ("SwiGluGrad", 0.05, 1), ("Mul", 0.05, 5),
    ),
    "weights": (("MatMulV3", 0.95, 7), ("Add", 0.05, 7)),
    "experts": (("GroupedMatmul", 0.85, 3), ("SwiGlu", 0.10, 1), ("MoeTokenPermute", 0.05, 1)),
    "optimizer": (("ApplyAdamWV2", 0.7, 57), ("LpNormV2", 0.1, 59), ("Mul", 0.2, 57)),
}  # fmt: skip


@dataclass(slots=True, eq=False)
class Call:
    """One collective, or the sending of one message: who takes part, what it moves, and how it went."""

    name: str
    group: str
    ranks: tuple[int, ...]
    size_mb: float
    step: int
    #: The calls' own factors on the links, one a link in the network's order.
    noise: tuple[float, ...]
    #: From 0 to 1: a fault that hits some calls hits those below its share.
    luck: float
    n_arrived: int = 0
    ops: list[Op] = field(default_factory=list)
    transfer_us: float = 0.0


@dataclass(slots=True, eq=False)
class Message:
    """One message of a pipeline: sent by one operation, received by another."""

    source: int
    destination: int
    size_mb: float
    step: int
    noise: float
    luck: float
    sender: Op | None = None
    receiver: Op | None = None
    transfer_us: float = 0.0


@dataclass(slots=True, eq=False)
class Op:
    """One operation of one rank. What starts with `n_` or ends in `_us` below the line is filled by a run."""

    rank: int
    step: int
    kind: int
    stream: int
    name: str
    #: Of kernels: time on a typical device before anything varies, and the idle time between them.
    base_us: float = 0.0
    idle_us: float = 0.0
    launch_us: float = 0.0
    #: What this block takes more than usual for its sample, its expert's load and its stage.
    sample: float = 1.0
    load: float = 1.0
    work: float = 1.0
    pause_us: float = 0.0
    jitter_us: float = 0.0
    call: Call | None = None
    sends: list[Message] = field(default_factory=list)
    receives: list[Message] = field(default_factory=list)
    #: Operations that may start only after this one; of a host's: those it launches.
    followers: list[Op] = field(default_factory=list)
    n_awaited: int = 0
    # -- of a run ---------------------------------------------------------------------------------------
    n_missing: int = 0
    n_open: int = 0
    busy_us: float = 0.0
    earliest_us: float = 0.0
    start_us: float = -1.0
    end_us: float = -1.0

    def after(self, *others: Op | None) -> Op:
        """Make this operation wait for others, and return it."""
        for other in others:
            if other is not None:
                other.followers.append(self)
                self.n_awaited += 1
        return self
