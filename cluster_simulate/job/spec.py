"""Specification of a simulated job: its parallel layout, its work, and its variation without faults.

Defaults follow what was measured on real captures: 20 ms of forward computing a stage and micro-batch,
16 MB tensor-parallel all-reduces, 21 MB between stages, 600 MB of gradients a rank.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeVar

from cluster_run.errors import UsageError

if TYPE_CHECKING:
    from cluster_simulate.job.arrays import Ints

#: How neighbours of the pipeline exchange activations. `eager`: the sender goes on at once;
#: `rendezvous`: the send lasts until the receiver is there; `batch`: one blocking batchSendRecv.
P2pMode = Literal["eager", "rendezvous", "batch"]
#: `flat`: gradients are reduced after the last backward; `overlap`: in buckets during it, on a second
#: stream; `zero3`: parameters are gathered for each layer too, on the second stream.
DpMode = Literal["flat", "overlap", "zero3"]
#: `lognormal`: independent draws; `ar1`: steps correlated in time, Student-t tails, racks that drift
#: together, congestion that depends on simultaneous flows, records that are missing.
NoiseFamily = Literal["lognormal", "ar1"]
#: Content of the files: everything; no communication_matrix.json; step totals only (profiler level 0).
Detail = Literal["full", "no_matrix", "totals"]
#: How profilers fill the wait fields of communication.json: all of them, everything in Idle, or both.
WaitFields = Literal["full", "idle", "mixed"]
#: Who writes the files: PyTorch or MindSpore.
Framework = Literal["pt", "ms"]
#: Form of the files.
Form = Literal["text", "db", "r1"]

_Ranks = TypeVar("_Ranks", int, "Ints")

_HICCUP_SHARE, _HICCUP_RANKS = 0.004, 64
_MISSING_RECORDS: dict[NoiseFamily, float] = {"lognormal": 0.0, "ar1": 0.05}


@dataclass(frozen=True)
class Noise:
    """How much measurements scatter; sigmas are relative."""

    family: NoiseFamily = "lognormal"
    microbatch_sigma: float = 0.018
    step_sigma: float = 0.005
    free_cv: float = 0.3
    host_free_sigma: float = 0.15
    link_sigma: float = 0.004
    link_step_sigma: float = 0.01
    link_op_sigma: float = 0.005
    exit_jitter_us: float = 12.0
    preparing_ms: float = 2.0
    hosts_per_rack: int = 2


@dataclass(frozen=True)
class Healthy:
    """Variation in a job without faults. Shares are of all (rank, step) or all link uses.

    `stage_work` multiplies the work of each stage (empty: all equal). Sequence and expert sigmas are of
    lognormals shared by the ranks that work on the same data. `missing_records` is the share of
    operators that a rank's files lack (None: 5 % in the second noise family, else nothing);
    `uneven_counts` ranks lack one operator of one step. `hiccup_share` of all (rank, step) pause for
    `hiccup_ms` (None: 0.4 %, in large jobs as many ranks a step as in one of 64), but none of `hiccup_free`:
    the pauses of all other ranks are the same with and without it.
    """

    stage_work: tuple[float, ...] = ()
    sequence_sigma: float = 0.0
    expert_sigma: float = 0.0
    silicon_sigma: float = 0.003
    silicon_tail: float = 0.01
    hiccup_share: float | None = None
    hiccup_free: tuple[int, ...] = ()
    hiccup_ms: tuple[float, float] = (20.0, 120.0)
    gc_every: int = 0
    gc_ms: float = 60.0
    checkpoint_every: int = 0
    checkpoint_ms: float = 400.0
    inner_halves: bool = False
    congestion_share: float = 0.025
    congestion_slowdown: float = 1.0 / 0.6
    clock_sigma_ms: float = 2.0
    drift_ppm: float = 5.0
    missing_ranks: tuple[int, ...] = ()
    missing_steps: tuple[int, ...] = ()
    missing_records: float | None = None
    uneven_counts: int = 0

    def __post_init__(self) -> None:
        """Refuse spreads and shares that are none."""
        spreads = ("sequence_sigma", "expert_sigma", "silicon_sigma")
        _refuse_outside(self, spreads, 0.0, 2.0)
        _refuse_outside(self, ("hiccup_share", "missing_records", "congestion_share"), 0.0, 1.0)
        counts = ("gc_every", "checkpoint_every", "uneven_counts", "clock_sigma_ms", "drift_ppm")
        _refuse_outside(self, counts, 0.0, 1e6)
        if any(not 0.0 < work < 1e3 for work in self.stage_work):
            raise UsageError("--stage-work has a weight that is not above 0", "1 is a normal stage")


@dataclass(frozen=True)
class JobSpec:
    """A job. Rank = tp + TP * (cp + CP * (dp + DP * pp)), as Megatron counts; hosts are filled in this order.

    `segments` is the number of (compute, tensor-parallel collective) pairs in a forward pass of one
    model chunk; a backward pass has as many, each twice as long. `dp_buckets` splits the gradients.
    Without `declares_groups` the metadata says nothing of parallelism, as in many real captures.
    """

    tp: int = 4
    pp: int = 4
    dp: int = 4
    cp: int = 1
    ep: int = 1
    vpp: int = 1
    microbatches: int = 8
    steps: int = 5
    first_step: int = 10
    ranks_per_host: int = 8
    segments: int = 2
    forward_ms: float = 20.0
    optimizer_ms: float = 12.0
    free_share: float = 0.03
    tp_mb: float = 16.0
    pp_mb: float = 21.0
    dp_mb: float = 600.0
    cp_mb: float = 8.0
    ep_mb: float = 12.0
    dp_buckets: int = 1
    p2p: P2pMode = "eager"
    dp_mode: DpMode = "flat"
    wait_fields: WaitFields = "full"
    detail: Detail = "full"
    declares_groups: bool = True
    noise: Noise = field(default_factory=Noise)
    healthy: Healthy = field(default_factory=Healthy)

    def __post_init__(self) -> None:
        """Refuse layouts that cannot be run."""
        degrees = ("tp", "pp", "dp", "cp", "ep", "vpp", "ranks_per_host")
        _refuse_outside(self, degrees, 1, 1e6)
        _refuse_outside(self, ("microbatches", "steps", "segments", "dp_buckets"), 1, 1e5)
        _refuse_outside(self, ("first_step", "optimizer_ms", "free_share"), 0, 1e9)
        _refuse_outside(self, ("forward_ms", "tp_mb", "pp_mb", "dp_mb", "cp_mb", "ep_mb"), 1e-3, 1e7)
        if self.dp % self.ep:
            raise UsageError(
                f"--ep {self.ep} does not divide --dp {self.dp}",
                "experts are spread over data-parallel ranks",
            )
        if self.vpp > 1 and (self.pp == 1 or self.microbatches % self.pp):
            raise UsageError(
                f"--vpp {self.vpp} needs --pp above 1 and --microbatches that --pp divides",
                f"use --microbatches {self.pp * 2}",
            )
        if self.healthy.stage_work and len(self.healthy.stage_work) != self.pp:
            raise UsageError(
                f"{len(self.healthy.stage_work)} stage weights for {self.pp} stages", "give one a stage"
            )

    @property
    def n_ranks(self) -> int:
        """Number of ranks of the job."""
        return self.tp * self.pp * self.dp * self.cp

    @property
    def n_hosts(self) -> int:
        """Number of hosts; the last one may be partly used."""
        return -(-self.n_ranks // self.ranks_per_host)

    def host_of(self, rank: _Ranks) -> _Ranks:
        """Return the host of a rank, from 0 on."""
        return rank // self.ranks_per_host

    def device_of(self, rank: _Ranks) -> _Ranks:
        """Return the number of a rank's device on its host."""
        return rank % self.ranks_per_host

    def ranks_of(self, host: int) -> range:
        """Return the ranks of a host."""
        first = host * self.ranks_per_host
        return range(first, min(first + self.ranks_per_host, self.n_ranks))

    @property
    def hiccup_share(self) -> float:
        """Share of (rank, step) with a pause that is nobody's fault."""
        given = self.healthy.hiccup_share
        return given if given is not None else _HICCUP_SHARE * min(1.0, _HICCUP_RANKS / self.n_ranks)

    @property
    def missing_records(self) -> float:
        """Share of operators that the files lack."""
        given = self.healthy.missing_records
        return given if given is not None else _MISSING_RECORDS[self.noise.family]

    @property
    def stage_ranks(self) -> int:
        """Number of ranks of one pipeline stage; those of stage p are consecutive from p * stage_ranks."""
        return self.n_ranks // self.pp

    @property
    def nominal_step_ms(self) -> float:
        """About how long a step lasts, for severities that are shares of the step."""
        work = max(self.healthy.stage_work or (1.0,))
        passes = self.microbatches + (self.pp - 1) / self.vpp
        return (
            passes * 3.0 * self.forward_ms * work * (1.0 + self.free_share) * 1.15
            + self.optimizer_ms
            + self.dp_mb / 12.0
        )


def _refuse_outside(owner: object, names: tuple[str, ...], low: float, high: float) -> None:
    for name in names:
        value = getattr(owner, name)
        if value is not None and not low <= value <= high:
            raise UsageError(f"--{name.replace('_', '-')} is {value}", f"it has to be {low:g} to {high:g}")
