"""What is too costly to call a job healthy, and what is the work's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from cluster_analysis.judge.cost.waiting import waits_for
from cluster_analysis.judge.detection import Detection, detect
from cluster_analysis.judge.open_questions import _unexplained
from cluster_analysis.judge.view import build_view
from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.replay.replay import Graph, Repair
from cluster_analysis.thresholds.limits import Thresholds
from cluster_analysis.trace.evidence import StepOperators
from cluster_run.findings import Evidence, Finding
from cluster_run.ids import HostId, Rank
from cluster_simulate.api import Healthy, JobSpec
from cluster_words.findings import chain
from tests.analysis.copies import replace, with_column
from tests.analysis.jobs import SMALL, Judged, judged
from tests.analysis.totals import evidence_of_idle, judged_by_computing, on_hosts, peers_agree


def graph_of(result: Judged) -> Graph:
    graph = build_view(result.evidence, result.topology).graph
    assert graph is not None
    return graph


def test_mates_wait_directly_and_other_replicas_down_the_line() -> None:
    result = judged(SMALL, "slow_rank:1.4@5")
    graph = graph_of(result)
    late = np.array([5])
    instances = np.flatnonzero(graph.rank == 5)
    repair = Repair(instances, graph.gap_us[instances] / 1.4)
    groups = result.topology.groups
    found = waits_for(graph, repair, late, lambda name: groups[name].role)
    direct = {one.group: one for one in found if one.waits_for == "late"}
    assert direct["tp"].n_ranks == 3
    assert direct["tp"].rank in (4, 6, 7)
    assert any(one.waits_for == "held_up" for one in found)
    assert all(one.rank != 5 for one in found)


def test_nothing_changed_means_nobody_waits() -> None:
    graph = graph_of(judged(SMALL))
    assert waits_for(graph, Repair(), np.array([0]), lambda _: "unknown") == ()


def test_the_chain_names_who_waits_and_how_long() -> None:
    (finding,) = judged(SMALL, "slow_rank:1.4@5").alarms
    assert finding.chain[0].waits_for == "late"
    assert finding.chain[0].ms_per_step > 0
    said = chain(finding)[0].en
    assert said.startswith("In its ")
    assert "rank 5" in said
    assert "ms a step" in said
    assert chain(replace(finding, chain=())) == ()


def test_a_device_whose_cost_cannot_be_quoted_is_an_alarm_all_the_same() -> None:
    result = judged(SMALL, "slow_rank:1.4@5")
    off = [
        None if step is None else replace(step, step_us=step.step_us * 1.3)
        for step in result.evidence.step_operators
    ]
    evidence = replace(result.evidence, step_operators=tuple(off))
    found = detect(evidence, result.topology)
    assert found.replay["error_share"] > 0.05
    (finding,) = [one for one in found.findings if one.kind == "slow_rank"]
    assert finding.cost_ms_per_step is None
    assert finding.is_alarm
    assert found.verdict == "degraded"


def shares(result: Judged, steps: Sequence[StepOperators | None]) -> Mapping[str, float]:
    """Figures about the replay of a job with other operators."""
    return detect(replace(result.evidence, step_operators=tuple(steps)), result.topology).replay


def without_partners(result: Judged) -> list[StepOperators]:
    """The operators of a job, none of whose messages is known to have an other end."""
    lone = []
    for step in result.evidence.step_operators:
        assert step is not None
        nobody = np.full_like(step.instance_sender, -1)
        lone.append(replace(step, instance_sender=nobody, instance_receiver=nobody))
    return lone


def test_where_both_ends_of_all_messages_are_known_no_waiting_is_copied() -> None:
    assert judged(SMALL, "slow_rank:1.4@5").detection.replay["copied_waiting_share"] < 0.01


def test_waiting_in_messages_whose_other_end_is_not_known_is_copied() -> None:
    result = judged(SMALL, "slow_rank:1.4@5")
    assert shares(result, without_partners(result))["copied_waiting_share"] > 0.1


def test_gaps_longer_than_all_that_a_rank_did_are_copied_waiting() -> None:
    result = judged(SMALL, "slow_rank:1.4@5")
    wide = [
        step and replace(step, instance_gap_us=step.instance_gap_us * 1.5)
        for step in result.evidence.step_operators
    ]
    assert shares(result, wide)["copied_waiting_share"] > 0.1


def test_where_most_waiting_is_copied_no_cost_is_sure() -> None:
    """A pipeline whose messages are all unpaired: next to nothing of what a slow rank costs is seen."""
    result = judged(replace(SMALL, tp=1, pp=4), "slow_rank:1.4@5")
    assert result.alarms[0].confidence != "low"
    evidence = replace(result.evidence, step_operators=tuple(without_partners(result)))
    found = detect(evidence, result.topology)
    assert found.replay["copied_waiting_share"] > 0.5
    (slow,) = [one for one in found.findings if one.kind == "slow_rank"]
    assert slow.cost_ms_per_step == pytest.approx(0.0, abs=2.0)
    assert slow.confidence == "low"


def with_longer_steps(result: Judged, factors: Sequence[float]) -> Detection:
    """The job judged anew with measured steps so many times as long as its operators make them."""
    off = [
        step and replace(step, step_us=step.step_us * factor)
        for step, factor in zip(result.evidence.step_operators, factors, strict=True)
    ]
    return detect(replace(result.evidence, step_operators=tuple(off)), result.topology)


def test_no_job_is_healthy_where_the_replay_misses_its_steps_by_more_than_5_percent() -> None:
    result = judged(SMALL)
    assert result.detection.verdict == "healthy"
    assert with_longer_steps(result, [1.04] * SMALL.steps).verdict == "healthy"
    for factors in ([1.1] * SMALL.steps, [1.5] + [1.0] * (SMALL.steps - 1)):
        found = with_longer_steps(result, factors)
        assert found.verdict == "unknown"
        assert "replay_far_off" in {note.kind for note in found.notes}


def test_where_single_steps_put_the_mean_off_costs_have_low_confidence() -> None:
    found = with_longer_steps(judged(SMALL, "slow_rank:1.4@5"), [1.5] + [1.0] * (SMALL.steps - 1))
    assert found.replay["error_share"] < 0.02
    assert found.replay["mean_error_share"] > 0.05
    assert {one.confidence for one in found.findings if one.cost_ms_per_step is not None} == {"low"}


def test_no_cost_is_sure_where_the_mean_replayed_step_is_off_by_more_than_2_percent() -> None:
    result = judged(replace(SMALL, microbatches=4), "slow_rank:1.4@5")
    assert result.detection.replay["mean_error_share"] < 0.02
    assert "high" in {one.confidence for one in result.alarms}
    off = [step and replace(step, step_us=step.step_us * 1.03) for step in result.evidence.step_operators]
    table = result.evidence.step_table
    idle = pc.add(table["free_us"], pc.multiply(table["computing_us"], 0.05))
    longer = with_column(table, "free_us", idle.combine_chunks())
    evidence = replace(result.evidence, step_table=longer, step_operators=tuple(off))
    found = detect(evidence, result.topology)
    assert found.replay["mean_error_share"] > 0.02
    assert found.replay["error_share"] < 0.05
    assert "replay_off" in {note.kind for note in found.notes}
    costed = [one for one in found.findings if one.cost_ms_per_step is not None]
    assert costed
    assert "high" not in {one.confidence for one in costed}


N_RANKS, N_STEPS, PAUSE_US = 16, 5, 110e3
UNEVEN = Healthy(sequence_sigma=0.4)


def test_samples_that_differ_among_the_replicas_of_a_host_are_not_the_hosts() -> None:
    found = judged(JobSpec(tp=2, pp=1, dp=16, steps=5, microbatches=1, healthy=UNEVEN), seed=11).detection
    (uneven,) = [one for one in found.findings if one.kind == "data_imbalance"]
    assert uneven.cost_share is not None
    assert uneven.cost_share > 0.05
    assert found.verdict == "healthy"


def test_samples_of_replicas_that_are_a_host_each_may_be_slow_hosts() -> None:
    found = judged(JobSpec(tp=8, pp=1, dp=8, steps=5, microbatches=1, healthy=UNEVEN), seed=11).detection
    assert found.verdict == "unknown"


@pytest.mark.parametrize(("unseen", "verdict"), [(0.0, "healthy"), (0.02, "healthy"), (0.3, "unknown")])
def test_a_job_in_which_ranks_wait_for_what_no_record_shows_is_not_called_healthy(
    unseen: float, verdict: str
) -> None:
    job = judged(seed=5)
    steps = job.evidence.step_table
    waited = unseen * np.asarray(steps["computing_us"])
    for name, more in (("computing_us", -waited), ("communication_not_overlapped_us", waited)):
        steps = with_column(steps, name, np.asarray(steps[name]) + more)
    found = detect(replace(job.evidence, step_table=steps), job.topology)
    assert found.verdict == verdict
    assert ("waiting_copied" in [one.kind for one in found.notes]) == (verdict == "unknown")


def is_told(steps: tuple[int, ...], pause_us: float) -> bool:
    """Whether a job is not called healthy in which a rank idles in these steps, and all wait for it."""
    free: FloatArray = np.full((N_RANKS, N_STEPS), 20e3)
    for one in steps:
        free[3, one] += pause_us
    where = on_hosts(N_RANKS, 4)
    evidence = evidence_of_idle(np.full(free.shape, 380e3), free, np.ones(free.shape), where)
    table, exposed = (
        evidence.step_table,
        np.repeat(free.max(axis=0), N_RANKS).reshape(N_STEPS, N_RANKS).T - free,
    )
    waited = exposed[np.asarray(table["rank"]), np.asarray(table["step"])]
    held_up = with_column(table, "communication_not_overlapped_us", waited)
    found = detect(replace(evidence, step_table=held_up), where)
    asked = [one.kind for one in found.notes if one.kind == "costly_unexplained"]
    return bool(asked) or any(one.is_alarm for one in found.findings)


def test_two_pauses_of_one_rank_that_cost_much_leave_a_question_though_each_is_short() -> None:
    assert is_told((0, 3), PAUSE_US)


def test_short_pauses_that_cost_little_leave_none() -> None:
    assert not is_told((2,), 70e3)


def test_a_single_pause_that_costs_much_leaves_a_question_though_healthy_hosts_pause_too() -> None:
    assert is_told((2,), 160e3)


@pytest.mark.parametrize(("idle_us", "asked"), [(250e3, ["costly_unexplained"]), (25e3, [])])
def test_a_host_that_is_a_stage_and_idles_leaves_a_question_though_nobody_can_tell_its_cost(
    idle_us: float, asked: list[str]
) -> None:
    row = Evidence("free_us", idle_us, 18e3, 5e3, 24)
    found = Finding(
        id="host_bound-host-3", kind="host_bound", severity="info", ranks=tuple(map(Rank, range(16, 24))),
        hosts=(HostId("3"),), links=(), cause="dispatch", pattern="persistent", steps=(), confidence="low",
        cost_ms_per_step=None, cost_share=None, cumulative_saving_ms=None, evidence=(row,), separable=False,
    )  # fmt: skip
    view: Any = SimpleNamespace(mean_step_us=700e3, steps=range(8))
    assert [one.kind for one in _unexplained(view, [found], Thresholds())] == asked


def test_a_host_that_costs_much_and_may_be_slow_is_listed_and_leaves_the_question_open() -> None:
    """Each host has samples of its own; the third one is 13 % behind in most steps, with a chance of 2 %."""
    behind = [
        [-0.05, 0.00, -0.04, 0.00, -0.01],
        [0.04, 0.00, -0.04, 0.04, -0.06],
        [0.16, 0.14, 0.10, 0.00, 0.13],
        [-0.04, -0.02, 0.04, -0.09, 0.01],
    ]
    computing = peers_agree(32, 5, share=0.6) * np.exp(np.repeat(behind, 8, axis=0))
    found = judged_by_computing(computing, on_hosts(32, 8))
    assert [(one.id, one.severity) for one in found.findings] == [("slow_host-3", "info")]
    assert found.verdict == "unknown"
    assert "costly_unexplained" in [one.kind for one in found.notes]


@pytest.mark.parametrize(("n_steps", "asked"), [(3, 10), (8, 16), (12, 24)])
def test_who_cannot_tell_a_fault_from_chance_asks_for_more_steps_than_there_are(
    n_steps: int, asked: int
) -> None:
    found = Finding(
        id="slow_rank-3", kind="slow_rank", severity="info", ranks=(Rank(3),), hosts=(), links=(),
        cause="dispatch", pattern="persistent", steps=(), confidence="low", cost_ms_per_step=60.0,
        cost_share=0.08, cumulative_saving_ms=None, evidence=(),
    )  # fmt: skip
    view: Any = SimpleNamespace(mean_step_us=700e3, steps=range(n_steps))
    (note,) = _unexplained(view, [found], Thresholds())
    assert dict(note.values)["n_steps"] == asked
