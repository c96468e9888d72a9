"""How the page is written: numbers stay with their units, and Chinese is that of the trade."""

import re
from typing import get_args

import pytest

from cluster_analysis.reports import html
from cluster_analysis.sentences.notes import BOUNDS, TO_MEND, TOLD, reasons
from cluster_analysis.sentences.results.words import load_dictionary
from cluster_run.facts import NoteFact, fact
from tests.analysis.reports import builder
from tests.analysis.reports.pages import Elements

#: A half-width bracket around Chinese, or right behind it.
_NARROW = re.compile(r"[\u4e00-\u9fff]\(|\([^()]*[\u4e00-\u9fff][^()]*\)")


@pytest.fixture(scope="module", params=["degraded", "unknown"])
def page(request) -> str:
    return html.render(getattr(builder, request.param)()).decode()


def test_no_line_ends_between_a_number_and_its_unit(page):
    said = re.findall(r'data-(?:en|zh)="([^"]*)"', page)

    assert any("\N{NO-BREAK SPACE}ms" in one for one in said)
    assert [one for one in said if re.search(r"\d (?:ms|s|µs|%|GB/s)(?![A-Za-z])|\d [张台步个]", one)] == []


def test_a_command_that_is_copied_keeps_its_plain_blanks(page):
    assert [one for one in re.findall(r'data-text="([^"]*)"', page) if "\N{NO-BREAK SPACE}" in one] == []


def test_chinese_brackets_are_as_wide_as_its_letters(page):
    said = [one for one in re.findall(r'data-zh="([^"]*)"', page) if _NARROW.search(one)]

    assert said == []
    assert [zh for _, zh in load_dictionary().entries.values() if _NARROW.search(zh)] == []


@pytest.mark.parametrize(
    ("key", "word"),
    [
        ("part.preparing", "准备"),
        ("described.preparing", "准备"),
        ("matrix.transport", "链路类型"),
        ("nav.findings", "发现项"),
        ("search.finding", "发现项"),
    ],
)
def test_words_of_the_trade_are_used(key, word):
    assert load_dictionary().entries[key][1] == word


def test_what_can_be_put_right_stands_apart_from_what_cannot():
    notes = [fact("few_steps", n_steps=2), fact("unpaired_messages"), fact("no_operators")]

    several, alone = reasons(notes, 8), reasons(notes, 1)
    assert [one.kind for one in several.to_mend] == ["few_steps", "no_operators"]
    assert [one.kind for one in several.bounds] == ["unpaired_messages"]
    assert [one.kind for one in alone.bounds] == ["unpaired_messages", "no_operators"]


def test_each_kind_of_note_has_one_class_by_what_can_be_done_about_it():
    assert sorted((*TO_MEND, *BOUNDS, *TOLD)) == sorted(get_args(NoteFact))


def test_the_headline_of_one_rank_says_that_nothing_stands_beside_it():
    result = builder.unknown_of(builder.healthy(builder.Job(1, 1, 1, 5)))

    assert "one rank, and no other to compare it with" in Elements(html.render(result).decode()).text
