"""Jobs for the tests of the detection: simulated ones without files, and small ones made by hand."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import pyarrow as pa

from benchmarks.detection.simulated_tables import tables, topology
from cluster_analysis.judge.detection import Detection, detect
from cluster_analysis.replay.job_evidence import JobEvidence, merge_steps
from cluster_analysis.tables.model import Group, Topology
from cluster_analysis.tables.schema import COLLECTIVES, LINKS, OPERATORS, PACKETS, STEPS
from cluster_analysis.trace.evidence import StepEvidence
from cluster_analysis.trace.reduction import reduce_step
from cluster_run.findings import Finding
from cluster_run.ids import DeviceId, GroupRole, HostId, ParallelSizes, Rank, Step
from cluster_simulate.api import JobSpec, SimulatedJob, parse_scenario, simulate, truth

NO_COLLECTIVES = COLLECTIVES.empty_table()
NO_LINKS = LINKS.empty_table()
NO_OPERATORS = OPERATORS.empty_table()
NO_PACKETS = PACKETS.empty_table()
SMALL = JobSpec(tp=4, pp=2, dp=4, steps=5, microbatches=2)


@dataclass(frozen=True)
class Judged:
    """A simulated job, what was found in it, and what is true."""

    job: SimulatedJob
    evidence: JobEvidence
    topology: Topology
    detection: Detection

    @property
    def true_cost_ms(self) -> float:
        """True cost of the costliest fault."""
        return truth(self.job).faults[0].cost_ms_per_step

    @property
    def alarms(self) -> tuple[Finding, ...]:
        """Findings that are more than information."""
        return tuple(one for one in self.detection.findings if one.is_alarm)

    def of_kind(self, kind: str) -> tuple[Finding, ...]:
        """Findings of one kind."""
        return tuple(one for one in self.detection.findings if one.kind == kind)


@cache
def judged(spec: JobSpec = SMALL, *scenarios: str, seed: int = 11) -> Judged:
    """Simulate a job with faults and judge it."""
    job = simulate(spec, [parse_scenario(text) for text in scenarios], seed=seed)
    where = topology(job)
    evidence = evidence_of_tables(tables(job).values(), where)
    return Judged(job, evidence, where, detect(evidence, where))


def evidence_of_tables(ranks: Iterable, where: Topology) -> JobEvidence:  # type: ignore[type-arg]
    """Reduce and merge the tables of all ranks."""
    ranks = list(ranks)
    joined = {
        name: pa.concat_tables([getattr(one, name) for one in ranks]).unify_dictionaries()
        for name in ("steps", "collectives", "links", "operators", "packets")
    }
    return evidence_of(where, *joined.values())


def evidence_of(
    where: Topology, steps: pa.Table, collectives: pa.Table = NO_COLLECTIVES, links: pa.Table = NO_LINKS,
    operators: pa.Table = NO_OPERATORS, packets: pa.Table = NO_PACKETS,
) -> JobEvidence:  # fmt: skip
    """Reduce and merge these tables of all ranks."""
    return merge_steps(reduce_all(steps, collectives, links, where), operators, packets)


def reduce_all(
    steps: pa.Table, collectives: pa.Table, links: pa.Table, where: Topology
) -> list[StepEvidence]:
    """Reduce every step that has step times."""
    numbers = sorted(set(steps["step"].to_pylist()))
    return [reduce_step(Step(number), steps, collectives, links, where) for number in numbers]


@dataclass(frozen=True)
class Call:
    """One call made by hand; µs on the rank's clock."""

    rank: int
    op_type: str
    start_us: float
    elapse_us: float
    group: str = "g"
    number: int = -1
    size_bytes: float = 1e6
    step: int = 1


def collectives_table(calls: Sequence[Call], *, clock_offset_us: dict[int, float] | None = None) -> pa.Table:
    """COLLECTIVES of hand-made calls, wait fields all zero."""
    offset = clock_offset_us or {}
    base = 1_700_000_000_000_000_000
    rows = [
        {
            "rank": one.rank,
            "step": one.step,
            "group": one.group,
            "op_name": f"hcom_{one.op_type}__1_{max(one.number, 0)}_1",
            "op_type": one.op_type,
            "op_index": one.number,
            "is_p2p": False,
            "start_ns": base + round((one.start_us + offset.get(one.rank, 0.0)) * 1e3),
            "elapse_us": one.elapse_us,
            "transit_us": 0.0,
            "wait_us": 0.0,
            "synchronization_us": 0.0,
            "idle_us": one.elapse_us,
            "hccs_bytes": one.size_bytes,
            "hccs_us": 1.0,
        }
        for one in calls
    ]
    return pa.Table.from_pylist(rows, schema=COLLECTIVES)


def steps_table(total_us: dict[int, float], *, step: int = 1, computing_us: float = 0.0) -> pa.Table:
    """STEPS with a total for each rank."""
    rows = [
        {
            "rank": rank,
            "step": step,
            "computing_us": computing_us,
            "communication_not_overlapped_us": 0.0,
            "overlapped_us": 0.0,
            "communication_us": 0.0,
            "free_us": total - computing_us,
            "stage_us": total,
            "bubble_us": 0.0,
            "communication_not_overlapped_exclude_receive_us": 0.0,
            "preparing_us": 0.0,
        }
        for rank, total in total_us.items()
    ]
    return pa.Table.from_pylist(rows, schema=STEPS)


def small_topology(
    groups: dict[str, tuple[int, ...]],
    roles: dict[str, GroupRole] | None = None,
    stages: dict[int, int] | None = None,
) -> Topology:
    """A topology of one host."""
    ranks = sorted({rank for members in groups.values() for rank in members})
    roles = roles or {}
    return Topology(
        ranks=tuple(Rank(rank) for rank in ranks),
        hosts={Rank(rank): HostId("1") for rank in ranks},
        devices={Rank(rank): DeviceId(rank) for rank in ranks},
        groups={
            name: Group(name, roles.get(name, "unknown"), tuple(Rank(rank) for rank in members))
            for name, members in groups.items()
        },
        parallel=ParallelSizes(),
        stages={Rank(rank): stage for rank, stage in (stages or {}).items()},
    )
