import re

import pytest

from cluster_analysis.judge.baseline import Comparison
from cluster_analysis.reports import html, terminal
from cluster_analysis.result import Reported, Shown
from cluster_run.facts import fact
from tests.analysis.copies import replace
from tests.analysis.reports import builder
from tests.analysis.reports.gold import assert_gold

RESULTS = {
    "degraded": builder.degraded,
    "healthy": builder.healthy,
    "unknown": builder.unknown,
    "hostile": lambda: builder.with_hostile_names(builder.degraded()),
}


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", list(RESULTS))
def test_text_is_as_agreed_at_each_width(name, width):
    assert_gold(f"terminal-{name}-{width}.txt", terminal.render(RESULTS[name](), width, colour=False))


@pytest.mark.parametrize("name", list(RESULTS))
def test_chinese_text_is_as_agreed(name):
    text = terminal.render(RESULTS[name](), 80, colour=False, language="zh")

    assert_gold(f"terminal-{name}-80-zh.txt", text)


@pytest.mark.parametrize("width", [40, 57, 80, 200])
@pytest.mark.parametrize("name", list(RESULTS))
def test_no_line_is_wider_than_the_terminal(name, width):
    text = terminal.render(RESULTS[name](), width, colour=False)

    assert max(map(len, text.splitlines())) <= width


def test_colours_only_where_asked_for():
    result = builder.degraded()

    assert "\x1b[" in terminal.render(result, 80, colour=True)
    assert "\x1b[" not in terminal.render(result, 80, colour=False)


def test_colours_change_no_word():
    result = builder.unknown()
    coloured = terminal.render(result, 80, colour=True)

    bare = [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", coloured).splitlines()]
    assert bare == terminal.render(result, 80, colour=False).splitlines()


def test_healthy_degraded_and_unknown_start_with_signs_of_their_own():
    signs = [terminal.render(RESULTS[name](), 80, False)[0] for name in ("healthy", "degraded", "unknown")]

    assert signs == ["✓", "▲", "?"]


def test_a_name_cannot_move_the_cursor():
    result = builder.with_hostile_names(builder.degraded())
    result.addresses["1"] = "node\x1b[2J\r\u202efnord"

    text = terminal.render(result, 200, colour=False)

    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "fnord" in text


def test_a_baseline_says_what_moved_and_what_was_refused():
    assert_gold(
        "terminal-baseline-80.txt", terminal.render(builder.degraded(), 80, False, builder.comparison())
    )


def test_a_baseline_that_changed_nothing_says_so():
    assert "nothing moved beyond noise" in terminal.render(builder.healthy(), 80, False, Comparison(()))
    refused = Comparison((), (fact("other_number_of_ranks", before=32, after=64),))
    assert "nothing could be compared" in terminal.render(builder.healthy(), 80, False, refused)


def test_many_findings_stay_within_a_screen():
    result = builder.with_findings(builder.degraded(), 40)

    text = terminal.render(result, 100, colour=False)

    assert "35 more in findings.json and report.html" in text
    assert len(text.splitlines()) <= 24


def test_with_addresses_the_hosts_of_the_findings_are_named():
    result = builder.degraded()
    host = result.document.findings[0].hosts[0]
    named = replace(result, addresses={host: "node-17.cluster"})

    assert f"host {host} is node-17.cluster" in terminal.render(named, 100, colour=False)
    assert "--show-addresses names the hosts" in terminal.render(result, 100, colour=False)


@pytest.mark.parametrize(
    ("language", "said"), [("en", "of all waiting is taken as it was"), ("zh", "的等待按原值计")]
)
def test_verbose_says_how_well_the_replay_fits(language, said):
    document = replace(builder.degraded().document, replay={"copied_waiting_share": 0.25})
    given = Reported(replace(builder.degraded(), document=document))

    assert f"25.0 % {said}" in terminal.text(given, Shown(language, 100, is_verbose=True))
    assert said not in terminal.text(given, Shown(language, 100))
    assert said in html.render(given.result).decode()
