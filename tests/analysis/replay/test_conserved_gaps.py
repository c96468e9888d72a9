"""Gaps that hold waiting do not hide costs; a lost record leaves it known where a host is slow."""

from __future__ import annotations

import numpy as np
import pytest

from cluster_analysis.judge.measures.rhythm import rhythm_of
from cluster_analysis.judge.view import build_view
from cluster_analysis.replay.role_gaps import RoleGaps
from cluster_simulate.api import Healthy, JobSpec, truth
from tests.analysis.copies import replace
from tests.analysis.jobs import SMALL, judged


@pytest.mark.parametrize("seed", [4, 5])
def test_late_start_is_dear_though_its_data_group_waits_for_it_on_another_stream(seed: int) -> None:
    spec = replace(SMALL, microbatches=8, dp_mode="zero3")
    case = judged(spec, "slow_rank:1.1,cause=input", seed=seed)
    assert [one.kind for one in case.alarms] == ["slow_rank"]
    cost = case.alarms[0].cost_ms_per_step
    assert cost == pytest.approx(case.true_cost_ms, rel=0.2)


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_late_rank_is_dear_where_computing_begins_with_weights_that_others_gather(seed: int) -> None:
    spec = JobSpec(tp=2, pp=2, dp=4, ranks_per_host=4, steps=5, dp_mode="zero3")
    case = judged(spec, "slow_rank:1.1@5,cause=input", seed=seed)
    (alarm,) = case.alarms
    assert (alarm.kind, alarm.ranks, alarm.cause) == ("slow_rank", (5,), "input")
    assert alarm.cost_ms_per_step == pytest.approx(case.true_cost_ms, rel=0.1)


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_late_host_is_dear_where_its_first_operator_gathers_weights_on_another_stream(seed: int) -> None:
    spec = replace(SMALL, cp=2, dp_mode="zero3")
    case = judged(spec, "slow_host:1.05@2,cause=input", seed=seed)
    (alarm,) = case.alarms
    assert (alarm.kind, alarm.hosts) == ("slow_host", ("2",))
    assert alarm.cost_ms_per_step == pytest.approx(case.true_cost_ms, rel=0.1)


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_idle_host_has_a_cost_though_communication_on_another_stream_hides_half_of_it(seed: int) -> None:
    case = judged(replace(SMALL, dp=8, dp_mode="zero3"), "slow_host:1.15@2", seed=seed)
    (alarm,) = case.alarms
    assert (alarm.kind, alarm.hosts) == ("slow_host", ("2",))
    assert alarm.cost_ms_per_step is not None
    assert 0.4 * case.true_cost_ms < alarm.cost_ms_per_step < 1.1 * case.true_cost_ms


@pytest.mark.parametrize("seed", [4, 5])
def test_pause_is_dear_though_no_two_calls_show_that_parameters_move_on_another_stream(seed: int) -> None:
    spec = replace(
        SMALL, tp=8, pp=1, dp=4, microbatches=8, dp_mode="zero3", healthy=Healthy(inner_halves=True)
    )
    case = judged(spec, "periodic_pause:200,every=2", seed=seed)
    assert [one.kind for one in case.alarms] == ["periodic_pause"]
    assert case.alarms[0].cost_ms_per_step == pytest.approx(case.true_cost_ms, rel=0.2)


@pytest.mark.parametrize("seed", [2, 3, 4, 5, 6, 7])
def test_pause_is_dear_though_all_other_replicas_wait_for_it_where_no_call_shows_it(seed: int) -> None:
    spec = replace(
        SMALL, tp=8, pp=1, dp=4, microbatches=8, dp_mode="zero3", healthy=Healthy(sequence_sigma=0.2)
    )
    case = judged(spec, "periodic_pause:200,every=2", seed=seed)
    assert [one.kind for one in case.alarms] == ["periodic_pause"]
    assert case.alarms[0].cost_ms_per_step == pytest.approx(case.true_cost_ms, rel=0.25)


@pytest.mark.parametrize("seed", [3, 4])
def test_lost_record_of_another_rank_does_not_hide_what_a_slow_rank_costs(seed: int) -> None:
    spec = replace(SMALL, microbatches=8, dp_mode="overlap", healthy=Healthy(missing_records=0.01))
    case = judged(spec, "slow_rank:1.4,pattern=intermittent,duty=0.4", seed=seed)
    (finding,) = case.of_kind("slow_rank")
    assert finding.cost_ms_per_step == pytest.approx(case.true_cost_ms, rel=0.1)


def test_one_step_without_all_calls_leaves_it_known_where_a_host_is_slow() -> None:
    case = judged(SMALL, "slow_host:1.2,cause=compute", seed=3)
    view = build_view(case.evidence, case.topology)
    assert view.graph is not None
    assert view.gaps is not None
    (slow_host,) = case.of_kind("slow_host")
    host = slow_host.hosts[0]
    own = np.flatnonzero(view.host == view.hosts.index(host))
    peers = np.flatnonzero((view.role == view.role[own[0]]) & (view.host != view.host[own[0]]))
    is_side = view.graph.is_side.copy()
    lost = np.flatnonzero((view.graph.rank == own[0]) & ~is_side)[5]
    is_side[lost] = True  # the main stream lacks it, as if its record were lost
    lossy = RoleGaps(view.ranks, replace(view.graph, is_side=is_side))
    (complete, _), (lost, _) = view.gaps.excess_over_peers(own, peers), lossy.excess_over_peers(own, peers)
    assert complete is not None
    assert lost is not None
    assert np.nansum(lost) == pytest.approx(np.nansum(complete), rel=0.05)


def test_two_pauses_at_both_ends_of_the_profile_are_no_rhythm() -> None:
    assert rhythm_of(np.isin(np.arange(5), [1, 3])) == 2
    assert rhythm_of(np.isin(np.arange(12), [0, 6])) == 6
    assert rhythm_of(np.isin(np.arange(12), [0, 11])) == 0


@pytest.mark.parametrize("seed", [2, 5])
def test_message_sent_again_is_found_and_dear_though_sends_wait_for_their_receivers(seed: int) -> None:
    spec = replace(SMALL, tp=2, pp=4, dp=2, microbatches=8, p2p="rendezvous")
    case = judged(spec, "retransmission:4000", seed=seed)
    (finding,) = case.alarms
    assert finding.kind == "retransmission"
    assert {finding.links[0].src, finding.links[0].dst} == set(truth(case.job).faults[0].links[0])
    assert finding.cost_ms_per_step == pytest.approx(case.true_cost_ms, rel=0.05)
