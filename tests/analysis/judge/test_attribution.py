from dataclasses import replace

import numpy as np

from cluster_analysis.judge.cost.attribution import blame
from cluster_analysis.judge.detection import detect
from cluster_analysis.judge.view import build_view
from cluster_analysis.replay.replay import Graph, Repair
from cluster_analysis.sentences.chains import chain
from tests.analysis.jobs import SMALL, Judged, judged


def graph_of(result: Judged) -> Graph:
    graph = build_view(result.evidence, result.topology).graph
    assert graph is not None
    return graph


def test_mates_wait_directly_and_other_replicas_down_the_line() -> None:
    result = judged(SMALL, "slow_rank:1.4@5")
    graph = graph_of(result)
    culprit = np.array([5])
    instances = np.flatnonzero(graph.rank == 5)
    repair = Repair(instances, graph.gap_us[instances] / 1.4)
    groups = result.topology.groups
    found = blame(graph, repair, culprit, lambda name: groups[name].role)
    direct = {one.group: one for one in found if one.waits_for == "culprit"}
    assert direct["tp"].n_ranks == 3
    assert direct["tp"].rank in (4, 6, 7)
    assert any(one.waits_for == "held_up" for one in found)
    assert all(one.rank != 5 for one in found)


def test_nothing_changed_means_nobody_is_to_blame() -> None:
    graph = graph_of(judged(SMALL))
    assert blame(graph, Repair(), np.array([0]), lambda _: "unknown") == ()


def test_the_chain_names_who_waits_and_how_long() -> None:
    (finding,) = judged(SMALL, "slow_rank:1.4@5").alarms
    assert finding.chain[0].waits_for == "culprit"
    assert finding.chain[0].ms_per_step > 0
    said = chain(finding)[0].en
    assert said.startswith("In its ")
    assert "rank 5" in said
    assert "ms a step" in said
    assert chain(replace(finding, chain=())) == ()


def test_a_culprit_whose_cost_cannot_be_quoted_is_an_alarm_all_the_same() -> None:
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
