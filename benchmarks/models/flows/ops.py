"""What ranks run: operations in streams, each after the one before it and after others that it waits for."""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmarks.models.flows.phases import Phase

#: A host that fetches a step's input; kernels; a kernel that waits for its group in itself; calls.
INPUT, KERNELS, FUSED, COLLECTIVE, EXCHANGE = range(5)


@dataclass(slots=True, eq=False)
class Message:
    """What one rank sends to another. An eager one goes when its sender is there, others when both are."""

    source: int
    target: int
    size_mb: float
    is_eager: bool
    noise: float
    sender: int = -1
    receiver: int = -1


@dataclass(slots=True, eq=False)
class Call:
    """One collective: what it moves, phase by phase, and by which factors its transfers are unlike others."""

    name: str
    group: str
    phases: tuple[Phase, ...]
    noise: tuple[tuple[float, ...], ...]
    latency_ms: float
    ops: list[int] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Op:
    """One operation of one rank. `idle_ms` is what its device idles before it, as its host is late."""

    rank: int
    step: int
    kind: int
    stream: str
    what: str
    work_ms: float = 0.0
    idle_ms: float = 0.0
    #: What this rank's host stands still for before it.
    pause_ms: float = 0.0
    #: Length of the sample, as a share of the mean, and how much of the work goes with it.
    length: float = 1.0
    share_of_length: float = 0.0
    #: How late this rank leaves a call.
    jitter_ms: float = 0.0
    group: str = ""
    call: int = -1
    sends: tuple[int, ...] = ()
    receives: tuple[int, ...] = ()
    #: The side call before which a rank may idle although its main stream has nothing left to do.
    is_held_back: bool = False
    #: What experts take for all the tokens that come to them.
    is_of_experts: bool = False
    followers: list[int] = field(default_factory=list)
    n_awaited: int = 0
