import re
from importlib.resources import files
from pathlib import Path
from string import Formatter
from typing import get_args

import pytest

from cluster_analysis import judge
from cluster_analysis.judge import reasons
from cluster_analysis.judge.baseline import Subject
from cluster_analysis.judge.measures.local_times import local_times
from cluster_analysis.judge.view import build_view
from cluster_analysis.sentences import changes, phrases, subjects, verdicts
from cluster_analysis.tables.schema import CARD_COUNTERS
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.facts import ReasonKind, fact
from cluster_run.findings import Cause, Confidence, Evidence, Link, Pattern, Severity, Verdict
from cluster_run.ids import HostId, ParallelSizes, Rank
from cluster_run.kinds import FaultKind, WorkloadKind
from cluster_run.problem import Problem
from cluster_words.amounts import format_ms
from cluster_words.checks import next_check
from cluster_words.headings import HEADINGS, words_of_page
from cluster_words.notes import TOLD
from cluster_words.phrase import Phrase, fill
from cluster_words.terms import KINDS
from tests.analysis.copies import replace
from tests.analysis.jobs import SMALL, judged
from tests.analysis.reports import builder

ASSETS = files("cluster_analysis.reports").joinpath("assets")
#: Keys that code puts together from a prefix and a value.
COMPOSED = {
    "verdict": get_args(Verdict),
    "severity": get_args(Severity),
    "cause": get_args(Cause),
    "pattern": get_args(Pattern),
    "confidence": get_args(Confidence),
    "notes": TOLD,
    "subject": (*get_args(FaultKind), *get_args(WorkloadKind), "slow_port", "scattered_pauses"),
}
PREFIXES = (
    "metric.",
    "part.",
    "count.",
    "baseline.",
    "method.",
    "replay.",
    "search.",
    "described.",
    "lanes.",
    "since.",
    "chart.",
    *(f"{one}." for one in COMPOSED),
)


def sources() -> str:
    texts = [file.read_text("utf-8") for file in ASSETS.iterdir() if file.name.endswith(".j2")]
    texts += [file.read_text("utf-8") for file in ASSETS.joinpath("js").iterdir()]
    reports = files("cluster_analysis.reports")
    texts += [
        reports.joinpath(*name).read_text("utf-8") for name in (("page", "sections.py"), ("runs_page.py",))
    ]
    code = files("cluster_analysis.sentences")
    texts += [code.joinpath(name).read_text("utf-8") for name in ("phrases.py", "subjects.py", "verdicts.py")]
    return "\n".join(texts)


def test_every_key_has_both_languages_with_the_same_placeholders():
    def names(text: str) -> set[str]:
        return {name for _, name, _, _ in Formatter().parse(text) if name}

    entries = words_of_page().items()
    assert [key for key, texts in entries if not all(one.strip() for one in texts)] == []
    assert [key for key, (english, chinese) in entries if names(english) != names(chinese)] == []


def test_every_key_that_the_page_uses_has_words():
    text = sources()
    used = set(re.findall(r'\b(?:t|w|say)\("([a-z.]+)"[,)]', text))
    used |= {
        key for pair in re.findall(r'section\("\w+", "([a-z.]+)", "([a-z.]*)"\)', text) for key in pair if key
    }
    used |= set(re.findall(r'\("[a-z]+", "([a-z]+\.[a-z]+)"\)', text))
    assert len(used) > 60
    assert used - set(words_of_page()) - set(HEADINGS) == set()


def test_every_word_of_the_page_is_used():
    text = sources()
    unused = [key for key in words_of_page() if f'"{key}"' not in text and not key.startswith(PREFIXES)]
    assert unused == []


def test_every_value_of_a_finding_has_words():
    composed = {f"{prefix}.{value}" for prefix, values in COMPOSED.items() for value in values}
    assert composed - set(words_of_page()) == set()


def test_every_figure_about_the_replay_has_words_and_there_are_no_others():
    figures = judged().detection.replay
    assert figures
    assert {f"replay.{name}" for name in figures} == {
        one for one in words_of_page() if one.startswith("replay.")
    }


def test_every_kind_has_words_for_terminal_and_ticket():
    assert set(KINDS) == {*get_args(FaultKind), *get_args(WorkloadKind), "slow_port", "scattered_pauses"}


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("computing_us", 201_000.0, "201 ms"),
        ("step_ms", 1234.0, "1.23 s"),
        ("bandwidth_gbps", 21.43, "21.43 GB/s"),
        ("lost_share", 0.044, "4.4 %"),
        ("n_packets", 12000.0, "12,000"),
    ],
)
def test_a_metric_is_written_in_the_unit_of_its_name(metric, value, text):
    assert phrases.format_metric(metric, value) == text


def test_a_metric_without_an_entry_keeps_its_own_name():
    assert phrases.metric_name("flux_capacity_us") == phrases.Phrase("flux capacity", "flux capacity")


def test_every_time_and_size_that_is_evidence_is_called_something_in_both_languages():
    job = judged(SMALL)
    measured = local_times(build_view(job.evidence, job.topology), Thresholds())
    names = {f"{one.name}_us" for one in measured}
    for path in Path(judge.__file__).parent.rglob("*.py"):
        names |= set(re.findall(r'Evidence\(\s*"(\w+)"', path.read_text()))
    # A counter that explains a finding is evidence of it, too.
    names |= set(re.findall(r'(?:^_\w+ =|:) "(\w+)",?$', Path(reasons.__file__).read_text(), re.MULTILINE))
    names |= set(CARD_COUNTERS)
    assert names > {"computing_us", "idle_us", "transfer_us"}
    called = {name: phrases.metric_name(name) for name in names}
    assert [name for name, said in called.items() if said.en == said.zh] == []


def test_a_median_of_zero_gives_no_share():
    assert phrases.difference(Evidence("wait_us", 5.0, 0.0, 0.0, 3)) == "–"


@pytest.mark.parametrize(
    ("value_ms", "text"),
    [(None, "?"), (0.0, "0 ms"), (0.41, "410 µs"), (12.34, "12.3 ms"), (282.7, "283 ms"), (1240.0, "1.24 s")],
)
def test_times_are_short(value_ms, text):
    assert format_ms(value_ms) == text


def test_a_healthy_job_that_could_save_time_says_so():
    result = builder.healthy()
    own = replace(builder.degraded().document.findings[0], kind="host_bound", severity="info")
    document = replace(result.document, findings=(own,))
    assert "the job itself could save 12.3 ms" in verdicts.verdict_sentence(document).en
    assert "the job itself could save 12.3 ms of it" in verdicts.headline(document).en
    assert "could save" not in verdicts.verdict_sentence(result.document).en


@pytest.mark.parametrize(
    ("cost_ms", "english", "chinese"),
    [
        (34.0, "; rank 9 may cost 34.0 ms of it: see below.", "；卡 9 可能占其中 34.0 ms，见下文。"),
        (1.0, "a step takes 268 ms.", "每步耗时 268 ms。"),
    ],
)
def test_what_a_rank_may_cost_is_not_what_the_job_itself_could_save(
    cost_ms: float, english: str, chinese: str
) -> None:
    first = builder.degraded().document.findings[0]
    rank = replace(
        first, severity="info", ranks=(Rank(9),), cost_ms_per_step=cost_ms, cumulative_saving_ms=cost_ms
    )
    document = replace(builder.healthy().document, findings=(rank,))
    assert verdicts.verdict_sentence(document).en.endswith(english)
    assert verdicts.verdict_sentence(document).zh.endswith(chinese)
    assert verdicts.headline(document).en.endswith(english.removeprefix("a step takes "))
    assert verdicts.headline(document).zh.endswith(chinese)


def test_the_work_saves_what_it_adds_to_what_a_rank_or_a_host_may_cost() -> None:
    first = replace(builder.degraded().document.findings[0], severity="info")
    rank = replace(first, ranks=(Rank(9),), cost_ms_per_step=34.0, cumulative_saving_ms=34.0)
    work = replace(first, kind="host_bound", ranks=(), cost_ms_per_step=None, cumulative_saving_ms=39.0)
    host = replace(
        first,
        kind="stage_imbalance",
        hosts=(HostId("2"),),
        separable=False,
        cost_ms_per_step=8.0,
        cumulative_saving_ms=47.0,
    )
    document = replace(builder.healthy().document, findings=(rank, work, host))
    said = "; the job itself could save 5.0 ms of it; rank 9 may cost 34.0 ms of it, others less: see below."
    assert verdicts.verdict_sentence(document).en.endswith(said)
    assert verdicts.headline(document).en.endswith(said)
    last = replace(document, findings=(host,))
    assert "; host 2 may cost 8.0 ms of it: see below." in verdicts.verdict_sentence(last).en


def test_where_the_replay_shows_no_cost_of_a_slow_rank_the_headline_says_what_it_costs_at_most():
    result = builder.degraded()
    hidden = replace(
        result.document.findings[0], cost_ms_per_step=0.0, cumulative_saving_ms=0.0, cost_high_ms=20.0
    )
    document = replace(result.document, findings=(hidden,))
    assert "up to 20.0 ms (up to 7.1 %) of it is lost" in verdicts.verdict_sentence(document).en
    assert "up to 20.0 ms (up to 7.1 %) of it is lost" in verdicts.headline(document).en
    assert "to 20.0 ms" not in verdicts.verdict_sentence(result.document).en


def test_where_nothing_was_replayed_the_headline_says_what_the_costliest_finding_costs_at_most():
    result = builder.degraded()
    bound = replace(
        result.document.findings[0],
        cost_ms_per_step=20.0,
        cumulative_saving_ms=None,
        cost_high_ms=20.0,
        facts=(*result.document.findings[0].facts, fact("cost_is_bound")),
    )
    document = replace(result.document, findings=(bound,))
    assert "up to 20.0 ms (up to 7.1 %) of it is lost to" in verdicts.verdict_sentence(document).en
    assert "up to 20.0 ms (up to 7.1 %) of it is lost to" in verdicts.headline(document).en
    assert "至多 20.0 ms" in verdicts.verdict_sentence(document).zh
    # The replay is far off: no milliseconds.
    far_off = replace(document, findings=(replace(bound, cost_ms_per_step=None),))
    assert " ms (" not in verdicts.verdict_sentence(far_off).en + verdicts.verdict_sentence(far_off).zh


def test_one_rank_of_one_step_is_singular():
    result = builder.healthy(builder.Job(tp=1, dp=1, pp=1, n_steps=1))
    assert phrases.run_line(result.document).en.startswith("1 rank · 1 host · 1 step (10)")
    assert [phrase.en for phrase in phrases.run_phrases(result.document)][:3] == [
        "1 rank",
        "1 host",
        "1 step (10)",
    ]


@pytest.mark.parametrize(
    ("transport", "english", "chinese"), [("RDMA", "network card", "网卡"), ("HCCS", "port", "端口")]
)
def test_what_is_slow_inside_a_host_is_a_port_and_no_network_card(
    transport: str, english: str, chinese: str
) -> None:
    first = builder.degraded().document.findings[0]
    links = (Link(Rank(5), Rank(4), transport), Link(Rank(5), Rank(6), transport))
    one = replace(first, kind="slow_nic", ranks=(Rank(5),), links=links)
    title, check = phrases.finding_title(one), next_check(one)
    assert english in subjects.subject(one).en
    assert subjects.kind_name(one).en == f"slow {english}"
    assert english in title.en
    assert chinese in title.zh
    assert "error counters" in check.en


@pytest.mark.parametrize(
    ("kind", "ranks", "hosts", "english", "chinese"),
    [
        ("slow_link", (8, 9, 10, 11), (), "the slow link among ranks 8-11", "慢链路 8-11"),
        (
            "slow_host_pair",
            (),
            ("1", "2"),
            "the slow connection of hosts 1 and 2",
            "主机 1 与 2 之间的慢链路",
        ),
        ("slow_nic", (5,), (), "a slow network card of rank 5", "卡 5 的慢网卡"),
        ("slow_nic", (5,), ("2",), "a slow network card of rank 5 of host 2", "卡 5（主机 2）的慢网卡"),
    ],
)
def test_page_and_terminal_name_whom_they_blame_in_the_same_words(
    kind: FaultKind, ranks: tuple[int, ...], hosts: tuple[str, ...], english: str, chinese: str
) -> None:
    document = builder.degraded().document
    first = document.findings[0]
    one = replace(first, kind=kind, ranks=tuple(map(Rank, ranks)), hosts=tuple(map(HostId, hosts)), links=())
    blamed = replace(document, findings=(one, *document.findings[1:]))
    assert subjects.subject(one) == Phrase(english, chinese)
    assert f"to {english} (12.3 ms)." in verdicts.verdict_sentence(blamed).en
    assert f"to {english} (12.3 ms)." in verdicts.headline(blamed).en


@pytest.mark.parametrize(
    ("note", "why"),
    [
        (fact("replay_far_off"), "Could not tell: the replay misses the measured steps by more than 5 %"),
        (
            fact("waiting_copied", share=0.9, step_share=0.2),
            "Could not tell: it is not known which ranks 90 % of all waiting",
        ),
        (
            fact("long_step", longer_us=4e5, step=3),
            "Could not tell: all ranks communicate for 400 ms longer in step 3",
        ),
        (fact("few_peers", n_ranks=2, min_peers=3), "Could not tell: 32 ranks and 6 steps are too little"),
    ],
)
def test_the_headline_of_an_open_question_is_the_question_and_not_that_there_is_too_little(note, why):
    result = builder.healthy()
    document = replace(result.document, verdict="unknown", notes=(fact("no_operators"), note))
    assert verdicts.verdict_sentence(document).en.startswith(why)
    assert verdicts.verdict_sentence(document).zh.startswith("无法判断：")


def test_a_matrix_that_is_not_there_is_not_why_nobody_can_tell_but_few_peers_are() -> None:
    def why(kind: ReasonKind, sizes: ParallelSizes) -> str:
        result = builder.healthy()
        notes = (fact("few_peers", n_ranks=32, min_peers=3),)
        problems = tuple(Problem(fact(kind), "a.json", Rank(rank)) for rank in range(5))
        run = replace(result.document.run, parallel=sizes)
        document = replace(result.document, verdict="unknown", notes=notes, problems=problems, run=run)
        return verdicts.verdict_sentence(document).en

    few = "Could not tell: every rank has fewer than 3 peers in its own stage to be compared with."
    assert why("matrix_not_there", ParallelSizes(tp=1, pp=16, dp=2)) == few
    assert why("empty", ParallelSizes(tp=1, pp=16, dp=2)) == few
    assert why("empty", ParallelSizes(tp=1, pp=4, dp=8)) == (
        "Could not tell: data of 5 ranks is damaged or missing."
    )
    assert why("matrix_not_there", ParallelSizes(tp=1, pp=4, dp=8)) == (
        "Could not tell: 32 ranks and 6 steps are too little to judge by."
    )


def test_pauses_of_many_ranks_are_not_called_periodic_and_name_no_rank_in_the_headline() -> None:
    said = fact("ranks_pause_by_turns", ranks=(1, 4, 6), n_pauses=7, n_steps=5, length_us=9e3)
    first = builder.degraded().document.findings[0]
    ranks = tuple(map(Rank, (1, 4, 6)))
    one = replace(first, kind="periodic_pause", severity="info", ranks=ranks, facts=(said,))
    document = replace(builder.degraded().document, verdict="healthy", findings=(one,))
    assert subjects.kind_name(one) == Phrase("scattered pauses", "零散停顿")
    assert "scattered pauses of 3 ranks may cost 12.3 ms of it" in verdicts.headline(document).en
    assert "3 张卡的零散停顿可能占其中 12.3 ms" in verdicts.headline(document).zh


def test_a_part_of_a_loss_that_is_all_of_it_is_not_told_twice() -> None:
    document = builder.degraded().document
    first, second = document.findings
    whole = replace(first, cost_low_ms=12.3, cost_high_ms=14.1, cumulative_saving_ms=12.3)
    hidden = replace(
        second, cost_ms_per_step=0.0, cost_low_ms=0.0, cost_high_ms=4.1, cumulative_saving_ms=12.3
    )
    document = replace(document, findings=(whole, hidden))
    assert (
        verdicts.headline(document).en
        == "A step takes 283 ms; 12.3–14.1 ms (4.4–5.0 %) of it is lost to slow rank 5."
    )


@pytest.mark.parametrize(
    ("hosts", "english", "chinese"),
    [
        (("2",), "a slow uplink of host 2", "主机 2 的慢上行链路"),
        (("2", "4"), "a slow uplink of hosts 2 and 4", "主机 2 与 4 的慢上行链路"),
        (tuple("24567"), "a slow uplink of hosts 2, 4, 5 and 2 more", "主机 2、4、5 等 5 台的慢上行链路"),
    ],
)
def test_several_hosts_are_many_in_both_languages(hosts: tuple[str, ...], english: str, chinese: str) -> None:
    first = builder.degraded().document.findings[0]
    one = replace(first, kind="slow_uplink", ranks=(), hosts=tuple(map(HostId, hosts)))
    assert subjects.subject(one) == Phrase(english, chinese)


@pytest.mark.parametrize(
    ("value", "chinese"),
    [
        ("主机 3", "检查主机 3 的端口"),
        ("主机 3 ", "检查主机 3 的端口"),
        ("网卡", "检查网卡的端口"),
        ("NIC", "检查 NIC 的端口"),
        ("", "检查的端口"),
    ],
)
def test_a_blank_stands_between_chinese_and_figures_and_nowhere_else(value: str, chinese: str) -> None:
    assert fill(("{who}", "检查 {who} 的端口"), {"who": value}).zh == chinese
    assert fill(("{who}", "检查{who}的端口"), {"who": value}).zh == chinese


def test_everything_that_a_comparison_is_about_has_its_sentence():
    assert set(changes.SENTENCES) == {*get_args(Subject), "same_step"}
