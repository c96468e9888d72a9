"""One number for one thing: page, console, ticket, headline and findings.json tell the same cost."""

from __future__ import annotations

import pytest

from cluster_analysis.judge.open_questions import open_questions
from cluster_analysis.judge.view import build_view
from cluster_analysis.reports.step_time import cost_of_imbalance
from cluster_analysis.sentences import phrases, verdicts
from cluster_analysis.sentences.costs import Cost, cost_between, cost_of
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.facts import fact
from cluster_run.findings import Finding, LostPart
from cluster_run.kinds import KINDS
from cluster_simulate.api import JobSpec
from cluster_words.amounts import format_ms
from tests.analysis.copies import replace
from tests.analysis.jobs import SMALL, judged
from tests.analysis.reports import builder
from tests.analysis.reports.pages import Elements, on_terminal, page_of, ticket_of


def with_costs(*costs):
    """The degraded job, its findings with (alone, low, high) of these, in ms."""
    result = builder.degraded()
    pairs = zip(result.document.findings, costs, strict=True)
    findings = tuple(
        replace(one, cost_ms_per_step=alone, cost_low_ms=low, cost_high_ms=high)
        for one, (alone, low, high) in pairs
    )
    return builder.with_document(result, findings=findings)


CASES = {
    "equal": ((12.3, 12.3, 12.3), (4.1, 4.1, 4.1)),
    "ranges": ((28.8, 28.8, 31.4), (4.1, 3.6, 4.1)),
    "bound": ((12.3, 12.3, 12.3), (None, None, 55.3)),
    "hidden": ((12.3, 12.3, 12.3), (0.0, 0.0, 7.7)),
    "seconds": ((1220.0, 980.0, 1220.0), (0.4, 0.2, 0.4)),
}


@pytest.mark.parametrize("costs", CASES.values(), ids=list(CASES))
@pytest.mark.parametrize("language", ["en", "zh"])
def test_page_console_and_ticket_write_each_cost_alike(costs, language):
    result = with_costs(*costs)
    step_ms = result.document.run.step_ms
    page = Elements(page_of(result).decode(), language).text
    console = on_terminal(result, 200, language=language)
    ticket = ticket_of(result, language=language).replace("\\", "")
    for finding in result.document.findings:
        written = cost_of(finding).phrase(step_ms).of(language)
        for text in (page, console, ticket):
            assert written in text


@pytest.mark.parametrize("costs", CASES.values(), ids=list(CASES))
def test_headline_and_split_tell_the_cost_that_the_list_tells(costs):
    document = with_costs(*costs).document
    written = cost_of(document.findings[0]).phrase(document.run.step_ms)
    for said in (verdicts.verdict_sentence(document), cost_of_imbalance(document).sentence()):
        assert (written.en in said.en, written.zh in said.zh) == (True, True)


def test_a_bound_stands_in_the_place_of_a_cost_that_is_not_known():
    console = on_terminal(with_costs(*CASES["bound"]), 200)
    assert "up to 55.3 ms" in console
    assert "unknown  " not in console
    assert "  ?  " not in console


def test_two_ends_that_are_written_alike_are_one_number():
    assert Cost(79.76, 79.81).phrase(755.0).en == "79.8 ms"
    assert Cost(28.76, 31.4).phrase(755.0).en == "28.8–31.4 ms"
    assert Cost(0.8, 1.4).phrase(755.0).en == "800 µs–1.4 ms"
    assert Cost(0.0, 31.4).phrase(755.0).en == "up to 31.4 ms"
    assert Cost(None, None).phrase(755.0).en == "unknown"


@pytest.mark.parametrize(("language", "written"), [("en", "at least 28.8 ms"), ("zh", "至少 28.8 ms")])
def test_a_cost_that_may_be_more_is_told_as_the_least_and_never_as_a_range(language, written):
    result = with_costs(*CASES["ranges"])
    first, *rest = result.document.findings
    least = replace(first, facts=(*first.facts, fact("cost_at_least")))
    result = builder.with_document(result, findings=(least, *rest))
    page = Elements(page_of(result).decode(), language).text
    console = on_terminal(result, 200, language=language)
    ticket = ticket_of(result, language=language).replace("\\", "")
    headline = verdicts.verdict_sentence(result.document).of(language)
    split = cost_of_imbalance(result.document).sentence().of(language)
    for text in (page, console, ticket, headline, split):
        assert written in text
        assert "31.4" not in text


def test_the_least_that_is_nothing_is_not_known():
    assert cost_between(0.0, 0.0, 4.0, is_least=True, is_most=False).phrase(755.0).en == "unknown"


def test_costs_of_nothing_in_a_step_of_unknown_length_are_written():
    nothing = builder.with_run(with_costs((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)), step_ms=None)
    assert "0 ms a step" in Elements(page_of(nothing).decode()).text


def test_nothing_is_painted_on_a_healthy_page():
    page = page_of(builder.healthy()).decode()
    assert "beside is-far" not in page
    assert "beside is-far" in page_of(builder.degraded()).decode()


def test_the_command_that_names_a_host_is_told_where_a_file_knows_it():
    known = builder.with_run(builder.degraded(), mapping="run1/host_ips_mapping.txt")
    command = "grep ' 1$' run1/host_ips_mapping.txt"
    assert command in on_terminal(known, 100)
    assert command in Elements(page_of(known).decode()).text
    assert "grep" not in on_terminal(builder.with_addresses(known, {"1": "node-1"}), 100)


# What unevenness costs, as terminal, ticket and page tell it.


def told(result):
    """Everything that a reader can see of it, in both languages."""
    return "\n".join(
        [
            page_of(result).decode(),
            *(ticket_of(result, language=one) for one in ("en", "zh")),
            *(on_terminal(result, 200, language=one) for one in ("en", "zh")),
        ]
    )


def test_parts_of_several_findings_are_named_by_kind():
    result = builder.with_findings(builder.degraded(), 2)
    imbalance = cost_of_imbalance(result.document)
    assert imbalance.lost[0].name == phrases.Phrase("slow ranks and hosts", "慢卡与慢节点")


def test_terminal_ticket_and_page_tell_the_same_price():
    imbalance = cost_of_imbalance(builder.degraded().document)
    for language in ("en", "zh"):
        sentence = imbalance.sentence().of(language)
        assert sentence in on_terminal(builder.degraded(), 200, language=language)
        assert sentence in ticket_of(builder.degraded(), language=language)
        assert sentence in page_of(builder.degraded()).decode().replace("\N{NO-BREAK SPACE}", " ")


def test_a_healthy_job_blames_nobody_for_the_difference():
    imbalance = cost_of_imbalance(builder.healthy().document)
    assert imbalance.lost == ()
    assert imbalance.sentence().en == "268 ms a step, 266 ms if all ranks were alike."
    assert "if all ranks were alike" not in on_terminal(builder.healthy(), 200)


@pytest.mark.parametrize(
    "result",
    [
        builder.with_run(builder.degraded(), ideal_step_ms=None, slowdown=None, lost=()),
        builder.with_run(builder.degraded(), slowdown=1.001, lost=(LostPart("other", 0.3, 1.0),)),
        builder.with_run(builder.degraded(), step_ms=None),
        builder.unknown(),
    ],
    ids=["not-known", "nothing", "no-step", "could-not-tell"],
)
def test_no_price_is_told_where_it_is_not_known_or_nothing(result):
    text = told(result)
    assert "if all ranks were alike" not in text
    assert "各卡一致" not in text.partition('id="payload"')[0]
    assert 'class="imbalance"' not in text


def test_a_range_from_nothing_is_a_bound_however_small():
    first, second = with_costs((12.3, 12.3, 12.3), (0.0, 0.0, 0.048)).document.findings
    assert cost_of(second).phrase(283.0).en == "up to 48 µs"
    assert cost_of(first).phrase(283.0).en == "12.3 ms"


QUOTED = sorted(name for name, record in KINDS.items() if record.is_repairable)


def of_kind(kind: str, *, step_ms: float) -> Finding:
    cost_ms = 0.06 * step_ms
    return builder.slow(
        id=f"{kind}-3", kind=kind, severity="info", confidence="high", cost_ms_per_step=cost_ms,
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
