"""Without a communication matrix, groups and what members sent show that the network is slow, and where."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.detection.simulated_tables import tables
from cluster_analysis.judge.case import build_case
from cluster_analysis.judge.detection import Detection, detect
from cluster_analysis.judge.detectors import slow_network
from cluster_analysis.judge.measures.operators import ring_of
from cluster_analysis.replay.job_evidence import JobEvidence
from cluster_analysis.thresholds.limits import Thresholds
from cluster_analysis.trace.links import sent_by_ranks
from cluster_run.findings import Finding
from cluster_run.ids import HostId, Rank
from cluster_simulate.api import JobSpec
from tests.analysis.copies import replace
from tests.analysis.jobs import SMALL, Judged, judged
from tests.analysis.said import notes_of, summary

ONE_GROUP = JobSpec(tp=1, pp=1, dp=32, steps=5, microbatches=2)
ONE_HOST = JobSpec(tp=1, pp=1, dp=8, steps=5, microbatches=2)
PAIRS = JobSpec(tp=2, pp=2, dp=4, steps=5, microbatches=2, ranks_per_host=4)


def without_links(result: Judged) -> JobEvidence:
    """What is read of the job if no file tells of links: neither of single ones nor of those of a rank."""
    return replace(result.evidence, links=result.evidence.links.slice(0, 0))


def without_matrix(result: Judged) -> Detection:
    """Judge the job again as if no rank had written a matrix."""
    evidence = without_links(result)
    calls = pa.concat_tables([one.collectives for one in tables(result.job).values()]).unify_dictionaries()
    return detect(replace(evidence, sent=sent_by_ranks(calls, evidence.links)), result.topology)


def alarms(detection: Detection) -> list[Finding]:
    return [one for one in detection.findings if one.is_alarm]


@pytest.mark.parametrize(
    ("scenario", "kind", "ranks", "hosts"),
    [("slow_nic:6@5", "slow_nic", (5,), ("1",)), ("slow_uplink:4@2", "slow_uplink", (), ("2",))],
)
def test_what_the_slow_groups_have_in_common_is_named(
    scenario: str, kind: str, ranks: tuple[int, ...], hosts: tuple[str, ...]
) -> None:
    whole = judged(SMALL, scenario)
    (finding,) = alarms(without_matrix(whole))
    assert (finding.kind, tuple(finding.ranks), tuple(finding.hosts)) == (kind, ranks, hosts)
    assert "not certain which link it is" in summary(finding)
    assert finding.confidence == "medium"
    assert finding.cost_ms_per_step == pytest.approx(whole.true_cost_ms, rel=0.1)


def test_two_groups_of_the_same_ranks_are_mended_by_what_each_of_them_loses() -> None:
    whole = judged(replace(PAIRS, ep=4), "slow_nic:6@5")
    case = build_case(without_links(whole), whole.topology, Thresholds())
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


def test_a_slow_link_of_a_larger_group_is_between_the_two_members_that_sent_slowly() -> None:
    (finding,) = alarms(without_matrix(judged(SMALL, "slow_link:5@4-5")))
    assert {(link.src, link.dst) for link in finding.links} == {(4, 5), (5, 4)}
    assert not finding.separable


def test_where_no_file_tells_what_members_sent_a_slow_link_is_told_by_its_group() -> None:
    whole = judged(SMALL, "slow_link:5@4-5")
    (finding,) = alarms(detect(without_links(whole), whole.topology))
    assert (finding.kind, tuple(finding.ranks), finding.links) == ("slow_link", (4, 5, 6, 7), ())
    assert finding.confidence == "low"


@pytest.mark.parametrize("spec", [SMALL, PAIRS, replace(SMALL, pp=4, dp=2)], ids=["small", "pairs", "deep"])
def test_a_healthy_job_has_no_slow_group(spec: JobSpec) -> None:
    detection = without_matrix(judged(spec))
    assert alarms(detection) == []
    assert any("links are judged by groups, and by" in note for note in notes_of(detection))


def test_a_card_of_the_only_group_is_told_by_what_its_members_sent() -> None:
    whole = judged(ONE_GROUP, "slow_nic:6@15")
    (finding,) = alarms(without_matrix(whole))
    assert 15 in finding.ranks
    assert not finding.separable
    assert finding.cost_ms_per_step == pytest.approx(whole.true_cost_ms, rel=0.1)


def test_an_uplink_that_slows_all_groups_alike_is_told_by_what_their_members_sent() -> None:
    whole = judged(JobSpec(tp=8, pp=1, dp=4, steps=5, microbatches=2), "slow_uplink:4@2")
    (finding,) = alarms(without_matrix(whole))
    assert (finding.kind, tuple(finding.hosts)) == ("slow_uplink", ("2",))
    assert finding.cost_ms_per_step == pytest.approx(whole.true_cost_ms, rel=0.1)


@pytest.mark.parametrize("spec", [ONE_GROUP, ONE_HOST], ids=["hosts", "one host"])
def test_a_healthy_job_of_one_group_stays_healthy(spec: JobSpec) -> None:
    assert without_matrix(judged(spec)).verdict == "healthy"


def test_a_link_inside_the_only_host_of_which_only_sums_tell_leaves_the_question_open() -> None:
    detection = without_matrix(judged(ONE_HOST, "slow_link:5@2-5"))
    assert detection.verdict == "unknown"
    assert any("with nothing to compare them with" in note for note in notes_of(detection))


def test_a_group_that_nothing_is_held_against_may_be_slow_and_is_not_called_healthy() -> None:
    whole = judged(ONE_GROUP, "slow_nic:6@15")
    detection = detect(without_links(whole), whole.topology)
    assert not [one for one in detection.findings if one.kind.startswith("slow_")]
    assert detection.verdict == "unknown"
    assert any("with nothing to compare them with" in note for note in notes_of(detection))


@pytest.mark.parametrize(
    ("sender_of_each_host", "receivers"), [((3, 7), (4, 0)), ((0, 1, 2, 3), (4, 5, 6, 7))]
)
def test_senders_are_joined_in_a_ring_or_in_one_for_each_place_of_a_host(
    sender_of_each_host: tuple[int, ...], receivers: tuple[int, ...]
) -> None:
    hosts = {Rank(rank): HostId(str(rank // 4)) for rank in range(8)}
    ring = ring_of(sender_of_each_host, tuple(range(8)), hosts, is_remote=True)
    assert tuple(ring[one] for one in sender_of_each_host) == receivers
