"""A training job in words: sizes, schedule, what varies in it, what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Schedule = Literal["1f1b", "gpipe", "interleaved", "zero_bubble"]
Exchanges = Literal["single", "mixed", "batched"]
Data = Literal["at_end", "bucketed", "zero1", "zero3"]


@dataclass(frozen=True)
class Varying:
    """What differs in a healthy job. The numbers are those of real captures."""

    #: A block of kernels from one call to the next: 0.3 to 1 % on Ascend samples.
    kernel_sigma: float = 0.005
    #: A device against its peers, for good; some have an exponential tail of mean 1 %.
    device_sigma: float = 0.002
    tail_share: float = 0.01
    #: All kernels of a step of all ranks.
    step_sigma: float = 0.004
    #: Length of samples, the same on all ranks of a replica: 0.2 to 0.35 where sequences are not packed.
    sample_sigma: float = 0.0
    #: Load of an expert's rank, for good and per step.
    expert_sigma: float = 0.0
    #: Work of the stages against each other; () is even.
    stage_work: tuple[float, ...] = ()
    #: A link for good, and from call to call; single calls at 0.6 of the bandwidth.
    link_sigma: float = 0.004
    call_sigma: float = 0.01
    contended_share: float = 0.005
    #: Pauses of single hosts' processes (collection of garbage), a rank and step: share, and ms.
    pause_share: float = 0.002
    pause_ms: tuple[float, float] = (20.0, 80.0)
    #: Every so many steps all ranks collect garbage together; 0 is never.
    pause_every: int = 0
    exit_jitter_us: float = 15.0
    clock_sigma_ms: float = 2.0
    drift_ppm: float = 5.0
    #: Records of communication that are missing from the files.
    lost_share: float = 0.0
    #: Which of wait, synchronisation and transit time the files give: all, none, or some operators.
    wait_fields: Literal["full", "zero", "mixed"] = "full"
    #: Rows of op_statistic.csv: many types of kernels, or the few of a small model.
    small_tables: bool = False
    #: Matrix of single operators (older writers) or of samples (top, middle, bottom, total).
    matrix: Literal["operators", "samples"] = "samples"


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong, in all steps or in `steps` (numbers from 0).

    `factor` multiplies the kernels (`op` names one type of kernel only), the launches, or the time of links;
    `add_ms` is added to the input of each step, to one call of stalled groups, or to calls on links.
    """

    kind: str
    factor: float = 1.0
    add_ms: float = 0.0
    cause: Literal["compute", "dispatch", "input", "link", "stall"] = "compute"
    ranks: tuple[int, ...] = ()
    host: int | None = None
    other_host: int | None = None
    links: frozenset[tuple[int, int]] = frozenset()
    groups: tuple[str, ...] = ()
    op: str = ""
    steps: frozenset[int] | None = None
    #: Share of the calls of links that it hits.
    calls_share: float = 1.0
    #: From 1 in the first step to `factor` in the last.
    rises: bool = False
    accepted: tuple[str, ...] = ()

    def factor_in(self, step: int, n_steps: int) -> float:
        """Return the factor of a step, 1 where it is not at work."""
        if self.steps is not None and step not in self.steps:
            return 1.0
        if self.rises:
            return 1.0 + (self.factor - 1.0) * step / max(n_steps - 1, 1)
        return self.factor


@dataclass(frozen=True)
class Job:
    """Ranks lie in the order of `order`, its first dimension fastest, `ranks_per_host` of them on a host."""

    tp: int = 1
    cp: int = 1
    dp: int = 1
    pp: int = 1
    ep: int = 1
    order: tuple[str, ...] = ("tp", "cp", "dp", "pp")
    ranks_per_host: int = 8
    steps: int = 5
    layers: int = 4
    microbatches: int = 1
    chunks: int = 1
    schedule: Schedule = "1f1b"
    exchanges: Exchanges = "single"
    #: A send ends only when its receiver is there (batched 1F1B only; else it may never end).
    rendezvous: bool = False
    data: Data = "bucketed"
    layers_a_bucket: int = 2
    #: Share of the buckets that are sent as soon as they are ready, on a second stream.
    beside_share: float = 0.8
    #: Whether the other buckets go on the stream that computes, one after the other with it.
    held_on_main: bool = False
    #: A layer's forward of one microbatch; the backward takes twice that. Gradients of a layer on a rank.
    layer_us: float = 4000.0
    gradient_mb: float = 120.0
    activation_mb: float = 16.0
    #: Kernels beside communication, and communication beside kernels, take longer by these shares.
    kernel_contention: float = 0.06
    transfer_contention: float = 0.12
    #: Idle time inside a block of kernels as share of it, and the host's time to launch a block.
    idle_share: float = 0.03
    launch_us: float = 250.0
    input_ms: float = 1.5
    #: Whether a small all-reduce of all ranks (norm of the gradients) ends the step.
    norm: bool = True
    #: Whether a step begins with a small sum over all ranks, as of the tokens that its loss is divided by.
    counts_tokens: bool = False
    varying: Varying = field(default_factory=Varying)

    @property
    def n_ranks(self) -> int:
        """Number of ranks."""
        return self.tp * self.cp * self.dp * self.pp

    @property
    def n_hosts(self) -> int:
        """Number of hosts."""
        return -(-self.n_ranks // self.ranks_per_host)

    def host(self, rank: int) -> int:
        """Return the host that holds a rank, from 0."""
        return rank // self.ranks_per_host

    def ranks_of(self, host: int) -> tuple[int, ...]:
        """Return a host's ranks."""
        first = host * self.ranks_per_host
        return tuple(range(first, min(first + self.ranks_per_host, self.n_ranks)))

    def place(self, rank: int) -> dict[str, int]:
        """Return a rank's index in each dimension."""
        where = {}
        for name in self.order:
            rank, where[name] = divmod(rank, getattr(self, name))
        return where

    def groups(self) -> dict[str, tuple[int, ...]]:
        """Return the members of every communication group of two ranks or more, by a name like `dp/3`.

        Data-parallel groups span the context dimension too, as gradients do; experts lie inside them.
        """
        return _groups(self)


def _groups(job: Job) -> dict[str, tuple[int, ...]]:
    spans = {"tp": ("tp",), "cp": ("cp",), "dp": ("cp", "dp") if job.cp > 1 else ("dp",), "pp": ("pp",)}
    found: dict[str, tuple[int, ...]] = {}
    places = [job.place(rank) for rank in range(job.n_ranks)]
    for name, inside in spans.items():
        members: dict[tuple[int, ...], list[int]] = {}
        for rank, where in enumerate(places):
            members.setdefault(tuple(v for k, v in where.items() if k not in inside), []).append(rank)
        for number, ranks in enumerate(members.values()):
            if len(ranks) > 1:
                found[f"{name}/{number}"] = tuple(ranks)
            if name == "dp" and job.ep > 1:
                for first in range(0, len(ranks), job.ep):
                    found[f"ep/{number}.{first}"] = tuple(ranks[first : first + job.ep])
    found["world/0"] = tuple(range(job.n_ranks))
    return found
