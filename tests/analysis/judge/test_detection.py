import pyarrow as pa
import pyarrow.compute as pc
import pytest

from benchmarks.detection.simulated_tables import tables, topology
from cluster_analysis.judge.detection import detect
from cluster_analysis.judge.view import build_view
from cluster_analysis.replay.job_evidence import merge_steps
from cluster_analysis.tables.schema import STEPS
from cluster_run.kinds import FAULT_KINDS
from cluster_simulate.api import Healthy, JobSpec, Noise, simulate
from cluster_words.findings import chain as chain_of
from tests.analysis.copies import replace
from tests.analysis.jobs import (
    NO_OPERATORS,
    NO_PACKETS,
    SMALL,
    Judged,
    evidence_of,
    evidence_of_tables,
    judged,
    reduce_all,
)  # fmt: skip
from tests.analysis.said import notes_of, summary

HEALTHY = {
    "plain": SMALL,
    "sequence imbalance": replace(SMALL, healthy=Healthy(sequence_sigma=0.2)),
    "experts": replace(SMALL, ep=4, healthy=Healthy(expert_sigma=0.1)),
    "silicon": replace(SMALL, healthy=Healthy(silicon_sigma=0.01)),
    "garbage collection": replace(SMALL, steps=8, healthy=Healthy(gc_every=4)),
    "checkpoints": replace(SMALL, healthy=Healthy(checkpoint_every=5)),
    "two boards": replace(SMALL, healthy=Healthy(inner_halves=True)),
    "congestion": replace(SMALL, healthy=Healthy(congestion_share=0.06)),
    "clocks": replace(SMALL, healthy=Healthy(clock_sigma_ms=50.0, drift_ppm=20.0)),
    "missing ranks": replace(SMALL, healthy=Healthy(missing_ranks=(3, 17))),
    "uneven counts": replace(SMALL, healthy=Healthy(uneven_counts=5)),
    "second family": replace(SMALL, noise=Noise(family="ar1")),
    "data parallel only": JobSpec(tp=1, pp=1, dp=16, steps=5, microbatches=2),
}


def named(result: Judged) -> set[tuple[str, tuple[int, ...], tuple[str, ...]]]:
    return {(one.kind, tuple(one.ranks), tuple(one.hosts)) for one in result.alarms}


@pytest.mark.many
@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_job_has_no_warning(name: str) -> None:
    result = judged(HEALTHY[name])
    assert result.alarms == ()
    assert result.detection.verdict == "healthy"


def test_hiccups_of_many_ranks_that_cost_a_tenth_of_the_step_blame_nobody_and_are_told() -> None:
    result = judged(replace(SMALL, healthy=Healthy(hiccup_share=0.02)))
    assert result.alarms == ()
    (sum_of_all,) = result.of_kind("periodic_pause")
    assert sum_of_all.cost_share is not None
    assert sum_of_all.cost_share > 0.05
    assert result.detection.verdict == "unknown"


def test_a_finding_names_the_nearest_peers_that_no_warning_names() -> None:
    findings = judged(SMALL, "slow_rank:1.25@13", "slow_rank:1.25@12").alarms
    assert {one.ranks: one.peers for one in findings} == {(12,): (10, 11), (13,): (11, 14)}


def test_a_slow_rank_is_named_with_its_cause_and_host() -> None:
    finding = judged(SMALL, "slow_rank:1.25@13").alarms[0]
    assert (finding.kind, finding.ranks, finding.hosts, finding.cause) == (
        "slow_rank",
        (13,),
        ("2",),
        "compute",
    )
    assert finding.pattern == "persistent"
    assert "Rank 13 (host 2) computes 25 % slower than its 15 peers of stage 0" in summary(finding)
    assert finding.evidence[0].n_peers == 15


def test_the_victims_down_the_pipeline_are_not_blamed() -> None:
    result = judged(SMALL, "slow_rank:1.3@5")
    assert named(result) == {("slow_rank", (5,), ("1",))}
    chain = " ".join(one.en for one in chain_of(result.alarms[0]))
    assert "tensor-parallel group 3 ranks wait for rank 5" in chain


def test_a_slow_host_is_one_finding_and_its_ranks_have_none() -> None:
    result = judged(SMALL, "slow_host:1.06@2")
    assert [(one.kind, one.hosts) for one in result.alarms] == [("slow_host", ("2",))]
    assert len(result.alarms[0].ranks) == 8
    assert not [one for one in result.of_kind("slow_rank") if set(one.ranks) & set(result.alarms[0].ranks)]


def test_of_two_slow_mates_each_is_an_alarm_though_either_alone_saves_little() -> None:
    result = judged(SMALL, "slow_rank:1.15@16", "slow_rank:1.15@17")
    assert named(result) == {("slow_rank", (16,), ("3",)), ("slow_rank", (17,), ("3",))}
    first, second = result.alarms
    assert second.cumulative_saving_ms > 4 * first.cost_ms_per_step
    assert "Hidden behind other findings" in summary(second)


def test_busy_experts_are_their_own_finding_and_no_slow_host() -> None:
    result = judged(replace(SMALL, ep=4, healthy=Healthy(expert_sigma=0.15)))
    assert result.alarms == ()
    assert not result.of_kind("slow_host")
    assert len(result.of_kind("expert_imbalance")) == 1


def test_a_slow_device_is_seen_through_unequal_data() -> None:
    spec = replace(SMALL, healthy=Healthy(sequence_sigma=0.2))
    result = judged(spec, "slow_rank:1.2@5")
    assert ("slow_rank", (5,), ("1",)) in named(result)
    assert len(result.of_kind("data_imbalance")) == 1


def test_uneven_stages_are_told_and_blame_nobody() -> None:
    result = judged(replace(SMALL, healthy=Healthy(stage_work=(1.0, 1.4))))
    (finding,) = result.of_kind("stage_imbalance")
    assert not finding.is_alarm
    assert result.detection.verdict == "healthy"
    assert set(finding.ranks) == set(range(16, 32))


def test_a_fault_that_comes_and_goes_is_intermittent() -> None:
    spec = replace(SMALL, steps=12)
    finding = judged(spec, "slow_rank:1.4@5,pattern=intermittent,duty=0.3").of_kind("slow_rank")[0]
    assert (finding.ranks, finding.pattern) == ((5,), "intermittent")
    assert 2 <= len(finding.steps) <= 5


def test_a_device_that_is_slow_in_all_steps_and_more_so_in_some_costs_what_it_loses_in_all() -> None:
    spec = replace(SMALL, steps=8)
    case = judged(spec, "slow_rank:1.15@5", "slow_rank:1.4@5,pattern=intermittent,duty=0.3")
    (finding,) = case.of_kind("slow_rank")
    slow, healthy = (build_view(one.evidence, one.topology).mean_step_us for one in (case, judged(spec)))
    assert (finding.ranks, finding.pattern) == ((5,), "persistent")
    assert finding.cost_ms_per_step == pytest.approx((slow - healthy) / 1e3, rel=0.02)


def test_a_fault_that_grows_is_a_trend() -> None:
    finding = judged(replace(SMALL, steps=10), "slow_rank:1.4@5,pattern=trend").of_kind("slow_rank")[0]
    assert (finding.ranks, finding.pattern) == ((5,), "trend")


def test_a_retransmission_is_an_event_and_not_a_slow_link() -> None:
    result = judged(SMALL, "retransmission:4000")
    assert [one.kind for one in result.alarms] == ["retransmission"]
    assert not result.of_kind("slow_link")


def test_a_job_with_data_parallelism_only_keeps_its_findings_and_their_costs() -> None:
    finding = judged(HEALTHY["data parallel only"], "slow_rank:1.2@5").alarms[0]
    assert finding.ranks == (5,)
    assert finding.cost_ms_per_step is not None


def test_everything_but_the_step_totals_may_be_missing() -> None:
    whole = judged(SMALL, "slow_rank:1.3@5")
    found = detect(evidence_of(whole.topology, whole.evidence.step_table), whole.topology)
    (finding,) = [one for one in found.findings if one.kind == "slow_rank"]
    assert finding.ranks == (5,)
    assert finding.cost_ms_per_step is not None
    assert finding.cost_ms_per_step >= 0.8 * whole.true_cost_ms
    assert "upper bound" in summary(finding)
    assert any("no communication operators" in note for note in notes_of(found))


def test_without_a_matrix_links_are_not_judged_and_that_is_said() -> None:
    job = simulate(SMALL, [], seed=11)
    where = topology(job)
    without = [replace(one, links=one.links.slice(0, 0)) for one in tables(job).values()]
    found = detect(evidence_of_tables(without, where), where)
    assert found.verdict == "healthy"
    assert any("no link with two known ends" in note for note in notes_of(found))


def test_no_steps_at_all_is_unknown_and_not_healthy() -> None:
    where = judged(SMALL).topology
    empty = merge_steps([], NO_OPERATORS, NO_PACKETS)
    assert empty.step_table.schema.equals(STEPS)
    found = detect(empty, where)
    assert (found.verdict, found.step_ms) == ("unknown", None)
    assert notes_of(found)


def test_two_ranks_of_many_are_not_judged_and_the_others_are_mentioned() -> None:
    whole = judged(SMALL)
    two = whole.evidence.step_table.filter(pc.is_in(whole.evidence.step_table["rank"], pa.array([0, 1])))
    found = detect(evidence_of(whole.topology, two), whole.topology)
    assert found.verdict == "unknown"
    assert any("2 of 32 ranks" in note for note in notes_of(found))


def test_without_stages_ranks_are_compared_by_the_calls_they_make() -> None:
    whole = judged(SMALL, "slow_rank:1.3@5")
    blind = replace(whole.topology, stages={}, tp_index={}, dp_index={}, confidence="low")
    evidence = whole.evidence
    found = detect(evidence, blind)
    assert next(one.ranks for one in found.findings if one.kind == "slow_rank") == (5,)


def test_the_order_of_steps_and_rows_does_not_show() -> None:
    job = simulate(SMALL, [], seed=3)
    where = topology(job)
    ranks = list(tables(job).values())

    def found(order: list[int]) -> object:
        parts = [ranks[position] for position in order]
        joined = [
            pa.concat_tables([getattr(one, name) for one in parts]).unify_dictionaries()
            for name in ("steps", "collectives", "links")
        ]
        evidence = merge_steps(list(reversed(reduce_all(*joined, where))), NO_OPERATORS, NO_PACKETS)
        detection = detect(evidence, where)
        return detection.findings, notes_of(detection), detection.replay

    forward = list(range(len(ranks)))
    assert found(forward) == found(forward[::-1])


@pytest.mark.parametrize(
    ("scenario", "kind"),
    [
        ("input_bound:80", "input_bound"),
        ("host_bound:0.35", "host_bound"),
        ("small_packets:400", "small_packets"),
    ],
)
def test_what_the_whole_job_loses_alike_is_told_and_is_no_alarm(scenario: str, kind: str) -> None:
    result = judged(SMALL, scenario)
    assert [one.kind for one in result.detection.findings if one.kind == kind] == [kind]
    assert not [one for one in result.alarms if one.kind in FAULT_KINDS]
    assert not judged(SMALL).of_kind(kind)


def test_what_hosts_cost_that_are_too_slow_for_all_devices_alike_is_told() -> None:
    result = judged(SMALL, "host_bound:0.35")
    (finding,) = result.of_kind("host_bound")
    assert finding.cost_ms_per_step == pytest.approx(result.true_cost_ms, rel=0.15)


TWO_A_HOST = JobSpec(tp=2, pp=1, dp=8, steps=5, ranks_per_host=2, microbatches=2)
NAMED = {
    "a host whose ranks are half of its stage leaves the other half alone":
        (SMALL, "slow_host:1.15@1,cause=compute", ("slow_host", tuple(range(8)), ("1",))),
    # Hosts 2 and 4 hold the same replicas: what lasts on host 2 is no long data, and host 3 is not slow.
    "a slow host of one stage leaves the same replicas of the other stage alone":
        (SMALL, "slow_host:1.15@2", ("slow_host", tuple(range(8, 16)), ("2",))),
    "eight peers are enough":
        (JobSpec(tp=8, pp=1, dp=1, steps=5, microbatches=2), "slow_rank:1.1@5", ("slow_rank", (5,), ("1",))),
    "a rank that pauses in rhythm is named for its pauses":
        (replace(SMALL, steps=8), "periodic_pause:200@5,every=2", ("periodic_pause", (5,), ("1",))),
    "two slow ranks of two on a host are a slow host":
        (TWO_A_HOST, "slow_host:1.3@3", ("slow_host", (4, 5), ("3",))),
    **{f"one slow rank of two on a host is no slow host: {cause}":
        (TWO_A_HOST, f"slow_rank:1.3@5,cause={cause}", ("slow_rank", (5,), ("3",)))
       for cause in ("compute", "input", "dispatch")},
}  # fmt: skip


@pytest.mark.many
@pytest.mark.parametrize(("spec", "scenario", "alarm"), NAMED.values(), ids=NAMED)
def test_who_is_named_and_nobody_else(
    spec: JobSpec, scenario: str, alarm: tuple[str, tuple[int, ...], tuple[str, ...]]
) -> None:
    assert named(judged(spec, scenario)) == {alarm}


def test_alarms_come_before_information_that_costs_more() -> None:
    found = judged(SMALL, "periodic_pause:80@all,every=2", "slow_rank:1.08@5").detection.findings
    assert [one.id for one in found[:2]] == ["slow_rank-5", "periodic_pause"]
    assert found[0].cost_ms_per_step < found[1].cost_ms_per_step
