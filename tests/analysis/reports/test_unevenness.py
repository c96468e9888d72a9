"""What unevenness costs, as terminal, ticket and page tell it."""

import pytest

from cluster_analysis.reports import html, markdown, terminal
from cluster_analysis.reports.unevenness import price_of_unevenness
from cluster_analysis.sentences.results import words
from cluster_run.findings import LostPart
from tests.analysis.copies import replace
from tests.analysis.reports import builder

DICTIONARY = words.load_dictionary()


def with_run(result, **values):
    run = replace(result.document.run, **values)
    return replace(result, document=replace(result.document, run=run))


def told(result):
    """Everything that a reader can see of it, in both languages."""
    return "\n".join(
        [
            html.render(result).decode(),
            *(markdown.render(result, language=one) for one in ("en", "zh")),
            *(terminal.render(result, 200, False, language=one) for one in ("en", "zh")),
        ]
    )


def test_price_names_the_one_finding_that_a_part_is_about():
    price = price_of_unevenness(builder.degraded().document, DICTIONARY)

    assert price.sentence().en == (
        "283 ms a step, 266 ms if all ranks were alike: 12.3 ms of the difference is slow rank 5, "
        "4.1 ms the slow link 2 ↔ 10, 300 µs variation without a single cause."
    )
    assert price.sentence().zh == (
        "每步 283 ms，若各卡一致则为 266 ms：差值中 12.3 ms 来自慢卡 5，4.1 ms 来自慢链路 2 ↔ 10，"
        "300 µs 来自无单一原因的波动。"
    )


def test_parts_of_several_findings_are_named_by_kind():
    result = builder.with_findings(builder.degraded(), 2)
    price = price_of_unevenness(result.document, DICTIONARY)

    assert price.lost[0].name == words.Phrase("slow ranks and hosts", "慢卡与慢节点")


def test_terminal_ticket_and_page_tell_the_same_price():
    price = price_of_unevenness(builder.degraded().document, DICTIONARY)

    for language in ("en", "zh"):
        sentence = price.sentence().of(language)
        assert sentence in terminal.render(builder.degraded(), 200, False, language=language)
        assert sentence in markdown.render(builder.degraded(), language=language)
        assert sentence in html.render(builder.degraded()).decode().replace("\N{NO-BREAK SPACE}", " ")


def test_a_healthy_job_blames_nobody_for_the_difference():
    price = price_of_unevenness(builder.healthy().document, DICTIONARY)

    assert price.lost == ()
    assert price.sentence().en == "268 ms a step, 266 ms if all ranks were alike."
    assert "if all ranks were alike" not in terminal.render(builder.healthy(), 200, False)


@pytest.mark.parametrize(
    "result",
    [
        with_run(builder.degraded(), ideal_step_ms=None, slowdown=None, lost=()),
        with_run(builder.degraded(), slowdown=1.001, lost=(LostPart("other", 0.3, 1.0),)),
        with_run(builder.degraded(), step_ms=None),
        builder.unknown(),
    ],
    ids=["not-known", "nothing", "no-step", "could-not-tell"],
)
def test_no_price_is_told_where_it_is_not_known_or_nothing(result):
    text = told(result)

    assert "if all ranks were alike" not in text
    assert "各卡一致" not in text.partition('id="payload"')[0]
    assert 'class="price"' not in text
