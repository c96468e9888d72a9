from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow.compute as pc
import pytest

from cluster_analysis.judge.cost.attribution import waits_for
from cluster_analysis.judge.detection import Detection, detect
from cluster_analysis.judge.view import build_view
from cluster_analysis.replay.replay import Graph, Repair
from cluster_analysis.sentences.chains import chain
from cluster_analysis.trace.evidence import StepOperators
from tests.analysis.copies import replace
from tests.analysis.jobs import SMALL, Judged, judged


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
    result = judged(SMALL, "slow_rank:1.4@5")
    assert result.detection.replay["mean_error_share"] < 0.02
    assert "high" in {one.confidence for one in result.alarms}
    off = [step and replace(step, step_us=step.step_us * 1.03) for step in result.evidence.step_operators]
    table = result.evidence.step_table
    idle = pc.add(table["free_us"], pc.multiply(table["computing_us"], 0.05))
    longer = table.set_column(table.schema.get_field_index("free_us"), "free_us", idle)
    evidence = replace(result.evidence, step_table=longer, step_operators=tuple(off))
    found = detect(evidence, result.topology)
    assert found.replay["mean_error_share"] > 0.02
    assert found.replay["error_share"] < 0.05
    assert "replay_off" in {note.kind for note in found.notes}
    costed = [one for one in found.findings if one.cost_ms_per_step is not None]
    assert costed
    assert "high" not in {one.confidence for one in costed}
