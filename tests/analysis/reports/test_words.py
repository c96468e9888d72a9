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
from cluster_run.facts import fact
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
#: What sorts of a kind are called that have a name of their own.
OTHER_NAMES = ("slow_port", "slow_rail", "scattered_pauses")
#: Keys that code puts together from a prefix and a value.
COMPOSED = {
    "verdict": get_args(Verdict),
    "severity": get_args(Severity),
    "cause": get_args(Cause),
    "pattern": get_args(Pattern),
    "confidence": get_args(Confidence),
    "notes": TOLD,
    "subject": (*get_args(FaultKind), *get_args(WorkloadKind), *OTHER_NAMES),
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
    assert set(KINDS) == {*get_args(FaultKind), *get_args(WorkloadKind), *OTHER_NAMES}


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


def costs(ms, saved_ms=None, **values):
    """What is listed of a healthy job, costs this, and saves with all before it as much, or more."""
    saved_ms = ms if saved_ms is None else saved_ms
    return builder.slow(severity="info", cost_ms_per_step=ms, cumulative_saving_ms=saved_ms, **values)


HOST = {"kind": "stage_imbalance", "hosts": (HostId("2"),), "separable": False}
MAY_COST = costs(34.0, ranks=(Rank(9),))
BOUND = {"cost_ms_per_step": 20.0, "cost_high_ms": 20.0}


@pytest.mark.parametrize(
    ("findings", "english", "chinese"),
    [
        pytest.param((), "takes 268 ms", "每步耗时 268 ms", id="nothing is listed"),
        pytest.param(
            (costs(12.3, kind="host_bound"),), "the job itself could save 12.3 ms of it", "", id="its work"
        ),
        pytest.param(
            (MAY_COST,), "; rank 9 may cost 34.0 ms of it: see below", "；卡 9 可能占其中 34.0 ms，见下文",
            id="a rank",
        ),
        pytest.param(
            (costs(1.0, ranks=(Rank(9),)),), "takes 268 ms", "每步耗时 268 ms", id="a rank that costs little"
        ),
        pytest.param(
            (MAY_COST, costs(None, 39.0, kind="host_bound", ranks=()), costs(8.0, 47.0, **HOST)),
            "; the job itself could save 5.0 ms of it; rank 9 may cost 34.0 ms of it, others less: see below",
            "",
            id="both: the work saves what it adds",
        ),
        pytest.param((costs(8.0, **HOST),), "; host 2 may cost 8.0 ms of it: see below", "", id="a host"),
    ],
)  # fmt: skip
def test_a_healthy_job_says_what_is_listed_and_may_cost_something(findings, english, chinese):
    document = replace(builder.healthy().document, findings=findings)
    for said in (verdicts.verdict_sentence(document), verdicts.headline(document)):
        assert said.en.endswith(f"{english}.")
        assert said.zh.endswith(f"{chinese}。")


@pytest.mark.parametrize(
    "values",
    [
        pytest.param(
            {"cost_ms_per_step": 0.0, "cumulative_saving_ms": 0.0, "cost_high_ms": 20.0},
            id="the replay shows none",
        ),
        pytest.param(
            {**BOUND, "cumulative_saving_ms": None, "facts": (*builder.slow().facts, fact("cost_is_bound"))},
            id="nothing was replayed",
        ),
    ],
)
def test_where_no_cost_is_known_the_headline_says_what_the_costliest_finding_costs_at_most(values):
    document = builder.finds(builder.slow(**values)).document
    for said in (verdicts.verdict_sentence(document), verdicts.headline(document)):
        assert "up to 20.0 ms (up to 7.1 %) of it is lost to" in said.en
        assert "至多 20.0 ms" in said.zh
    assert "to 20.0 ms" not in verdicts.verdict_sentence(builder.degraded().document).en


def test_where_the_replay_is_far_off_the_headline_has_no_milliseconds():
    far_off = builder.slow(**{**BOUND, "cumulative_saving_ms": None, "cost_ms_per_step": None})
    said = verdicts.verdict_sentence(builder.finds(far_off).document)
    assert " ms (" not in said.en + said.zh


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
    links = (Link(Rank(5), Rank(4), transport), Link(Rank(5), Rank(6), transport))
    one = builder.slow(kind="slow_nic", ranks=(Rank(5),), links=links)
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
        ("slow_nic", (5, 13), ("1", "2"), "the slow rail of ranks 5,13", "卡 5,13 的慢轨道"),
        ("slow_nic", (5,), ("2",), "a slow network card of rank 5 of host 2", "卡 5（主机 2）的慢网卡"),
    ],
)
def test_page_and_terminal_name_whom_they_blame_in_the_same_words(
    kind: FaultKind, ranks: tuple[int, ...], hosts: tuple[str, ...], english: str, chinese: str
) -> None:
    blames = {"ranks": tuple(map(Rank, ranks)), "hosts": tuple(map(HostId, hosts)), "links": ()}
    one = builder.slow(kind=kind, **blames)
    blamed = builder.finds(one, builder.slow_link()).document
    assert subjects.subject(one) == Phrase(english, chinese)
    for said in (verdicts.verdict_sentence(blamed), verdicts.headline(blamed)):
        assert f"to {english} (12.3 ms)." in said.en


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
    def why(kind: str, sizes: ParallelSizes) -> str:
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
    ranks = tuple(map(Rank, (1, 4, 6)))
    one = builder.slow(kind="periodic_pause", severity="info", ranks=ranks, facts=(said,))
    document = replace(builder.finds(one).document, verdict="healthy")
    assert subjects.kind_name(one) == Phrase("scattered pauses", "零散停顿")
    assert "scattered pauses of 3 ranks may cost 12.3 ms of it" in verdicts.headline(document).en
    assert "3 张卡的零散停顿可能占其中 12.3 ms" in verdicts.headline(document).zh


def test_a_part_of_a_loss_that_is_all_of_it_is_not_told_twice() -> None:
    whole = builder.slow(cost_low_ms=12.3, cost_high_ms=14.1, cumulative_saving_ms=12.3)
    hidden = builder.slow_link(
        cost_ms_per_step=0.0, cost_low_ms=0.0, cost_high_ms=4.1, cumulative_saving_ms=12.3
    )
    said = verdicts.headline(builder.finds(whole, hidden).document).en
    assert said == "A step takes 283 ms; 12.3–14.1 ms (4.4–5.0 %) of it is lost to slow rank 5."


@pytest.mark.parametrize(
    ("hosts", "english", "chinese"),
    [
        (("2",), "a slow uplink of host 2", "主机 2 的慢上行链路"),
        (("2", "4"), "a slow uplink of hosts 2 and 4", "主机 2 与 4 的慢上行链路"),
        (tuple("24567"), "a slow uplink of hosts 2, 4, 5 and 2 more", "主机 2、4、5 等 5 台的慢上行链路"),
    ],
)
def test_several_hosts_are_many_in_both_languages(hosts: tuple[str, ...], english: str, chinese: str) -> None:
    one = builder.slow(kind="slow_uplink", ranks=(), hosts=tuple(map(HostId, hosts)))
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
