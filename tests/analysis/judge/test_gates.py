"""What keeps a deviation from being an alarm: the range of the healthy, nature, and the placebo."""

from __future__ import annotations

import numpy as np
import pytest

from cluster_analysis.judge.case import build_case
from cluster_analysis.judge.cost.whatif import Saving
from cluster_analysis.judge.detection import Detection, _without_doubles, detect
from cluster_analysis.judge.detectors.slow_rank import rank_suspects
from cluster_analysis.judge.gates import Context, finding_of
from cluster_analysis.judge.open_questions import open_questions
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import build_view
from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.tables.model import Topology
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.findings import Finding, Severity
from cluster_simulate.api import JobSpec
from tests.analysis.copies import replace
from tests.analysis.jobs import judged
from tests.analysis.totals import STEP_US, evidence_of_computing, judged_by_computing, on_hosts, peers_agree

ONE_HOST = on_hosts(16, 16)
SLOW = 5
#: Ranks that meet many times a step; one is a little slow but no suspect: fixing it saves something.
BARELY_UNEVEN = JobSpec(tp=8, pp=1, dp=2, steps=5, microbatches=2)
BARELY_SLOW = "slow_rank:1.015@0"


def severity_of_rank(found: Detection) -> Severity:
    """Severity of the one finding on the slow rank."""
    (finding,) = [one for one in found.findings if one.kind == "slow_rank" and one.ranks == (SLOW,)]
    return finding.severity


def suspected(computing: FloatArray, where: Topology = ONE_HOST) -> tuple[Suspect, Context]:
    """The one rank that these computing times (ranks, steps) make a suspect, and what decides on it."""
    limits = Thresholds()
    case = build_case(evidence_of_computing(computing, where), where, limits)
    metric = next(one for one in case.local_times if one.is_computing)
    (suspect,) = rank_suspects(case, metric, metric, *np.zeros((2, len(where.ranks)), bool))
    return suspect, Context(case.view, limits, STEP_US, 0.0, 0.0, 0.0, 0.0, False, {})


@pytest.mark.parametrize(
    ("n_ranks", "slower", "share_of_step", "is_alarm"),
    [
        pytest.param(2, 1.25, 0.5, True, id="25 % beside one peer"),
        pytest.param(4, 1.25, 0.5, True, id="25 % beside three"),
        pytest.param(8, 1.03, 0.4, False, id="3 % beside seven that agree"),
        pytest.param(8, 1.06, 0.4, True, id="6 % beside seven that agree"),
    ],
)
def test_what_healthy_devices_scatter_by_is_known_however_few_there_are(
    n_ranks: int, slower: float, share_of_step: float, *, is_alarm: bool
) -> None:
    computing = peers_agree(n_ranks, 6, share=share_of_step)
    computing[1] *= slower
    found = judged_by_computing(computing, on_hosts(n_ranks, n_ranks)).findings
    assert [one.ranks for one in found if one.is_alarm] == ([(1,)] if is_alarm else [])


@pytest.mark.parametrize("n_hosts", [2, 4])
def test_a_host_far_slower_than_hosts_differ_is_an_alarm_beside_a_single_one(n_hosts: int) -> None:
    computing = peers_agree(8 * n_hosts, 6, share=0.5)
    computing[:8] *= 1.25
    found = judged_by_computing(computing, on_hosts(8 * n_hosts, 8)).findings
    assert [(one.kind, one.hosts) for one in found if one.is_alarm] == [("slow_host", ("1",))]


@pytest.mark.parametrize(
    ("slower", "share_of_step", "is_alarm"),
    [
        pytest.param(1.04, 0.2, False, id="4 % slow, 0.8 % of the step: nature"),
        pytest.param(
            1.04, 0.5, True, id="4 % slow, 2 % of the step: far beyond what this job's devices scatter by"
        ),
        pytest.param(1.07, 0.5, True, id="7 % slow, 3 % of the step: far beyond this job's devices"),
        pytest.param(1.07, 0.11, True, id="7 % slow, 0.8 % of the step: hardly one of 16 is"),
        pytest.param(1.07, 0.85, True, id="7 % slow, 6 % of the step: critical"),
        pytest.param(1.09, 0.5, True, id="9 % slow, 4 % of the step: hardly one of 16 is"),
        pytest.param(1.09, 0.2, True, id="9 % slow, 1.8 % of the step: hardly one of 16 is"),
        pytest.param(1.1, 0.08, True, id="10 % slow, 0.8 % of the step: no nature"),
    ],
)
def test_a_device_that_is_a_few_percent_slow_is_an_alarm_only_if_it_is_dear(
    slower: float, share_of_step: float, is_alarm: bool
) -> None:
    computing = peers_agree(16, 6, share=share_of_step)
    computing[SLOW] *= slower
    assert (severity_of_rank(judged_by_computing(computing, ONE_HOST)) != "info") == is_alarm


@pytest.mark.parametrize(("share_of_step", "is_alarm"), [(0.2, False), (0.5, True)])
def test_devices_of_a_host_that_are_a_few_percent_slow_are_an_alarm_only_if_they_are_dear(
    share_of_step: float, is_alarm: bool
) -> None:
    computing = peers_agree(32, 6, share=share_of_step)
    computing[8:16] *= 1.03
    (host,) = (one for one in judged_by_computing(computing, on_hosts(32, 8)).findings if one.hosts)
    assert host.kind == "slow_host"
    assert host.is_alarm == is_alarm


@pytest.mark.parametrize(
    ("n_ranks", "slower", "is_alarm"),
    [
        pytest.param(16, 1.07, True, id="hardly one of 16"),
        pytest.param(128, 1.06, False, id="one of 128"),
        pytest.param(128, 1.09, True, id="hardly one of 128"),
        pytest.param(256, 1.07, False, id="one of 256"),
        pytest.param(256, 1.15, True, id="no nature"),
    ],
)
def test_the_more_ranks_a_job_has_the_slower_its_slowest_healthy_device_may_be(
    n_ranks: int, slower: float, is_alarm: bool
) -> None:
    computing = peers_agree(n_ranks, 6, share=0.08)  # below what is costly
    computing[SLOW] *= slower
    assert (severity_of_rank(judged_by_computing(computing, on_hosts(n_ranks, 8))) != "info") == is_alarm


@pytest.mark.parametrize(("slower", "is_alarm"), [(1.05, False), (1.14, True)])
def test_where_devices_scatter_widely_one_must_lie_far_beyond_them(slower: float, *, is_alarm: bool) -> None:
    computing = peers_agree(64, 6, share=0.3)
    computing *= np.exp(0.025 * np.clip(np.random.default_rng(3).normal(size=64), -2.0, 2.0))[:, None]
    computing[SLOW] = 0.3 * STEP_US * slower
    found = judged_by_computing(computing, on_hosts(64, 64)).findings
    assert bool([one for one in found if one.is_alarm]) == is_alarm


@pytest.mark.parametrize(("times_the_cost", "is_alarm"), [(0.9, True), (1.1, False)])
def test_a_finding_not_clearly_costlier_than_fixing_a_healthy_rank_is_no_alarm(
    times_the_cost: float, is_alarm: bool
) -> None:
    result = judged(BARELY_UNEVEN, BARELY_SLOW, f"slow_rank:1.1@{SLOW},cause=input")
    placebo_ms = result.detection.replay["placebo_ms"]
    cost_ms = result.alarms[0].cost_ms_per_step
    assert placebo_ms > 0.0
    assert cost_ms is not None
    limits = Thresholds(placebo_factor=times_the_cost * cost_ms / placebo_ms)
    assert (severity_of_rank(detect(result.evidence, result.topology, limits)) != "info") == is_alarm


def test_links_are_not_held_against_what_fixing_a_rank_saves() -> None:
    result = judged(BARELY_UNEVEN, BARELY_SLOW, f"slow_nic:6@{SLOW}")
    assert result.detection.replay["placebo_ms"] > 0.0
    found = detect(result.evidence, result.topology, Thresholds(placebo_factor=1e9))
    alarms = [one.id for one in found.findings if one.is_alarm]
    assert alarms == [one.id for one in result.alarms] != []


@pytest.mark.parametrize(
    "where", [on_hosts(16, 10), on_hosts(18, 6)], ids=["one host beside it", "two hosts beside it"]
)
def test_beside_one_or_two_hosts_a_host_is_judged_by_how_their_difference_scatters(where: Topology) -> None:
    n_ranks = len(where.ranks)
    on_the_last = np.array([where.hosts[rank] == where.hosts[where.ranks[-1]] for rank in where.ranks])
    steady, restless = peers_agree(n_ranks, 8), peers_agree(n_ranks, 8)
    steady[on_the_last] *= 1.05
    restless[on_the_last] *= np.exp([0.0, 0.1, 0.05, 0.1, 0.0, 0.1, 0.05, 0.0])  # the same in the middle
    (finding,) = judged_by_computing(steady, where).findings
    assert (finding.kind, finding.hosts) == ("slow_host", (where.hosts[where.ranks[-1]],))
    assert [one for one in judged_by_computing(restless, where).findings if one.kind == "slow_host"] == []


@pytest.mark.parametrize(
    ("last", "is_alarm"),
    [
        pytest.param([0.16, 0.01, 0.14, 0.02, 0.13], False, id="longer samples in most of five steps"),
        pytest.param([0.11, 0.12, 0.10, 0.11, 0.11], True, id="as much slower in each of five steps"),
    ],
)
def test_with_few_hosts_one_must_be_slow_as_steadily_as_a_machine_is(
    last: list[float], is_alarm: bool
) -> None:
    where = on_hosts(32, 8)
    others = [[0.0, 0.01, 0.0, 0.0, 0.0], [-0.01, -0.01, 0.03, -0.01, 0.0], [0.0, -0.03, -0.1, -0.17, -0.04]]
    computing = peers_agree(32, 5) * np.exp(np.repeat([*others, last], 8, axis=0))
    found = judged_by_computing(computing, where).findings
    assert [one.hosts for one in found if one.is_alarm] == ([("4",)] if is_alarm else [])


@pytest.mark.parametrize(("scatter", "is_named"), [(0.002, True), (0.02, False)])
def test_a_host_whose_ranks_scatter_as_much_as_it_is_behind_is_not_named(
    scatter: float, is_named: bool
) -> None:
    where = on_hosts(16, 8)
    computing = peers_agree(16, 6)
    computing *= np.exp(scatter * np.tile([-1.5, -1.0, -0.5, -0.2, 0.2, 0.5, 1.0, 1.5], 2))[:, None]
    computing[8:] *= 1.035
    found = judged_by_computing(computing, where).findings
    assert bool([one for one in found if one.kind == "slow_host"]) == is_named


@pytest.mark.parametrize(
    ("times", "severities"),
    [
        pytest.param(1.3, [], id="as hosts differ"),
        pytest.param(1.7, ["info"], id="nearly twice as much may be how hosts of this job differ"),
        pytest.param(3.0, ["critical"], id="three times as much"),
    ],
)
def test_idle_time_of_one_of_two_hosts_is_an_alarm_only_beyond_what_healthy_hosts_may_differ_by(
    times: float, severities: list[Severity]
) -> None:
    where = on_hosts(16, 8)
    idle = peers_agree(16, 6, share=0.05, scatter=0.1)
    idle[8:] *= times
    found = detect(evidence_of_computing(peers_agree(16, 6, share=0.5), where, idle), where).findings
    assert [one.severity for one in found if one.kind == "slow_host"] == severities


@pytest.mark.parametrize(("others_pause", "is_sure"), [(False, True), (True, False)])
def test_lasting_idle_time_is_less_sure_where_others_are_as_idle_now_and_then(
    others_pause: bool, is_sure: bool
) -> None:
    n_ranks, n_steps = 16, 6
    idle = peers_agree(n_ranks, n_steps, share=0.05, scatter=0.02)
    rank, step = np.indices(idle.shape)
    if others_pause:  # each in one or two of its six steps
        idle[(rank + 2 * step) % 7 < 2] *= 3.0
    idle[SLOW] = 0.05 * STEP_US * np.array([3.0, 3.0, 3.0, 1.0, 3.0, 3.0])
    evidence = evidence_of_computing(peers_agree(n_ranks, n_steps, share=0.5), ONE_HOST, idle)
    limits = Thresholds()
    case = build_case(evidence, ONE_HOST, limits)
    (metric,) = (one for one in case.local_times if one.name == "idle")
    (suspect,) = rank_suspects(case, metric, metric, *np.zeros((2, n_ranks), bool))
    assert suspect.ranks == (SLOW,)
    assert (suspect.p_value <= limits.alarm_p_value) == is_sure


@pytest.mark.parametrize(
    ("slower", "n_stages", "is_alarm"), [(1.12, 1, True), (1.03, 1, False), (1.12, 2, False), (1.25, 2, True)]
)
def test_a_device_that_costs_nothing_by_a_replay_is_an_alarm_where_nothing_excuses_its_lead(
    slower: float, n_stages: int, *, is_alarm: bool
) -> None:
    where = replace(ONE_HOST, stages={rank: int(rank) % n_stages for rank in ONE_HOST.ranks})
    computing = peers_agree(16, 6)
    computing[SLOW] *= slower
    suspect, context = suspected(computing, where)
    finding = finding_of(suspect, Saving(0.0, 0.0, 0.0, bound_us=0.05 * STEP_US), context)
    assert finding.severity == ("warning" if is_alarm else "info")
    assert (finding.cost_ms_per_step, finding.cost_high_ms) == (0.0, 50.0 if is_alarm else 0.0)


@pytest.mark.parametrize(("kind", "saved_ms", "most_ms"), [
    ("retransmission", 0.0, 50.0), ("retransmission", 30.0, 30.0), ("slow_link", 0.0, 0.0),
])  # fmt: skip
def test_calls_that_took_far_longer_and_hold_up_nobody_in_a_replay_may_cost_what_they_took(
    kind: str, saved_ms: float, most_ms: float
) -> None:
    computing = peers_agree(16, 6)
    computing[SLOW] *= 1.12
    suspect, context = suspected(computing)
    event = replace(suspect, kind=kind, cause="bandwidth")
    saving = Saving(1e3 * saved_ms, 1e3 * saved_ms, 1e3 * saved_ms, bound_us=0.05 * STEP_US)
    finding = finding_of(event, saving, context)
    assert (finding.cost_ms_per_step, finding.cost_high_ms) == (saved_ms, most_ms)


@pytest.mark.parametrize(
    ("slow_steps", "pattern", "is_alarm"), [([1, 4, 6], "intermittent", True), ([3], "transient", False)]
)
def test_a_device_that_is_slow_now_and_then_may_cost_its_lead_where_a_replay_shows_none(
    slow_steps: list[int], pattern: str, *, is_alarm: bool
) -> None:
    computing = peers_agree(16, 8)
    computing[SLOW, slow_steps] *= 1.3
    suspect, context = suspected(computing)
    assert suspect.pattern == pattern
    finding = finding_of(suspect, Saving(0.0, 0.0, 0.0, bound_us=0.05 * STEP_US), context)
    assert (finding.is_alarm, finding.cost_high_ms) == (is_alarm, 50.0)


@pytest.mark.parametrize(("cost_share", "is_alarm"), [(0.008, False), (0.012, True)])
def test_a_single_slow_step_of_a_device_is_an_alarm_once_it_costs_a_hundredth(
    cost_share: float, *, is_alarm: bool
) -> None:
    computing = peers_agree(16, 8)
    computing[SLOW, 3] *= 1.3
    suspect, context = suspected(computing)
    assert suspect.pattern == "transient"
    cost_us = cost_share * STEP_US
    saving = Saving(cost_us, cost_us, cost_us, bound_us=3.0 * cost_us)
    assert finding_of(suspect, saving, context).is_alarm == is_alarm


@pytest.mark.parametrize(
    ("times_alone", "confidence"),
    [(1.4, "high"), (1.6, "medium")],
    ids=["nearly as much alone", "half as much again"],
)
def test_a_cost_that_is_far_higher_once_others_are_repaired_is_less_sure(
    times_alone: float, confidence: str
) -> None:
    computing = peers_agree(16, 6)
    computing[SLOW] *= 1.12
    suspect, context = suspected(computing)
    alone = 0.03 * STEP_US
    saving = Saving(alone, alone, times_alone * alone, bound_us=alone)
    assert finding_of(replace(suspect, confidence="high"), saving, context).confidence == confidence


@pytest.mark.parametrize(
    ("is_alarm", "separable", "high_ms"),
    [(True, True, 60.0), (False, True, 30.0), (False, False, 60.0)],
    ids=["an alarm", "information", "a host without peers"],
)
def test_a_late_host_may_cost_all_that_it_idles_longer_if_it_is_named_or_nothing_else_bounds_it(
    *, is_alarm: bool, separable: bool, high_ms: float
) -> None:
    computing = peers_agree(16, 6)
    computing[SLOW] *= 1.12
    suspect, context = suspected(computing)
    suspect = replace(suspect, is_alarm=is_alarm, separable=separable)
    cost_us = 0.03 * STEP_US
    finding = finding_of(suspect, Saving(cost_us, cost_us, most_us=0.06 * STEP_US), context)
    assert (finding.cost_low_ms, finding.cost_high_ms) == (30.0, high_ms)


@pytest.mark.parametrize(("high_ms", "is_open"), [(14.0, False), (16.0, True)])
def test_a_job_is_not_healthy_where_what_a_fault_costs_may_be_far_more_than_it_seems(
    high_ms: float, is_open: bool
) -> None:
    evidence = evidence_of_computing(peers_agree(16, 6), ONE_HOST)
    found = judged_by_computing(_one_a_little_slow(), ONE_HOST).findings[0]
    finding = replace(found, severity="info", cost_ms_per_step=10.0, cost_low_ms=10.0, cost_high_ms=high_ms)
    asked = open_questions(build_view(evidence, ONE_HOST), evidence, [finding], Thresholds())
    assert ("costly_unexplained" in [one.kind for one in asked]) == is_open


def _one_a_little_slow() -> FloatArray:
    computing = peers_agree(16, 6, share=0.2)
    computing[SLOW] *= 1.04
    return computing


@pytest.mark.parametrize(("other_share", "confidence"), [(0.02, "low"), (0.001, "high")])
def test_a_cost_of_two_ways_to_be_late_is_as_sure_as_the_less_sure_one_that_matters(
    other_share: float, confidence: str
) -> None:
    first = replace(_one_finding(), cost_ms_per_step=40.0, cost_share=0.04, confidence="high")
    other = replace(first, cost_ms_per_step=1e3 * other_share, cost_share=other_share, confidence="low")
    (both,) = _without_doubles([other, first])
    assert (both.cost_share, both.confidence) == (0.04, confidence)


def _one_finding() -> Finding:
    return judged_by_computing(_one_a_little_slow(), ONE_HOST).findings[0]
