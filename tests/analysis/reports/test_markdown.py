import pytest

from cluster_analysis.reports import markdown, terminal
from tests.analysis.copies import replace
from tests.analysis.reports import builder
from tests.analysis.reports.gold import assert_gold
from tests.analysis.reports.test_terminal import RESULTS


@pytest.mark.parametrize("name", list(RESULTS))
def test_ticket_is_as_agreed_in_both_languages(name):
    assert_gold(f"ticket-{name}.md", markdown.render(RESULTS[name]()))
    assert_gold(f"ticket-{name}-zh.md", markdown.render(RESULTS[name](), language="zh"))


def test_a_cost_that_is_not_known_is_told_in_the_readers_language():
    result = builder.degraded()
    first = replace(result.document.findings[0], cost_ms_per_step=None, cumulative_saving_ms=None)
    document = replace(result.document, findings=(first, *result.document.findings[1:]))
    uncosted = replace(result, document=document)

    for render in (
        lambda language: markdown.render(uncosted, language=language),
        lambda language: terminal.render(uncosted, 100, False, language=language),
    ):
        assert "unknown" in render("en")
        assert "未知" in render("zh")
        assert "unknown" not in render("zh")


def test_a_ticket_with_a_baseline_is_as_agreed():
    assert_gold("ticket-baseline.md", markdown.render(builder.degraded(), builder.comparison()))


def test_names_cannot_be_markup():
    text = markdown.render(builder.with_hostile_names(builder.degraded()))

    assert "<script" not in text
    assert "<img" not in text
    assert "<i>" not in text
    assert "&lt;script&gt;" in text


def test_a_pipe_in_a_name_does_not_split_a_cell():
    result = builder.with_findings(builder.degraded(), 1)
    result.addresses["1"] = "a|b"

    rows = [line for line in markdown.render(result).splitlines() if line.startswith("| 1 |")]

    assert len(rows) == 1
    assert rows[0].replace("\\|", "").count("|") == 8
