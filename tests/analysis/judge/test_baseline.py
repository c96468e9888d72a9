"""Two runs laid beside each other: what changed, what is fixed, still there or new."""

import pytest

from benchmarks.detection.simulated_tables import tables, topology
from cluster_analysis.judge.baseline import Comparison, compare, match_findings
from cluster_analysis.sentences.changes import refusals, summary
from cluster_simulate.api import JobSpec, parse_scenario, simulate
from tests.analysis.copies import replace
from tests.analysis.jobs import SMALL, Judged, evidence_of_tables, judged
from tests.analysis.reports import builder


def compared(before: Judged, after: Judged) -> Comparison:
    return compare(before.evidence, before.topology, after.evidence, after.topology)


def certain(comparison: Comparison, what: str) -> set[str]:
    return {one.name for one in comparison.changes if one.what == what and one.is_certain}


def test_two_runs_of_a_healthy_job_are_told_to_be_alike() -> None:
    comparison = compared(judged(SMALL), judged(SMALL, seed=12))
    assert certain(comparison, "rank") == set()
    assert certain(comparison, "link") == set()
    assert comparison.refusals == ()


def test_a_device_that_became_slow_is_the_rank_that_changed() -> None:
    spec = replace(SMALL, microbatches=4)
    comparison = compared(judged(spec), judged(spec, "slow_rank:1.2@5"))
    assert certain(comparison, "rank") == {"rank 5"}
    (change,) = [one for one in comparison.changes if one.name == "rank 5"]
    assert change.change_share == pytest.approx(0.2, abs=0.02)
    assert change.low_share < 0.2 < change.high_share
    assert certain(comparison, "step") == {"step"}
    assert any("Computing of rank 5" in line.en for line in summary(comparison))


def test_a_job_that_computes_more_on_all_ranks_blames_none_of_them() -> None:
    comparison = compared(judged(SMALL), judged(replace(SMALL, forward_ms=SMALL.forward_ms * 1.2)))
    assert certain(comparison, "rank") == set()
    assert "computing" in certain(comparison, "component")


def test_kernels_that_take_longer_are_told_in_ms_of_the_step_and_add_up_to_its_computing() -> None:
    comparison = compared(judged(SMALL), judged(replace(SMALL, forward_ms=SMALL.forward_ms * 1.2)))
    kernels = [one for one in comparison.changes if one.what == "operator"]
    (computing,) = [one for one in comparison.changes if one.name == "computing"]
    more_ms = sum(one.more_ms_per_step or 0.0 for one in kernels)
    assert len(kernels) > 1
    assert more_ms == pytest.approx((computing.after - computing.before) / 1e3, rel=0.1)


def test_a_link_that_became_slow_is_named_in_its_direction() -> None:
    comparison = compared(judged(SMALL), judged(SMALL, "slow_link:2@5-6,dir=one"))
    assert certain(comparison, "link") == {"HCCS 5 to 6"}


def test_jobs_of_other_layouts_are_refused_with_the_reason() -> None:
    comparison = compared(judged(SMALL), judged(replace(SMALL, dp=2)))
    assert any("laid out differently" in why.en for why in refusals(comparison))
    assert certain(comparison, "rank") == set()


# Findings of two runs, matched: fixed, still there, new.
RANK, LINK = builder.degraded().document.findings


def states(before, after):
    return [(one.state, one.finding.id) for one in match_findings(before, after)]


def test_what_is_gone_is_fixed_and_what_was_not_there_is_new():
    assert states([RANK], [LINK]) == [("new", LINK.id), ("fixed", RANK.id)]


def test_the_same_finding_is_still_there_with_both_costs():
    cheaper = replace(RANK, cost_ms_per_step=2.0)
    (one,) = match_findings([RANK], [cheaper])
    assert one.state == "still"
    assert (one.before.cost_ms_per_step, one.after.cost_ms_per_step) == (12.3, 2.0)


def test_a_link_told_from_its_other_end_is_the_same_link():
    assert states([LINK], [replace(LINK, id="slow_link-10-2")]) == [("still", "slow_link-10-2")]


def test_the_same_kind_at_another_rank_is_another_finding():
    other = replace(RANK, id="slow_rank-9", ranks=(9,), hosts=("2",))
    assert states([RANK], [other]) == [("new", "slow_rank-9"), ("fixed", RANK.id)]


def test_what_never_was_an_alarm_is_not_told():
    small = replace(RANK, severity="info")
    assert states([small], [small]) == []
    assert states([small], [RANK]) == [("still", RANK.id)]


def test_no_change_is_certain_whose_band_holds_none() -> None:
    # The means moved less than the medians: free time was told to be 4.6 % less, give or take 6.6 %.
    spec = JobSpec(tp=4, pp=2, dp=4)
    jobs = (
        simulate(spec, seed=1),
        simulate(spec, [parse_scenario("slow_rank:1.1@5,op=cube")], seed=1, run=1),
    )
    before, after = ((evidence_of_tables(tables(job).values(), topology(job)), topology(job)) for job in jobs)
    comparison = compare(*before, *after)
    assert any(one.is_certain for one in comparison.changes)
    assert all(one.low_share * one.high_share > 0 for one in comparison.changes if one.is_certain)
