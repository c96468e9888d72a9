"""What is quoted at 5 % of the step is in the headline, or the job is not `healthy`: whatever its kind."""

from __future__ import annotations

import pytest

from cluster_analysis.judge.open_questions import open_questions
from cluster_analysis.judge.view import build_view
from cluster_analysis.sentences.amounts import format_ms
from cluster_analysis.sentences.results import verdicts
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.findings import Finding
from cluster_run.kinds import KINDS
from cluster_simulate.api import JobSpec
from tests.analysis.copies import replace
from tests.analysis.jobs import SMALL, judged
from tests.analysis.reports import builder

QUOTED = sorted(name for name, record in KINDS.items() if record.is_repairable)


def of_kind(kind: str, *, step_ms: float) -> Finding:
    cost_ms = 0.06 * step_ms
    first = builder.degraded().document.findings[0]
    return replace(
        first, id=f"{kind}-3", kind=kind, severity="info", confidence="high", cost_ms_per_step=cost_ms,
        cost_share=0.06, cumulative_saving_ms=cost_ms, cost_low_ms=cost_ms, cost_high_ms=cost_ms, facts=(),
    )  # fmt: skip


def is_asked(finding: Finding, *, cost_share: float = 0.06) -> bool:
    """Whether the judge asks of a healthy job, with one such finding."""
    job = judged(SMALL)
    view = build_view(job.evidence, job.topology)
    cost_ms = cost_share * view.mean_step_us / 1e3
    quoted = replace(finding, cost_ms_per_step=cost_ms, cost_low_ms=cost_ms, cost_high_ms=cost_ms)
    asked = open_questions(view, job.evidence, [quoted], Thresholds())
    return "costly_unexplained" in {one.kind for one in asked}


@pytest.mark.parametrize("kind", QUOTED)
def test_a_loss_of_5_percent_is_in_the_headline_or_leaves_a_question(kind: str) -> None:
    document = builder.healthy().document
    step_ms = document.run.step_ms
    assert step_ms is not None
    finding = of_kind(kind, step_ms=step_ms)
    told = verdicts.headline(replace(document, findings=(finding,)))
    amount = format_ms(0.06 * step_ms)
    assert is_asked(finding) or (amount in told.en and amount in told.zh)


@pytest.mark.parametrize("kind", sorted(name for name, record in KINDS.items() if record.may_be_fault))
def test_what_may_be_a_fault_and_costs_5_percent_leaves_a_question(kind: str) -> None:
    finding = of_kind(kind, step_ms=300.0)
    assert is_asked(finding)
    assert is_asked(finding, cost_share=0.045)  # a cost may be off by 1 % of the step
    assert not is_asked(finding, cost_share=0.03)


@pytest.mark.parametrize(("longer_share", "is_open"), [(0.4, True), (0.05, False)])
def test_uneven_samples_leave_a_question_where_one_rank_makes_them(
    longer_share: float, *, is_open: bool
) -> None:
    """It holds a replica by itself, so that no rank with the same samples shows that it is slow."""
    job = judged(JobSpec(tp=1, pp=1, dp=8, ranks_per_host=4, steps=5, microbatches=4))
    view = build_view(job.evidence, job.topology)
    computing_us = view.computing_us.copy()
    computing_us[3, 1:3] *= 1.0 + longer_share
    quoted = of_kind("data_imbalance", step_ms=view.mean_step_us / 1e3)
    asked = open_questions(replace(view, computing_us=computing_us), job.evidence, [quoted], Thresholds())
    assert ("costly_unexplained" in {one.kind for one in asked}) == is_open
