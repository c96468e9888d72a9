"""What is quoted at 5 % of the step is in the headline, or the job is not `healthy`: whatever its kind."""

from __future__ import annotations

import pytest

from cluster_analysis.judge.open_questions import open_questions
from cluster_analysis.judge.view import build_view
from cluster_analysis.sentences.amounts import format_ms
from cluster_analysis.sentences.results import words
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.findings import Finding
from cluster_run.kinds import KINDS
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
    told = words.headline(replace(document, findings=(finding,)))
    amount = format_ms(0.06 * step_ms)
    assert is_asked(finding) or (amount in told.en and amount in told.zh)


@pytest.mark.parametrize("kind", sorted(name for name, record in KINDS.items() if record.may_be_fault))
def test_what_may_be_a_fault_and_costs_5_percent_leaves_a_question(kind: str) -> None:
    finding = of_kind(kind, step_ms=300.0)
    assert is_asked(finding)
    assert not is_asked(finding, cost_share=0.03)
