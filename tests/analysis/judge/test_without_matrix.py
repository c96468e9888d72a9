"""Without a communication matrix, groups still show that the network is slow, and about where."""

from __future__ import annotations

import numpy as np
import pytest

from cluster_analysis.judge.case import build_case
from cluster_analysis.judge.detection import Detection, detect
from cluster_analysis.judge.detectors import slow_network
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.findings import Finding
from cluster_simulate.api import JobSpec
from tests.analysis.copies import replace
from tests.analysis.jobs import SMALL, Judged, judged
from tests.analysis.said import notes_of, summary

PAIRS = JobSpec(tp=2, pp=2, dp=4, steps=5, microbatches=4, ranks_per_host=4)


def without_matrix(result: Judged) -> Detection:
    """Judge the job again as if no rank had written a matrix."""
    evidence = replace(result.evidence, links=result.evidence.links.slice(0, 0))
    return detect(evidence, result.topology)


def alarms(detection: Detection) -> list[Finding]:
    return [one for one in detection.findings if one.is_alarm]


@pytest.mark.parametrize(
    ("scenario", "kind", "ranks", "hosts"),
    [
        ("slow_nic:6@5", "slow_nic", (5,), ("1",)),
        ("slow_uplink:4@2", "slow_uplink", (), ("2",)),
    ],
)
def test_what_the_slow_groups_have_in_common_is_named(
    scenario: str, kind: str, ranks: tuple[int, ...], hosts: tuple[str, ...]
) -> None:
    whole = judged(SMALL, scenario)
    (finding,) = alarms(without_matrix(whole))
    assert (finding.kind, tuple(finding.ranks), tuple(finding.hosts)) == (kind, ranks, hosts)
    assert "Without communication_matrix.json the link itself cannot be told" in summary(finding)
    assert finding.confidence == "medium"
    assert finding.cost_ms_per_step == pytest.approx(whole.true_cost_ms, rel=0.1)


def test_two_groups_of_the_same_ranks_are_mended_by_what_each_of_them_loses() -> None:
    whole = judged(replace(PAIRS, ep=4), "slow_nic:6@5")
    evidence = replace(whole.evidence, links=whole.evidence.links.slice(0, 0))
    case = build_case(evidence, whole.topology, Thresholds())
    (found,) = slow_network.detect(case, ())
    graph, left = case.view.graph, found.link_factor
    assert graph is not None
    assert left is not None
    collectives = graph.operator[(graph.rank == 5) & ~graph.is_p2p]
    groups = np.unique(graph.operator_group[collectives]).tolist()
    one, other = sorted({left[graph.operator_group == group].min() for group in groups} - {1.0})
    assert other > 1.1 * one


def test_a_slow_link_of_a_group_of_two_is_that_link() -> None:
    (finding,) = alarms(without_matrix(judged(PAIRS, "slow_link:5@2-3")))
    assert finding.kind == "slow_link"
    assert {(link.src, link.dst) for link in finding.links} == {(2, 3), (3, 2)}


def test_a_slow_link_of_a_larger_group_names_its_members_and_no_link() -> None:
    (finding,) = alarms(without_matrix(judged(SMALL, "slow_link:5@4-5")))
    assert (finding.kind, tuple(finding.ranks), finding.links) == ("slow_link", (4, 5, 6, 7), ())
    assert finding.confidence == "low"


@pytest.mark.parametrize("seed", [11, 12, 13])
@pytest.mark.parametrize("spec", [SMALL, PAIRS, replace(SMALL, pp=4, dp=2)], ids=["small", "pairs", "deep"])
def test_a_healthy_job_has_no_slow_group(spec: JobSpec, seed: int) -> None:
    detection = without_matrix(judged(spec, seed=seed))
    assert alarms(detection) == []
    assert any("links are judged by groups only" in note for note in notes_of(detection))


def test_a_group_that_has_no_like_is_not_judged() -> None:
    detection = without_matrix(judged(JobSpec(tp=1, pp=1, dp=8, steps=5), "slow_link:5"))
    assert not [one for one in detection.findings if one.kind == "slow_link"]
    assert any("where three are alike" in note for note in notes_of(detection))
