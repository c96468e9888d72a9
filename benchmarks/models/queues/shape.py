"""The sizes of a job, its groups, and what its hosts launch."""

from __future__ import annotations

from dataclasses import dataclass, field

KERNELS, MEETING, SEND, RECEIVE = range(4)
#: Payload rates in MB per ms, as measured on 910B: HCCS per directed link, RoCE of 200 GE.
RATES = {"HCCS": 19.1, "RDMA": 24.3}
LATENCY_MS = {"HCCS": 0.02, "RDMA": 0.05}


@dataclass(frozen=True)
class Shape:
    """Sizes of a job, and how much it scatters. Works are ms of one layer, launches ms of its kernels."""

    tensor: int = 1
    data: int = 16
    stages: int = 1
    per_host: int = 8
    steps: int = 6
    microbatches: int = 2
    layers: tuple[int, ...] = (3,)
    #: Work of loss and embedding on the last stage, in layers.
    head: float = 0.0
    work_ms: float = 6.0
    launch_share: float = 0.3
    input_ms: float = 3.0
    tensor_mb: float = 24.0
    message_mb: float = 20.0
    gradients_mb: float = 400.0
    are_gradients_beside: bool = True
    do_senders_wait: bool = False
    form: str = "text"
    has_wait_fields: bool = True
    kernel_sigma: float = 0.008
    device_sigma: float = 0.003
    device_tail: float = 0.002
    #: Share of the work that goes with the sample, and how its length scatters.
    attention: float = 0.3
    length_sigma: float = 0.0
    hiccups: float = 0.004
    late_launches: float = 0.003
    collection_ms: float = 0.0
    checkpoint_every: int = 0
    skew_ms: float = 0.5
    slow_singles: float = 0.0005

    @property
    def n_ranks(self) -> int:
        """How many ranks there are."""
        return self.tensor * self.data * self.stages

    def rank(self, tensor: int, data: int, stage: int) -> int:
        """Return the rank at a place: neighbours share a tensor group."""
        return tensor + self.tensor * (data + self.data * stage)

    def host(self, rank: int) -> int:
        """Return the host that a rank is on."""
        return rank // self.per_host


@dataclass(frozen=True)
class Wire:
    """What one call moves over one directed link, and by which factor this time is unlike the others."""

    source: int
    target: int
    size_mb: float
    noise: float
    #: What carries its bytes.
    kind: str


@dataclass
class Meeting:
    """One collective or one message: the items that take part, and what it moves."""

    what: str
    group: str
    wires: list[Wire]
    items: list[int] = field(default_factory=list)
    stage: int | None = None


@dataclass
class Item:
    """What a host launches at once: the kernels of a layer, or a call."""

    rank: int
    step: int
    kind: int
    what: str
    stream: str
    launch_ms: float
    work_ms: float = 0.0
    #: How long a busy processor holds up the host before it, next to others.
    held_up: float = 0.0
    length: float = 1.0
    stage: int | None = None
    meeting: int = -1
    followers: list[int] = field(default_factory=list)
    n_awaited: int = 1


def groups_of(shape: Shape) -> dict[str, tuple[int, ...]]:
    tensor, data, stages = (range(one) for one in (shape.tensor, shape.data, shape.stages))
    groups = {"world": tuple(range(shape.n_ranks))}
    for d in data:
        for p in stages:
            groups[f"tp/{d},{p}"] = tuple(shape.rank(t, d, p) for t in tensor)
    for t in tensor:
        for p in stages:
            groups[f"dp/{t},{p}"] = tuple(shape.rank(t, d, p) for d in data)
        for d in data:
            groups[f"pp/{t},{d}"] = tuple(shape.rank(t, d, p) for p in stages)
    return {name: ranks for name, ranks in groups.items() if len(ranks) > 1}


def order_of(shape: Shape, stage: int) -> list[tuple[str, int]]:
    """1F1B: forwards to fill the pipeline, then one forward and one backward in turn."""
    n = shape.microbatches
    ahead = min(n, shape.stages - stage)
    order = [("forward", micro) for micro in range(ahead)]
    for micro in range(n):
        order.append(("backward", micro))
        if micro + ahead < n:
            order.append(("forward", micro + ahead))
    return order
