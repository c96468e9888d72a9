from typing import Literal

import numpy as np
import pytest

from cluster_analysis.judge.cost.whatif import WhatIf
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import build_view
from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.replay.graph import build_graph
from cluster_analysis.replay.message_times import is_eager
from cluster_analysis.replay.replay import Repair
from cluster_analysis.thresholds.calls import HELD_UP_FACTOR
from cluster_analysis.trace.reduction import reduce_step
from cluster_run.findings import gains_ms
from cluster_run.ids import Step
from cluster_simulate.api import Healthy, JobSpec, Noise
from tests.analysis.copies import replace
from tests.analysis.jobs import NO_LINKS, SMALL, Call, collectives_table, judged, small_topology, steps_table
from tests.analysis.said import notes_of


def two_ranks(gap_us: float) -> FloatArray:
    """Step time of two ranks and two collectives when rank 1's second gap is changed to `gap_us`."""
    calls = [
        Call(0, "allreduce", 100.0, 60.0, number=0),
        Call(1, "allreduce", 150.0, 10.0, number=0),
        Call(0, "allreduce", 260.0, 110.0, number=1),
        Call(1, "allreduce", 360.0, 10.0, number=1),
    ]
    evidence = reduce_step(
        Step(1), steps_table({0: 370.0, 1: 370.0}), collectives_table(calls), NO_LINKS,
        small_topology({"g": (0, 1)}),
    )  # fmt: skip
    assert evidence.operators is not None
    graph = build_graph([evidence.operators])
    assert graph is not None
    changed = np.flatnonzero(np.isclose(graph.gap_us, 200.0))
    times: FloatArray = graph.replay([Repair(changed, np.full(len(changed), gap_us))])[0]
    return times


def test_the_unchanged_replay_gives_the_measured_step() -> None:
    assert two_ranks(200.0).tolist() == pytest.approx([370.0])


def test_who_leaves_an_operator_later_is_later_with_what_follows() -> None:
    """Rank 1 leaves the first operator 20 µs behind rank 0, which is the last at the second."""
    calls = [
        Call(0, "allreduce", 100.0, 60.0, number=0),
        Call(1, "allreduce", 150.0, 30.0, number=0),
        Call(0, "allreduce", 260.0, 10.0, number=1),
        Call(1, "allreduce", 240.0, 30.0, number=1),
        Call(0, "allreduce", 320.0, 30.0, number=2),
        Call(1, "allreduce", 320.0, 10.0, number=2),
        Call(0, "allreduce", 380.0, 10.0, number=3),
        Call(1, "allreduce", 370.0, 20.0, number=3),
    ]
    evidence = reduce_step(
        Step(1), steps_table({0: 390.0, 1: 390.0}), collectives_table(calls), NO_LINKS,
        small_topology({"g": (0, 1)}),
    )  # fmt: skip
    assert evidence.operators is not None
    assert evidence.operators.left_late_us == pytest.approx([20.0, 20.0])
    graph = build_graph([evidence.operators])
    assert graph is not None
    assert graph.replay([Repair()])[0].tolist() == pytest.approx([390.0])
    assert graph.main_gaps_us[:, 0] == pytest.approx([280.0, 300.0])  # that is no work of theirs


def test_a_shorter_gap_saves_until_another_rank_is_the_last() -> None:
    assert two_ranks(150.0).tolist() == pytest.approx([320.0])
    assert two_ranks(0.0).tolist() == pytest.approx([270.0])


KINDS = {
    "plain": SMALL,
    "rendezvous": replace(SMALL, p2p="rendezvous"),
    "pp4": replace(SMALL, pp=4, microbatches=4),
    "interleaved": replace(SMALL, pp=4, vpp=2, microbatches=4),
    "overlap": replace(SMALL, dp_mode="overlap"),
    "zero3": replace(SMALL, dp_mode="zero3"),
    "cp": replace(SMALL, cp=2, dp=2),
    "experts": replace(SMALL, ep=4),
    "dp": JobSpec(tp=1, pp=1, dp=16, steps=5, microbatches=2),
    "tp": JobSpec(tp=8, pp=1, dp=1, steps=5, microbatches=2),
    "clocks": replace(SMALL, healthy=Healthy(clock_sigma_ms=50.0, drift_ppm=20.0)),
    "idle": replace(SMALL, wait_fields="idle"),
}


@pytest.mark.many
@pytest.mark.parametrize("spec", KINDS.values(), ids=KINDS)
def test_every_kind_of_job_replays_within_one_percent(spec: JobSpec) -> None:
    result = judged(spec)
    assert result.detection.replay["error_share"] < 0.01
    assert not [note for note in notes_of(result.detection) if "paired" in note]


@pytest.mark.slow
@pytest.mark.parametrize("dp_mode", ["flat", "overlap"])
def test_lost_messages_of_sends_that_wait_end_when_their_other_ends_do(
    dp_mode: Literal["flat", "overlap"],
) -> None:
    spec = JobSpec(
        tp=4, pp=4, dp=4, steps=5, microbatches=8, dp_mode=dp_mode, p2p="rendezvous",
        healthy=Healthy(missing_records=0.01),
    )  # fmt: skip
    assert judged(spec, seed=32).detection.replay["error_share"] < 0.005


def test_lost_records_are_filled_in_before_the_replay() -> None:
    result = judged(replace(SMALL, microbatches=4, healthy=Healthy(missing_records=0.01)), "slow_rank:1.25@5")
    assert result.detection.replay["error_share"] < 0.01
    assert result.alarms[0].cost_ms_per_step == pytest.approx(result.true_cost_ms, rel=0.1)


@pytest.mark.many
@pytest.mark.parametrize(
    "scenario",
    [
        "slow_rank:1.25@5",
        "slow_rank:1.1@5,cause=dispatch",
        "slow_host:1.05@2",
        "slow_nic:6@5",
        "slow_host_pair:4@1-2",
        "slow_rank:1.3@9,op=vector",
    ],
)
def test_costs_are_those_of_simulating_the_job_again_without_the_fault(scenario: str) -> None:
    result = judged(SMALL, scenario)
    step_ms = result.job.step_ms
    assert result.alarms, result.detection.findings
    cost = result.alarms[0].cost_ms_per_step
    assert cost is not None
    assert abs(cost - result.true_cost_ms) / step_ms < 0.005


def test_repairing_a_healthy_rank_saves_nothing_worth_telling() -> None:
    result = judged(SMALL)
    assert result.detection.replay["placebo_ms"] < 0.002 * (result.detection.step_ms or 0.0)


def test_faults_that_hide_each_other_are_ranked_by_what_is_saved_together() -> None:
    result = judged(SMALL, "slow_rank:1.3@5", "slow_rank:1.25@14")
    both = [one for one in result.detection.findings if one.kind == "slow_rank"]
    assert {one.ranks[0] for one in both} >= {5, 14}
    savings = [one.cumulative_saving_ms for one in both if one.ranks[0] in (5, 14)]
    true = result.job.step_ms - judged(SMALL).job.step_ms
    assert max(saving or 0.0 for saving in savings) == pytest.approx(true, rel=0.15)


def test_faults_that_more_than_four_hide_count_to_what_is_lost_in_all() -> None:
    slow = [f"slow_rank:1.{25 + n}@{rank}" for n, rank in enumerate((1, 5, 9, 10, 14, 15))]
    result = judged(SMALL, *slow)
    assert len(result.alarms) == len(slow)
    savings = [one.cumulative_saving_ms or 0.0 for one in result.alarms]
    assert max(savings) == pytest.approx(result.job.step_ms - judged(SMALL).job.step_ms, rel=0.1)


def test_what_findings_add_to_each_other_is_all_that_they_save_together() -> None:
    result = judged(SMALL, "slow_rank:1.3@5", "slow_rank:1.25@14", "slow_nic:6@9")
    savings = [saved for one in result.detection.findings if (saved := one.cumulative_saving_ms) is not None]
    assert len(savings) >= 3
    gains = [gain_ms for _, gain_ms in gains_ms(result.detection.findings)]
    assert sum(gains) == pytest.approx(max(savings))
    parts = {one.part: one.ms for one in result.detection.lost if one.part != "other"}
    assert sum(parts.values()) == pytest.approx(max(savings), rel=0.01)


def test_no_milliseconds_are_quoted_when_the_replay_is_off() -> None:
    result = judged(SMALL, "slow_rank:1.25@5")
    view = build_view(result.evidence, result.topology)
    assert view.graph is not None
    wrong = replace(view, graph=replace(view.graph, measured_us=view.graph.measured_us * 1.2))
    what_if = WhatIf(wrong)
    assert what_if.replay is not None
    assert what_if.replay.error_share > 0.05
    assert what_if.savings([], refuse_above=0.05) == []


def test_the_second_family_of_noise_replays_too() -> None:
    result = judged(replace(SMALL, noise=Noise(family="ar1")))
    assert result.detection.replay["error_share"] < 0.05


def test_sends_wait_when_the_long_ones_meet_a_late_receiver_however_short_their_wait() -> None:
    transfer = np.full(40, 400.0)
    late = np.arange(40) % 3 == 0
    assert not is_eager(transfer + 350.0 * late, transfer + 900.0 * ~late)


def test_sends_in_a_busy_network_do_not_wait_for_their_receivers() -> None:
    transfer = np.full(40, 400.0)
    busy = np.arange(40) % 10 == 0
    assert is_eager(np.where(busy, 700.0, transfer), np.where(busy, 1900.0, 1200.0))
    assert is_eager(np.where(busy, 700.0, transfer), np.full(40, 5.0))


def test_receivers_that_send_themselves_do_not_tell_a_busy_network_from_sends_that_wait() -> None:
    transfer = np.full(40, 400.0)
    busy = np.arange(40) % 10 == 0
    assert is_eager(np.where(busy, 700.0, transfer), transfer, HELD_UP_FACTOR)
    assert not is_eager(np.where(busy, 9_000.0, transfer), transfer, HELD_UP_FACTOR)


def test_a_rank_that_never_waits_costs_what_it_does_though_all_compute_beside_their_calls() -> None:
    spec = JobSpec(tp=1, pp=1, dp=32, steps=12, dp_mode="zero3", healthy=Healthy(silicon_sigma=0.006))
    case = judged(spec, "slow_rank:1.4@24,pattern=intermittent,duty=0.4", seed=9005)
    (finding,) = case.alarms
    assert (finding.ranks, finding.pattern) == ((24,), "intermittent")
    assert finding.cost_ms_per_step == pytest.approx(case.true_cost_ms, rel=0.05)


def test_a_quick_network_makes_no_step_shorter_than_the_computing_of_its_ranks() -> None:
    """Where a replay holds computing beside transfers to be none, it would save all of them."""
    result = judged(SMALL)
    view = build_view(result.evidence, result.topology)
    assert view.graph is not None
    step_us = np.nanmax(view.step_us, axis=0)
    busy = replace(view, computing_us=view.computing_us + (0.97 * step_us - np.nanmax(view.local_us, axis=0)))
    left = np.full(len(view.graph.transfer_us), 0.01)
    network = Suspect("slow_uplink-1", "slow_uplink", (), cause="bandwidth", link_factor=left)
    usual, hidden = (
        WhatIf(one).savings([network], refuse_above=0.05)[0].alone_us or 0.0 for one in (view, busy)
    )
    assert usual > 0.06 * step_us.mean()
    assert hidden <= 0.05 * step_us.mean()
