"""Terminal and ticket - as agreed, in both languages; problems and places are told once and alike."""

from __future__ import annotations

import gzip
import json
import re

import pytest

from cluster_analysis.findings_json import document_to_json
from cluster_analysis.judge.baseline import Comparison
from cluster_analysis.reports import commands, terminal
from cluster_analysis.reports.timeline import perfetto
from cluster_analysis.result import AnalysisResult, Reported, Shown
from cluster_analysis.sentences import verdicts
from cluster_analysis.sentences.subjects import place_phrase
from cluster_run.facts import fact
from cluster_run.findings import Link, Place
from cluster_run.ids import HostId, Rank
from cluster_run.problem import Problem
from cluster_tell.verdict import verdict_of
from tests.analysis.copies import replace
from tests.analysis.reports import builder
from tests.analysis.reports.gold import assert_gold
from tests.analysis.reports.pages import on_terminal, page_of, ticket_of

RESULTS = {
    "degraded": builder.degraded,
    "healthy": builder.healthy,
    "unknown": builder.unknown,
    "hostile": lambda: builder.with_hostile_names(builder.degraded()),
}


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("name", list(RESULTS))
def test_text_is_as_agreed_at_each_width(name, width):
    assert_gold(f"terminal-{name}-{width}.txt", on_terminal(RESULTS[name](), width))


@pytest.mark.parametrize("name", list(RESULTS))
def test_chinese_text_is_as_agreed(name):
    text = on_terminal(RESULTS[name](), 80, language="zh")
    assert_gold(f"terminal-{name}-80-zh.txt", text)


@pytest.mark.parametrize("width", [40, 57, 80, 200])
@pytest.mark.parametrize("name", list(RESULTS))
def test_no_line_but_a_command_to_be_copied_is_wider_than_the_terminal(name, width):
    text = on_terminal(RESULTS[name](), width)
    assert max(len(line) for line in text.splitlines() if not line.startswith("Run: ")) <= width


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", list(RESULTS))
def test_no_line_ends_before_a_unit_or_a_closing_mark_whatever_the_width(name, language):
    result = RESULTS[name]()
    texts = [on_terminal(result, width, language=language) for width in range(50, 130, 3)]
    torn = re.compile(r"[0-9]\n *(?:ms|s|µs|%|[张台步个次条])(?![A-Za-z])|\n *[，。；：）]")
    assert [found[0] for text in texts for found in torn.finditer(text)] == []
    assert [text for text in texts if "\N{NO-BREAK SPACE}" in text] == []


def test_colours_only_where_asked_for():
    result = builder.degraded()
    assert "\x1b[" in on_terminal(result, 80, colour=True)
    assert "\x1b[" not in on_terminal(result, 80)


def test_colours_change_no_word():
    result = builder.unknown()
    coloured = on_terminal(result, 80, colour=True)
    bare = [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", coloured).splitlines()]
    assert bare == on_terminal(result, 80).splitlines()


def test_healthy_degraded_and_unknown_start_with_signs_of_their_own():
    signs = [on_terminal(RESULTS[name](), 80)[0] for name in ("healthy", "degraded", "unknown")]
    assert signs == ["✓", "▲", "?"]


def test_a_name_cannot_move_the_cursor():
    result = builder.with_hostile_names(builder.degraded())
    result.addresses["1"] = "node\x1b[2J\r\u202efnord"
    text = on_terminal(result, 200)
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "fnord" in text


def test_a_baseline_says_what_moved_and_what_was_refused():
    assert_gold("terminal-baseline-80.txt", on_terminal(builder.degraded(), 80, builder.comparison()))


def test_a_baseline_that_changed_nothing_says_so():
    assert "nothing moved beyond noise" in on_terminal(builder.healthy(), 80, Comparison((), ()))
    refused = Comparison((), (fact("other_number_of_ranks", before=32, after=64),))
    assert "nothing could be compared" in on_terminal(builder.healthy(), 80, refused)


def test_what_costs_nothing_takes_no_row_from_what_costs_something():
    result = builder.with_findings(builder.degraded(), 3)
    first, *rest = result.document.findings
    cost = {"cost_low_ms": 0.0, "cost_high_ms": 0.0, "cumulative_saving_ms": None}
    nothing = [replace(one, severity="info", **cost) for one in rest]
    text = on_terminal(builder.with_document(result, findings=(first, *nothing)), 100)
    assert " 0 ms" not in text
    assert "2 more in findings.json and report.html" in text
    alone = on_terminal(builder.with_document(builder.healthy(), findings=nothing), 100)
    assert alone.split("\n\n")[1].strip() == "2 more in findings.json and report.html"


def test_what_is_no_alarm_adds_nothing_to_what_is_lost():
    findings = builder.degraded().document.findings
    saved_ms = max(one.cumulative_saving_ms or 0.0 for one in findings)
    noticed = builder.slow(id="noticed", severity="info", cumulative_saving_ms=saved_ms + 40.0)
    alone, more = (builder.finds(*found).document for found in (findings, (*findings, noticed)))
    assert verdicts.lost_in_all(more) == verdicts.lost_in_all(alone)


def test_what_is_lost_is_no_less_than_what_one_alarm_costs_though_another_finding_hides_that():
    result = builder.degraded()
    first, *rest = result.document.findings
    hidden = replace(
        first, cost_ms_per_step=20.0, cost_low_ms=18.0, cost_high_ms=30.0, cumulative_saving_ms=0.0
    )
    noticed = [replace(one, severity="info") for one in rest]
    lost = verdicts.lost_in_all(builder.with_document(result, findings=(hidden, *noticed)).document)
    assert lost is not None
    assert (lost.low_ms, lost.high_ms) == (20.0, 30.0)


def test_many_findings_stay_within_a_screen():
    result = builder.with_findings(builder.degraded(), 40)
    text = on_terminal(result, 100)
    assert "35 more in findings.json and report.html" in text
    assert len(text.splitlines()) <= 24


def test_with_addresses_the_hosts_of_the_findings_are_named():
    result = builder.degraded()
    host = result.document.findings[0].hosts[0]
    named = replace(result, addresses={host: "node-17.cluster"})
    assert f"host {host} is node-17.cluster" in on_terminal(named, 100)
    assert "--show-addresses names the hosts" in on_terminal(result, 100)


@pytest.mark.parametrize(
    ("language", "said"), [("en", "of all waiting is taken as it was"), ("zh", "的等待按原值计")]
)
def test_verbose_says_how_well_the_replay_fits(language, said):
    given = Reported(builder.with_document(builder.degraded(), replay={"copied_waiting_share": 0.25}))
    assert f"25.0 % {said}" in terminal.text(given, Shown(language, 100, is_verbose=True))
    assert said not in terminal.text(given, Shown(language, 100))
    assert said in page_of(given.result).decode()


@pytest.mark.parametrize("name", list(RESULTS))
def test_ticket_is_as_agreed_in_both_languages(name):
    assert_gold(f"ticket-{name}.md", ticket_of(RESULTS[name]()))
    assert_gold(f"ticket-{name}-zh.md", ticket_of(RESULTS[name](), language="zh"))


def test_a_cost_that_is_not_known_is_told_in_the_readers_language():
    first = builder.slow(cost_ms_per_step=None, cumulative_saving_ms=None)
    uncosted = builder.finds(first, builder.slow_link())
    for render in (
        lambda language: ticket_of(uncosted, language=language),
        lambda language: on_terminal(uncosted, 100, language=language),
    ):
        assert "unknown" in render("en")
        assert "未知" in render("zh")
        assert "unknown" not in render("zh")


def test_a_ticket_with_a_baseline_is_as_agreed():
    assert_gold("ticket-baseline.md", ticket_of(builder.degraded(), builder.comparison()))


def test_names_cannot_be_markup():
    text = ticket_of(builder.with_hostile_names(builder.degraded()))
    assert "<script" not in text
    assert "<img" not in text
    assert "<i>" not in text
    assert "&lt;script&gt;" in text


def test_a_pipe_in_a_name_does_not_split_a_cell():
    result = builder.with_findings(builder.degraded(), 1)
    result.addresses["1"] = "a|b"
    rows = [line for line in ticket_of(result).splitlines() if line.startswith("| 1 |")]
    assert len(rows) == 1
    assert rows[0].replace("\\|", "").count("|") == 8


# What many ranks lack alike is told once; findings.json keeps a row for each of them.
MATRIX = "communication_matrix.json"


def lacking(ranks: range) -> AnalysisResult:
    """A healthy job of 32 ranks on four hosts; some of them have no matrix, and rank 7 lost its operators."""
    result = builder.healthy()
    rows = [
        Problem(fact("matrix_not_there"), MATRIX, Rank(rank), HostId(str(rank // 8 + 1))) for rank in ranks
    ]
    lost = Problem(fact("truncated", byte=9), "communication.json", Rank(7), HostId("1"))
    return builder.with_document(result, problems=(*rows, lost))


@pytest.mark.parametrize(
    ("ranks", "english", "chinese"),
    [
        (range(32), f"all 32 ranks, {MATRIX}: it is", f"全部 32 张卡，{MATRIX}：文件"),
        (range(4, 12), f"ranks 4-11, {MATRIX}: it is", f"卡 4-11，{MATRIX}：文件"),
        (range(8, 16), f"host 2, ranks 8-15, {MATRIX}: it is", f"主机 2，卡 8-15，{MATRIX}：文件"),
        (range(8, 9), f"host 2, rank 8, {MATRIX}: it is", f"主机 2，卡 8，{MATRIX}：文件"),
    ],
)
def test_what_many_ranks_lack_is_told_once(ranks: range, english: str, chinese: str) -> None:
    result = lacking(ranks)
    said, in_chinese = on_terminal(result, 300), on_terminal(result, 300, language="zh")
    assert "2 problems: some data is missing, damaged or changed" in said
    assert english in said
    assert chinese in in_chinese
    assert "host 1, rank 7, communication.json: truncated at byte 9" in said
    assert said.count(MATRIX) == 1
    ticket = ticket_of(result).replace("\\", "")
    assert english in ticket
    assert ticket.count(MATRIX) == 1
    page = page_of(result).decode()
    assert "2 problems: some data is missing" in page
    assert english.split(", " + MATRIX, maxsplit=1)[0].rsplit(", ", maxsplit=1)[-1] in page
    assert page.count(f"<code>{MATRIX}</code>") == 1


def test_findings_json_has_a_row_for_each_rank() -> None:
    rows = json.loads(document_to_json(lacking(range(32)).document))["problems"]
    assert [row["rank"] for row in rows] == [*range(32), 7]


# Where a rank is, is said in one way everywhere; commands name its device.
WHERE = f"rank {builder.SLOW_RANK} = host 1 / device {builder.SLOW_RANK}"


def test_every_report_tells_a_place_in_the_same_words():
    result = builder.degraded()
    trace = json.loads(gzip.decompress(perfetto.render(result, [])))
    finding = next(event for event in trace["traceEvents"] if event["args"].get("name") == "slow_rank-5")
    assert finding
    assert f"Where: {WHERE}" in on_terminal(result, 100)
    assert WHERE in ticket_of(result)
    assert WHERE in page_of(result).decode()
    assert WHERE in verdict_of(result.document).headline()


def test_a_place_that_is_not_known_is_not_made_up():
    assert place_phrase(Place(3, None, None)).en == "rank 3"
    assert place_phrase(Place(3, None, 2)).en == "rank 3 = device 2"
    assert place_phrase(Place(3, "7", None)).en == "rank 3 = host 7"


def test_commands_of_a_slow_device_name_it_and_one_without_a_device_gets_none():
    result = builder.degraded()
    texts = [one.text for one in commands.commands(builder.slow(), result)]
    assert texts == ["npu-smi info -t common -i 5; npu-smi info -t health -i 5"]
    unknown = builder.slow(places=(Place(builder.SLOW_RANK, None, None),))
    assert commands.commands(unknown, result) == ()


def test_commands_of_a_link_ask_both_ends_and_test_between_them():
    texts = [one.text for one in commands.commands(builder.slow_link(), builder.degraded())]
    assert texts[:2] == ["hccn_tool -i 2 -link -g; hccn_tool -i 2 -speed -g; hccn_tool -i 2 -stat -g"] * 2
    assert "all_reduce_test" in texts[-1]


def test_a_command_for_one_of_two_hosts_says_for_which():
    link = builder.finds(builder.slow_link())
    printed = on_terminal(link, 80)
    for end in ("rank 2 = host 1 / device 2", "rank 10 = host 2 / device 2"):
        assert re.search(rf"Run: hccn_tool -i 2 -link -g; .*-stat -g  # {end}\n", printed)
    said = r"rank 10 = host 2 / device 2(</span>)+\s*<code>hccn_tool -i 2 -link -g"
    assert re.search(said, page_of(link).decode().replace("\N{NO-BREAK SPACE}", " "))
    assert "; npu-smi info -t health -i 5\n" in on_terminal(builder.degraded(), 80)


def test_a_workload_finding_has_no_commands():
    assert commands.commands(builder.slow(kind="data_imbalance"), builder.degraded()) == ()


CHOSEN = fact("several_captures", captures=("a", "b"), chosen="a", others=("b",))


@pytest.mark.parametrize("make", [builder.healthy, builder.degraded, builder.unknown])
def test_that_only_one_of_several_jobs_was_analysed_stands_before_all_else_that_is_said_of_it(make):
    result = make()
    result = builder.with_document(result, notes=(*result.document.notes, CHOSEN))
    said = "only a is analysed here"
    text = " ".join(on_terminal(result, 80).split())
    assert text.count(said) == 1
    assert not re.search(r"problem|Next: |Can be put right", text.partition(said)[0])
    assert ticket_of(result).replace("\\", "").partition("### ")[0].count(said) == 1
    assert said in page_of(result).decode().partition('<section id="step">')[0]


def test_notes_that_are_not_shown_are_counted():
    kinds = ("no_operators", "no_start_times", "steps_as_a_whole", "unpaired_messages")
    result = builder.with_document(builder.degraded(), notes=tuple(fact(one) for one in kinds))
    text = on_terminal(result, 80)
    assert text.count("Stays open") + text.count("Can be put right") == 2
    assert text.endswith("  2 more in findings.json and report.html\n")


def test_nobody_is_sent_for_names_of_hosts_that_no_file_holds():
    result = builder.finds(builder.slow(hosts=(HostId("2"),)))
    assert "--show-addresses" in on_terminal(result, 80)
    result = builder.with_document(result, notes=(fact("hosts_by_devices", n_hosts=2, why="none"),))
    assert "--show-addresses" not in on_terminal(result, 80)


def test_a_cost_that_nothing_replayed_is_told_as_the_bound_that_it_is():
    one = builder.slow(cost_low_ms=None, facts=(*builder.slow().facts, fact("cost_is_bound")))
    result = builder.finds(replace(one, cost_high_ms=one.cost_ms_per_step))
    (told,) = verdict_of(result.document).findings
    for text in (on_terminal(result, 120), ticket_of(result), told.text()):
        assert re.search(r"up to \d+(\.\d+)? ms", text)


def test_a_job_of_one_rank_is_told_so_whatever_it_did_not_record():
    lacking = Problem(fact("no_communication_data", files=("communication.json",)), rank=Rank(0))
    result = builder.with_run(builder.unknown(), ranks=1, expected_ranks=1)
    few = fact("few_peers", n_ranks=1, min_peers=3)
    result = builder.with_document(result, problems=(lacking,), notes=(few,))
    text = " ".join(on_terminal(result, 80).split())
    assert "the job has one rank, and no other to compare it with" in text
    assert "peers" not in text


def test_information_stands_apart_from_alarms_on_the_terminal_too():
    result = builder.finds(builder.slow(), builder.slow_link(severity="info"))
    lines = on_terminal(result, 100).split("\n")
    (apart,) = [at for at, line in enumerate(lines) if "Noticed, no reason for an alarm:" in line]
    assert lines[apart - 1].lstrip().endswith("in every step.")
    assert lines[apart + 1].startswith("·")


def test_an_alarm_that_is_not_sure_says_so():
    result = builder.finds(builder.slow(confidence="low"), builder.slow_link(confidence="high"))
    assert "in every step. Low confidence." in on_terminal(result, 200)
    assert on_terminal(result, 200).count("confidence") == 1


def test_the_places_to_go_to_are_those_of_ranks_that_are_named_and_few():
    ends = tuple(Place(Rank(rank), HostId("1"), rank) for rank in range(4))
    card = builder.slow_link(kind="slow_nic", ranks=(Rank(2),), places=ends)
    assert [one.rank for one in card.named_places] == [2]
    assert replace(card, kind="slow_uplink", ranks=()).named_places == ()
    group = tuple(Rank(rank) for rank in range(4))
    lost = replace(
        card, kind="retransmission", ranks=group, hosts=(), links=(Link(group[2], group[3], "RDMA"),)
    )
    assert [one.rank for one in lost.named_places] == [2, 3]
    assert lost.named_hosts == ("1",)
    assert builder.slow().named_places == builder.slow().places
