"""A simulated job as arrays: every communication operator of every rank, exactly as it happened.

Times are microseconds of true time since the job's begin; the clocks of hosts come in when files or
tables are made (`clock_us`).
"""

from __future__ import annotations

from dataclasses import dataclass

from cluster_simulate.job.arrays import Bools, Columns, Floats, Ints
from cluster_simulate.job.faults import Fault
from cluster_simulate.job.layout import GroupTable
from cluster_simulate.job.spec import JobSpec

#: Transport codes of `LinkUses.transport`.
TRANSPORTS = ("HCCS", "RDMA", "PCIE", "LOCAL")
HCCS, RDMA, PCIE, LOCAL = range(4)


@dataclass(frozen=True)
class Ops(Columns):
    """One row a rank, step and communication operator, in order of rank, then of start.

    `step` counts from 0. `kind` indexes `OP_KINDS` of `layout`. `group` indexes the job's groups,
    `number` is the operator's running number in its group on this rank. The operator starts at
    `start_us` and lasts `elapse_us`, of which `transfer_us` would remain if nobody were late. Before
    it the rank computed for `compute_us` since its previous blocking operator or wait for another stream
    (`Waits`), and idled for `free_us` since its previous blocking operator.
    `is_side`: on a second stream, so the rank went on meanwhile.
    """

    rank: Ints
    step: Ints
    kind: Ints
    group: Ints
    number: Ints
    start_us: Floats
    elapse_us: Floats
    transfer_us: Floats
    compute_us: Floats
    free_us: Floats
    is_side: Bools

    def __len__(self) -> int:
        return len(self.rank)


@dataclass(frozen=True)
class Waits(Columns):
    """One row a rank that had to wait for its second stream.

    From `at_us` on it waited; before, it computed for `compute_us` since its previous blocking operator or
    wait.
    """

    rank: Ints
    step: Ints
    at_us: Floats
    compute_us: Floats


@dataclass(frozen=True)
class LinkUses(Columns):
    """One row a link that an operator used, without LOCAL copies. `op` is the row in `Ops`; src is its rank.

    `n_packets` packets of `size_bytes / n_packets` took `time_us` together.
    """

    op: Ints
    dst: Ints
    transport: Ints
    size_bytes: Floats
    time_us: Floats
    n_packets: Ints


@dataclass(frozen=True)
class StepTimes:
    """True times, and the clock of the AI cores, by [step, rank].

    End-to-end is `end_us - first_task_us`: from the first thing the device did to the last. `backward_us`
    is when the last backward pass ended; `cube_us` is the part of `computing_us` that matrix units did.
    """

    begin_us: Floats
    first_task_us: Floats
    backward_us: Floats
    end_us: Floats
    computing_us: Floats
    cube_us: Floats
    frequency_mhz: Floats


@dataclass(frozen=True)
class SimulatedJob:
    """Result of a simulation. `step_ms` is the mean time from the last rank's end to the next such end.

    `requested` is the job as asked for, `spec` the one that ran: with the workload scenarios in it.
    """

    requested: JobSpec
    spec: JobSpec
    faults: tuple[Fault, ...]
    seed: int
    run: int
    groups: GroupTable
    ops: Ops
    waits: Waits
    links: LinkUses
    times: StepTimes
    clock_offset_us: Floats
    clock_drift: Floats
    step_ms: float

    def clock_us(self, rank: Ints, true_us: Floats) -> Floats:
        """Time on the clock of the rank's host at a true time."""
        host = self.spec.host_of(rank)
        shown: Floats = true_us * (1.0 + self.clock_drift[host]) + self.clock_offset_us[host]
        return shown
