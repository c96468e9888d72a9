"""One or two steps: what they show for sure, what they leave open, and what they must not claim."""

from __future__ import annotations

import pytest

from cluster_analysis.judge.measures.links import observe
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.kinds import FAULT_KINDS
from cluster_simulate.api import JobSpec
from tests.analysis.copies import replace
from tests.analysis.jobs import SMALL, judged
from tests.analysis.said import notes_of, summary

#: One stretch of computing in a step, and one collective.
DATA_PARALLEL = JobSpec(tp=1, pp=1, dp=16, microbatches=8)


def test_one_pause_in_a_single_step_is_no_fault() -> None:
    spec = replace(SMALL, steps=1)
    result = judged(spec, "periodic_pause:120@5,every=1")
    assert result.alarms == ()
    assert any("1 step only" in note for note in notes_of(result.detection))


def test_a_single_step_still_shows_a_device_whose_every_gap_is_long() -> None:
    result = judged(replace(SMALL, steps=1), "slow_rank:1.3@5")
    assert [(one.ranks, one.confidence) for one in result.alarms] == [((5,), "medium")]


def test_a_late_start_in_a_single_step_is_not_held_against_anybody() -> None:
    assert judged(replace(SMALL, steps=1), "slow_rank:1.2@5,cause=input").alarms == ()


@pytest.mark.parametrize("steps", [1, 2])
def test_computing_that_takes_half_as_long_again_is_named_even_where_a_step_has_one_stretch_of_it(
    steps: int,
) -> None:
    result = judged(replace(DATA_PARALLEL, steps=steps), "slow_rank:1.5@5")
    assert [(one.ranks, one.confidence) for one in result.alarms] == [((5,), "low")]
    assert "a moment cannot be told from a fault" in summary(result.alarms[0])
    assert result.detection.verdict == "degraded"


def test_one_long_pause_in_two_steps_is_listed_but_no_alarm() -> None:
    result = judged(replace(SMALL, steps=2), "periodic_pause:300@5,every=2")
    listed = [(one.ranks, one.severity, one.confidence) for one in result.of_kind("slow_rank")]
    assert listed == [((5,), "info", "low")]


@pytest.mark.parametrize("scenario", ["periodic_pause:300@5,every=1", "slow_rank:1.2@5,cause=input"])
def test_a_dear_moment_in_the_only_step_leaves_the_verdict_open_and_not_healthy(scenario: str) -> None:
    result = judged(replace(SMALL, steps=1), scenario)
    assert result.alarms == ()
    assert result.detection.verdict == "unknown"
    assert any("slow_rank-5" in note and "profile 10 steps" in note for note in notes_of(result.detection))


@pytest.mark.parametrize("steps", [1, 2])
@pytest.mark.parametrize("seed", [11, 12, 13, 14])
def test_a_healthy_job_of_few_steps_has_no_alarm(steps: int, seed: int) -> None:
    assert judged(replace(SMALL, steps=steps), seed=seed).alarms == ()


def test_few_steps_do_not_fill_the_list_with_bursts() -> None:
    for steps in (1, 2, 3):
        result = judged(replace(SMALL, steps=steps))
        assert len([one for one in result.detection.findings if one.kind in FAULT_KINDS]) <= 1


def test_an_operator_that_is_the_fastest_and_the_slowest_of_its_kind_is_one_observation() -> None:
    result = judged(replace(DATA_PARALLEL, steps=1))
    seen = observe(result.evidence, result.topology, Thresholds())
    assert seen is not None
    rows = list(zip(seen.kind, seen.unit, seen.time_us, strict=True))
    assert len(rows) == len(set(rows))
    assert result.evidence.links.num_rows > 2 * len(rows)
