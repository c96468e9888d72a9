"""Time that went into waiting for ranks without files: said, and never called healthy."""

from __future__ import annotations

import pytest

from cluster_analysis.judge.open_questions import open_questions, waits_for_absent
from cluster_analysis.judge.view import build_view
from cluster_analysis.sentences.notes import note
from cluster_analysis.thresholds.limits import Thresholds
from cluster_simulate.api import Healthy, JobSpec
from tests.analysis.jobs import judged

SPEC = JobSpec(tp=8, pp=1, dp=4, steps=5, microbatches=4, healthy=Healthy(missing_ranks=(15,)))


def test_a_long_wait_for_a_rank_without_files_is_an_open_question_if_nothing_explains_it() -> None:
    result = judged(SPEC, "retransmission:4000@13-8")
    view = build_view(result.evidence, result.topology)
    (question,) = open_questions(view, result.evidence, (), Thresholds())
    assert question.kind == "waits_for_absent"
    assert question["ranks"] == (15,)
    said = note(question).en
    assert "waiting for ranks without files, or for the network" in said
    assert said.endswith("for rank 15; collect them too")
    assert open_questions(view, result.evidence, result.alarms, Thresholds()) == []


def test_what_a_group_waited_for_its_absent_member_is_as_long_as_the_delay() -> None:
    result = judged(SPEC, "retransmission:4000@13-8")
    view = build_view(result.evidence, result.topology)
    (wait,) = waits_for_absent(result.evidence.matched, view, 0.0)
    assert wait["ranks"] == (15,)
    assert wait["wait_us"] == pytest.approx(4.05e6, abs=0.15e6)
    assert wait["step_share"] == pytest.approx(0.85e6 / view.mean_step_us, rel=0.18)


def test_a_healthy_job_that_lacks_a_rank_is_healthy() -> None:
    assert judged(SPEC).detection.verdict == "healthy"


def test_a_job_that_lacks_nobody_waited_for_nobody_absent() -> None:
    result = judged(JobSpec(tp=8, pp=1, dp=4, steps=5, microbatches=4), "slow_rank:1.5@3")
    view = build_view(result.evidence, result.topology)
    assert waits_for_absent(result.evidence.matched, view, 0.0) == []
