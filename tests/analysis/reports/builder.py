"""Results of analyses, built by hand: with a slow rank and a slow link, healthy, or not to be judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa

from cluster_analysis.judge.baseline import Change, Comparison
from cluster_analysis.result import AnalysisResult
from cluster_analysis.run_header import places_of
from cluster_analysis.tables import schema
from cluster_analysis.tables.columns_described import MemoryPeaks
from cluster_analysis.tables.model import Group, Topology
from cluster_run.facts import fact
from cluster_run.findings import Evidence, Finding, FindingsDocument, Link, LostPart, RunInfo, Wait
from cluster_run.ids import DeviceId, GroupRole, HostId, ParallelSizes, Rank, Step
from cluster_run.problem import Problem
from tests.analysis.copies import replace

DEVICES_PER_HOST = 8
SLOW_RANK = Rank(5)
SLOW_LINK = (Rank(2), Rank(10))


@dataclass(frozen=True)
class Job:
    """Sizes of a job; ranks are ordered TP fastest, then DP, then PP, eight to a host."""

    tp: int = 8
    dp: int = 2
    pp: int = 2
    n_steps: int = 6
    is_faulty: bool = True

    @property
    def n_ranks(self) -> int:
        """World size."""
        return self.tp * self.dp * self.pp

    def place(self, rank: int) -> tuple[int, int, int]:
        """Return (stage, dp index, tp index) of a rank."""
        return rank // (self.tp * self.dp), rank // self.tp % self.dp, rank % self.tp


def degraded(job: Job | None = None) -> AnalysisResult:
    """A job in which rank 5 computes 22 % slower and the link 2 → 10 carries a third of its class."""
    job = job or Job()
    step_ms = _step_ms(job)
    findings = (_slow_rank(job, step_ms), _slow_link(step_ms))
    return _result(job, "degraded", findings)


def healthy(job: Job | None = None) -> AnalysisResult:
    """The same job without faults."""
    return _result(replace(job or Job(), is_faulty=False), "healthy", ())


def unknown() -> AnalysisResult:
    """A job of which two of 32 ranks could be read."""
    job = Job(tp=2, dp=1, pp=1, n_steps=1, is_faulty=False)
    result = _result(job, "unknown", ())
    return with_document(
        with_run(result, expected_ranks=32, hosts=1),
        problems=(
            Problem(
                fact("truncated", byte=1048576), "communication.json", Rank(7), HostId("1"), "collect_again"
            ),
            Problem(
                fact("not_collected", detail="no answer within 30 s", told="look at sshd"),
                host=HostId("3"),
                advice="as_told",
            ),
            Problem(fact("missing_ranks", n_missing=30, n_ranks=32, ranks=tuple(range(2, 32)))),
        ),
        notes=(fact("ranks_missing", n_read=2, n_ranks=32, n_missing=30), fact("no_communication_matrix")),
    )


@cache
def _found() -> tuple[Finding, ...]:
    return degraded().document.findings


def slow(**values: object) -> Finding:
    """The finding on the slow rank of `degraded`, but for these values."""
    return replace(_found()[0], **values)


def slow_link(**values: object) -> Finding:
    """The finding on its slow link, but for these values."""
    return replace(_found()[1], **values)


def finds(*findings: Finding) -> AnalysisResult:
    """`degraded` with these findings."""
    return with_document(degraded(), findings=findings)


def with_document(result: AnalysisResult, **values: object) -> AnalysisResult:
    """The same result, but for these values of its document."""
    return replace(result, document=replace(result.document, **values))


def with_run(result: AnalysisResult, **values: object) -> AnalysisResult:
    """The same result, but for these values of its run."""
    return with_document(result, run=replace(result.document.run, **values))


def unknown_of(result: AnalysisResult) -> AnalysisResult:
    """The same result, of which nobody can say that it is healthy."""
    return with_document(result, verdict="unknown")


def comparison() -> Comparison:
    """What an older run and `degraded` differ in: a slower rank and link, a faster operator, and noise."""
    changes = (
        Change("step", "step", "step_us", 268_100.0, 282_700.0, 0.0545, 0.042, 0.067, True),
        Change("rank", "rank 5", "computing_beside_peers_ratio", 1.0, 1.219, 0.219, 0.205, 0.233, True, (5,)),
        Change("link", "RDMA 2 to 10", "time_beside_class_ratio", 1.0, 3.0, 2.0, 1.9, 2.1, True,
               (2, 10), "RDMA"),
        Change("operator", "MatMulV2", "mean_call_us", 1210.0, 1150.0, -0.049, -0.07, -0.03, True,
               more_ms_per_step=-1.4),
        Change("component", "computing", "computing_us", 165e3, 166e3, 0.006, -0.003, 0.015, False),
        Change("component", "free", "free_us", 9_000.0, 9_010.0, 0.001, -0.02, 0.022, False),
    )  # fmt: skip
    return Comparison(changes, refusals=(fact("other_number_of_ranks", before=64, after=32),))


def with_hostile_names(result: AnalysisResult) -> AnalysisResult:
    """The same result with real host names that try to be markup."""
    addresses = {host: f"<script>alert({host})</script>" for host in set(result.topology.hosts.values())}
    why = fact("not_json", detail="<img src=x onerror=alert(1)>")
    problem = Problem(why, "</script><b>x", Rank(1), HostId("1"))
    note = fact("capture_lacks_ranks", capture="<i>note</i>", ranks=(1,))
    return replace(with_document(result, problems=(problem,), notes=(note,)), addresses=addresses)


def with_tables(result: AnalysisResult, tables: Mapping[str, pa.Table]) -> AnalysisResult:
    """The same result with other tables."""
    return replace(result, tables=tables)


def with_addresses(result: AnalysisResult, addresses: Mapping[str, str]) -> AnalysisResult:
    """The same result, in which real host names may be shown."""
    return replace(result, addresses={HostId(host): address for host, address in addresses.items()})


def with_findings(result: AnalysisResult, number: int) -> AnalysisResult:
    """The same result with `number` findings of slow hosts."""
    first = result.document.findings[0]
    findings = tuple(
        replace(first, id=f"slow_host-{i}", kind="slow_host", hosts=(HostId(str(i + 1)),), places=())
        for i in range(number)
    )
    return replace(with_document(result, findings=findings), addresses={})


def _lost() -> tuple[LostPart, ...]:
    """What the 16.7 ms above the ideal step are lost to."""
    return (
        LostPart("slow_devices", 12.3, 0.7365),
        LostPart("communication", 4.1, 0.2455),
        LostPart("other", 0.3, 0.018),
    )


def _step_ms(job: Job) -> float:
    return 282.7 if job.is_faulty else 268.1


def _slow_rank(job: Job, step_ms: float) -> Finding:
    host = HostId(str(SLOW_RANK // DEVICES_PER_HOST + 1))
    n_peers = job.tp * job.dp - 1
    return Finding(
        id=f"slow_rank-{SLOW_RANK}",
        kind="slow_rank",
        severity="warning",
        ranks=(SLOW_RANK,),
        hosts=(host,),
        links=(),
        cause="compute",
        pattern="persistent",
        steps=tuple(Step(10 + i) for i in range(job.n_steps)),
        cost_ms_per_step=12.3,
        cost_share=12.3 / step_ms,
        cumulative_saving_ms=12.3,
        confidence="high",
        evidence=(
            Evidence("computing_us", 201000.0, 165000.0, 900.0, n_peers),
            Evidence("wait_us", 1200.0, 33000.0, 1500.0, n_peers),
        ),
        facts=(
            fact(
                "rank_computing",
                slower_share=201000.0 / 165000.0 - 1.0,
                n_peers=n_peers,
                role=("stage", 0),
                n_steps=job.n_steps,
            ),
        ),
        chain=(
            Wait("tp", "late", 7, Rank(3), 36.0),
            Wait("pp", "late", 1, Rank(21), 12.3),
            Wait("dp", "held_up", 12, Rank(29), 12.1),
        ),
    )


def _slow_link(step_ms: float) -> Finding:
    src, dst = SLOW_LINK
    return Finding(
        id=f"slow_link-{src}-{dst}",
        kind="slow_link",
        severity="warning",
        ranks=(src, dst),
        hosts=(HostId("1"), HostId("2")),
        links=(Link(src, dst, "RDMA"), Link(dst, src, "RDMA")),
        cause="bandwidth",
        pattern="persistent",
        steps=(),
        cost_ms_per_step=4.1,
        cost_share=4.1 / step_ms,
        cumulative_saving_ms=15.8,
        confidence="medium",
        evidence=(Evidence("bandwidth_gbps", 7.1, 21.4, 0.3, 31),),
        facts=(
            fact("link_both_ways", slower_share=21.4 / 7.1 - 1.0, transport="RDMA", n_links=31, n_seen=40),
            fact("may_be_nic", ranks=(dst,)),
        ),
        separable=False,
    )


def _result(job: Job, verdict: str, findings: tuple[Finding, ...]) -> AnalysisResult:
    topology = _topology(job)
    run = RunInfo(
        ranks=job.n_ranks,
        expected_ranks=job.n_ranks,
        hosts=-(-job.n_ranks // DEVICES_PER_HOST),
        steps=tuple(Step(10 + i) for i in range(job.n_steps)),
        step_ms=_step_ms(job),
        sources=("ascend_pt/text",),
        parallel=topology.parallel,
        name="run1",
        path="/data/run1",
        captured="2026-05-13T02:10:00",
        command="cluster-analyse run1",
        ideal_step_ms=266.0,
        slowdown=_step_ms(job) / 266.0,
        lost=_lost() if job.is_faulty else (LostPart("other", 2.1, 1.0),),
    )
    findings = tuple(replace(one, places=places_of(one, topology)) for one in findings)
    document = FindingsDocument("0.1.0", run, verdict, findings, (), (), {})  # type: ignore[arg-type]
    return AnalysisResult(document, topology, _tables(job, topology))


def _topology(job: Job) -> Topology:
    ranks = tuple(Rank(i) for i in range(job.n_ranks))
    members: dict[tuple[GroupRole, tuple[int, ...]], list[Rank]] = {}
    for rank in ranks:
        stage, dp, tp = job.place(rank)
        members.setdefault(("tp", (stage, dp)), []).append(rank)
        members.setdefault(("dp", (stage, tp)), []).append(rank)
        members.setdefault(("pp", (dp, tp)), []).append(rank)
    groups = {
        f"{number:019d}": Group(f"{number:019d}", role, tuple(group), f"{role}_{'_'.join(map(str, key))}")
        for number, ((role, key), group) in enumerate(members.items(), start=1)
    }
    return Topology(
        ranks=ranks,
        hosts={rank: HostId(str(rank // DEVICES_PER_HOST + 1)) for rank in ranks},
        devices={rank: DeviceId(rank % DEVICES_PER_HOST) for rank in ranks},
        groups=groups,
        parallel=ParallelSizes(tp=job.tp, pp=job.pp, dp=job.dp),
        stages={rank: job.place(rank)[0] for rank in ranks},
        tp_index={rank: job.place(rank)[2] for rank in ranks},
        dp_index={rank: job.place(rank)[1] for rank in ranks},
    )


def _tables(job: Job, topology: Topology) -> dict[str, pa.Table]:
    random = np.random.default_rng(7)
    n, s = job.n_ranks, job.n_steps
    places = np.array([job.place(rank) for rank in range(n)])
    rank = np.repeat(np.arange(n), s)
    step = np.tile(10 + np.arange(s), n)
    computing = random.normal(165_000, 900, n * s) * np.where(places[:, 0] == 1, 1.08, 1.0)[rank]
    if job.is_faulty:
        computing[rank == SLOW_RANK] *= 1.22
    free = random.normal(9_000, 300, n * s)
    overlapped = 0.12 * computing
    bubble = np.where(places[:, 0] == 1, 21_000.0, 14_000.0)[rank]
    total = np.array([_step_ms(job) * 1000 + 400 * i for i in range(s)])[step - 10]
    exposed = total - computing - free
    steps = {
        "rank": rank,
        "step": step,
        "computing_us": computing,
        "communication_not_overlapped_us": exposed,
        "overlapped_us": overlapped,
        "communication_us": exposed + overlapped,
        "free_us": free,
        "stage_us": total - bubble,
        "bubble_us": bubble,
        "communication_not_overlapped_exclude_receive_us": exposed - bubble,
        "preparing_us": np.full(n * s, 800.0),
    }
    wait = exposed * 0.55 + random.normal(0, 300, n * s)
    times = {
        "rank": rank,
        "step": step,
        "wait_us": wait,
        "transfer_us": exposed - wait,
        "gap_us": computing + free,
    }
    ranks = {
        "rank": np.arange(n),
        "host": [topology.hosts[one] for one in topology.ranks],
        "device": [topology.devices[one] for one in topology.ranks],
        "stage": places[:, 0],
        "tp_index": places[:, 2],
        "dp_index": places[:, 1],
    }
    return {
        "ranks": _table(ranks, schema.RANKS),
        "steps": _table(steps, schema.STEPS),
        "rank_times": _table(times, schema.RANK_TIMES),
        "links": _links(job, topology, random),
        "matched": _matched(job, topology, random),
        "operators": _operators(job, random),
        "memory_peaks": _memory_peaks(job),
    }


def _links(job: Job, topology: Topology, random: np.random.Generator) -> pa.Table:
    rows = []
    for group in topology.groups.values():
        ring = [(a, group.ranks[(i + 1) % len(group.ranks)]) for i, a in enumerate(group.ranks)]
        both = [*ring, *((dst, src) for src, dst in ring)] if len(group.ranks) > 2 else ring
        op_type = {"tp": "allreduce", "dp": "reducescatter", "pp": "batchsendrecv"}[group.role]
        for src, dst in both:
            near = topology.hosts[src] == topology.hosts[dst]
            normal_gbps = 24.8 if near else 21.4
            slow = job.is_faulty and {src, dst} == set(SLOW_LINK)
            gbps = float(normal_gbps * random.normal(1, 0.012) / (3.0 if slow else 1.0))
            size = 3.2e8 if group.role == "tp" else 1.1e8
            kind, lost = "HCCS" if near else "RDMA", normal_gbps / gbps - 1
            rows.append((src, dst, kind, op_type, 12, size, size / gbps / 1000, gbps, normal_gbps, lost))
    return _of_rows(rows, schema.LINK_SUMMARY)


def _matched(job: Job, topology: Topology, random: np.random.Generator) -> pa.Table:
    rows = []
    op_types = {"tp": "allreduce", "dp": "reducescatter", "pp": "batchsendrecv"}
    for group in topology.groups.values():
        for step in range(job.n_steps):
            for ordinal in range(4 if group.role == "tp" else 2):
                slow = job.is_faulty and SLOW_RANK in group.ranks
                wait = float(abs(random.normal(36_000 if slow else 900, 250)))
                op_type = op_types[group.role]
                last = SLOW_RANK if slow else group.ranks[int(random.integers(len(group.ranks)))]
                name = f"hcom_{op_type}__{group.group[-3:]}_{ordinal}_1"
                rows.append((
                    10 + step, group.group, group.role, op_type, name, ordinal,
                    len(group.ranks), len(group.ranks), 8e7, float(random.normal(4200, 60)),
                    wait, wait * 0.8 * len(group.ranks), None, last,
                ))  # fmt: skip
    return _of_rows(rows, schema.MATCHED)


def _memory_peaks(job: Job) -> pa.Table:
    """PTA of every rank; the slow rank holds 2 GB more than its peers."""
    own = [(24.0 if rank == SLOW_RANK else 22.0) * 1e9 for rank in range(job.n_ranks)]
    n = job.n_ranks
    columns = {
        "rank": list(range(n)),
        "component": ["PTA"] * n,
        "allocated_bytes": own,
        "reserved_bytes": [one + 2e9 for one in own],
        "active_bytes": own,
        "capacity_bytes": [64e9] * n,
        "peers_median_bytes": [24.0e9] * n,
    }
    return _table(columns, MemoryPeaks.schema)


def _operators(job: Job, random: np.random.Generator) -> pa.Table:
    kinds = ("MatMulV2", "FlashAttentionScore", "RmsNorm", "SwiGlu", "Cast")
    rows = []
    for rank in range(job.n_ranks):
        factor = 1.22 if job.is_faulty and rank == SLOW_RANK else 1.0
        for weight, kind in enumerate(reversed(kinds), start=1):
            average = float(random.normal(40 * weight**2, weight)) * factor
            rows.append((rank, kind, "AI_CORE", 960, average * 960, average * 0.9, average, average * 1.4))
    return _of_rows(rows, schema.OPERATORS)


def _of_rows(rows: Iterable[tuple[object, ...]], wanted: pa.Schema) -> pa.Table:
    return _table(dict(zip(wanted.names, zip(*rows, strict=True), strict=True)), wanted)


def _table(columns: Mapping[str, object], wanted: pa.Schema) -> pa.Table:
    return pa.table({name: pa.array(columns[name], wanted.field(name).type) for name in wanted.names}, wanted)
