"""Every kind of fact has a sentence in both languages, of the same values; every finding one to act on."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import get_args

import pytest

from cluster_analysis.describe import rules
from cluster_analysis.reports import terminal
from cluster_analysis.reports.timeline import perfetto
from cluster_analysis.sentences import changes
from cluster_run.facts import Fact, fact, fact_of
from cluster_run.findings import Cause, Confidence, Finding, Pattern, Severity, Verdict, Wait
from cluster_run.ids import GroupRole, HostId, Rank, Step
from cluster_run.kinds import KINDS, OPEN_NOTES
from cluster_run.kinds import Part as LostTo
from cluster_run.problem import Problem
from cluster_run.said.chinese import in_chinese
from cluster_words import (
    checks,
    findings,
    headings,
    notes,
    problems,
    terms,
)
from cluster_words.phrase import fill
from cluster_words.texts import Template, texts
from tests.analysis.copies import replace
from tests.chinese import placeholders
from tests.layers import modules

TABLES: Mapping[str, tuple[Mapping[str, Template], tuple[str, ...]]] = {
    "open notes": (notes.WHY_OPEN, tuple(OPEN_NOTES)),
    "causes": (terms.CAUSES, get_args(Cause)),
    "patterns": (terms.PATTERNS, get_args(Pattern)),
    "confidences": (terms.CONFIDENCES, get_args(Confidence)),
    "lost": (terms.LOST, get_args(LostTo)),
    "chains": (findings.WAITS, ("late", "held_up")),
}
#: Sentences whose keys are what code names: kinds of facts, advice, parts of files, rules.
SAID: Mapping[str, Mapping[str, Template]] = {
    "findings": findings.SENTENCES,
    "notes": notes.SENTENCES,
    "reasons": problems.WHY,
    "advice": problems.ADVICE,
    "parts": problems.PARTS,
    "why left out": problems.REASONS,
    "refusals": changes.REFUSALS,
    "rules": checks.RULES,
}
#: Kinds that code puts together.
BUILT = {
    *(f"{who}_{what}" for who in ("rank", "host") for what in ("computing", "free", "preparing")),
    *findings.QUOTES,
}
FILES = [path for path in Path(headings.__file__).parent.glob("*.json") if path.name != "words.json"]
PAIRS = [
    *((name, key, pair) for name, (table, _) in TABLES.items() for key, pair in table.items()),
    *((name, key, pair) for name, table in SAID.items() for key, pair in table.items()),
    *(
        (f"{path.stem}, {name}", key, pair)
        for path in FILES
        for name, table in texts(path.stem).items()
        for key, pair in table.items()
    ),
]


def test_every_severity_and_verdict_has_its_sign_its_colour_and_its_word_on_the_page() -> None:
    page = headings.words_of_page()
    for table in (terminal._SEVERITY_SIGNS, terminal._SEVERITY_STYLES, perfetto._COLOURS):
        assert set(table) == set(get_args(Severity))
    for table in (terms.VERDICT_SIGNS, terminal._VERDICT_STYLES):
        assert set(table) == set(get_args(Verdict))
    assert {f"severity.{one}" for one in get_args(Severity)} <= set(page)


@pytest.mark.parametrize("name", TABLES)
def test_every_kind_has_a_sentence_and_no_sentence_is_of_no_kind(name: str) -> None:
    table, kinds = TABLES[name]
    assert set(table) == set(kinds)


def test_both_languages_speak_of_the_same_values() -> None:
    unlike = [
        f"{name}: {key}"
        for name, key, (english, chinese) in PAIRS
        if placeholders(english) != placeholders(chinese) or (english == chinese) != (key == "as_told")
    ]
    assert unlike == []


def test_no_name_stands_in_a_table_of_a_file_twice() -> None:
    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        names = [name for name, _ in pairs]
        assert sorted(set(names)) == sorted(names)
        return dict(pairs)

    assert len(FILES) > 5
    for path in FILES:
        json.loads(path.read_text("utf-8"), object_pairs_hook=once)


def test_every_kind_of_finding_has_a_name_and_something_to_look_at() -> None:
    for kind in KINDS:
        one = finding(kind)
        check = checks.next_check(one)
        assert check.en.endswith(".")
        assert re.search("[\u4e00-\u9fff]", check.zh)


#: Product code, taken apart, by module.
PARSED = {
    name: ast.parse(path.read_text("utf-8"))
    for name, path in modules().items()
    if name.startswith("cluster_")
}
TREES = list(PARSED.values())


def _texts_in(node: ast.AST) -> Iterator[str]:
    """Give the texts that an expression may be; a condition within it is none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from (*_texts_in(node.body), *_texts_in(node.orelse))


def test_every_kind_of_fact_that_the_code_names_has_a_sentence() -> None:
    calls = [one for tree in TREES for one in ast.walk(tree) if isinstance(one, ast.Call) and one.args]
    named = {
        text
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id == "fact"
        for text in _texts_in(call.args[0])
    }
    assert len(named) > 130
    # What a rule says is in cluster_words.checks, by the rule's name.
    assert named - {"rule_holds"} <= {kind for table in SAID.values() for kind in table}


def test_every_advice_that_the_code_names_has_a_sentence() -> None:
    given = [
        one.value
        for tree in TREES
        for one in ast.walk(tree)
        if (isinstance(one, ast.keyword) and one.arg == "advice")
        or (isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "advice")
    ]
    named = {text for one in given for text in _texts_in(one) if re.fullmatch(r"[a-z]+(_[a-z0-9]+)+", text)}
    assert len(named) > 20
    assert named <= set(problems.ADVICE)


@pytest.mark.parametrize("name", SAID)
def test_the_code_names_every_kind_that_has_a_sentence(name: str) -> None:
    # The usual advice on a reason stands beside the sentences.
    trees = [tree for module, tree in PARSED.items() if name == "advice" or "cluster_words" not in module]
    named = {
        one.value
        for tree in trees
        for one in ast.walk(tree)
        if isinstance(one, ast.Constant) and isinstance(one.value, str)
    }
    assert set(SAID[name]) - BUILT - named == set()


def test_every_rule_of_the_advice_has_its_two_sentences_and_no_sentence_is_of_no_rule() -> None:
    names = {one.name for one in rules.RULES}
    assert names == set(checks.RULES) == set(checks.RULE_CHECKS)


def test_every_problem_says_what_to_do() -> None:
    said = {kind: problems.advice(Problem(Fact(kind, (("told", "x"),)))) for kind in problems.WHY}
    assert [kind for kind, one in said.items() if not (one.en and re.search("[\u4e00-\u9fff]", one.zh))] == []


def test_of_many_runs_a_few_are_named() -> None:
    said = fill(("{runs:some}", "{runs:some}"), {"runs": tuple("abcdefghijk")})
    assert said.en == "a, b, c, d, e, f, g, h and 3 more"
    assert said.zh == "a、b、c、d、e、f、g、h 等，另有 3 个"
    assert fill(("{runs:some}", "{runs:some}"), {"runs": ("a", "b")}).en == "a, b"


@pytest.mark.parametrize(("cost_us", "says_so"), [(0.0, False), (4.0, False), (9e3, True)])
def test_covering_that_would_save_nothing_is_not_recommended(cost_us: float, says_so: bool) -> None:
    exposed = fact("exposed", exposed_us=3e5, step_share=0.3, moving_share=0.2, waiting_share=0.8, role="dp")
    one = replace(
        finding("exposed_communication"), facts=(exposed, fact("could_be_covered", cost_us=cost_us))
    )
    said = findings.summary(one)
    assert ("would save 9.0 ms a step" in said.en, "可节省 9.0 ms" in said.zh) == (says_so, says_so)
    assert ("would save" in said.en, "可节省" in said.zh) == (says_so, says_so)


TOOK = {"took_us": 6e5, "usual_us": 400.0, "op_type": "send", "n_steps": 3}
SLOWER = {"slower_share": 3.0, "transport": "HCCS", "n_seen": 12}


@pytest.mark.parametrize(
    ("said", "english", "chinese"),
    [
        (
            fact("operators_took_long", n_operators=4, ranks=(0, 1, 6, 7), **TOOK),
            "4 send operators among ranks 0-1,6-7 took 600 ms",
            "卡 0-1,6-7 之间的 4 个 send 耗时 600 ms",
        ),
        (
            fact("operators_took_long", n_operators=1, ranks=(0,), **TOOK),
            "1 send operator of rank 0 took",
            "卡 0 上的 1 个 send",
        ),
        (
            fact("operators_took_long_between", n_operators=2, src=6, dst=8, **TOOK),
            "2 send operators from rank 6 to rank 8 took",
            "卡 6 到卡 8 的 2 个 send",
        ),
        (
            fact("experts_uneven", spread_share=0.1, ranks=(26,), more_share=0.15),
            "in every step; rank 26 computes 15 % longer than the median rank",
            "卡 26 的计算时间比中位数长 15 %",
        ),
        (
            fact("operators_of_group", ranks=(0,), slower_share=3.0, n_others=2),
            "Communication of rank 0 takes 300 % longer",
            "卡 0 上的集合通信",
        ),
        (
            fact("port", n_links=1, **SLOWER),
            "port of rank 5 (host 1) takes 300 % longer for the same bytes than 1 other HCCS link (seen",
            "卡 5（主机 1）的 HCCS 端口传输相同数据的时间比其他 1 条 HCCS 链路长 300 %",
        ),
        (
            fact("nic", n_links=7, **SLOWER),
            "The NIC of rank 5 (host 1) takes 300 % longer for the same bytes than 7 other HCCS links (seen",
            "卡 5（主机 1）的网卡",
        ),
    ],
)
def test_numbers_fit_their_words_and_ranks_between_two_others_are_not_named(
    said: Fact, english: str, chinese: str
) -> None:
    one = replace(finding("slow_nic"), ranks=(Rank(5),), hosts=(HostId("1"),), facts=(said,))
    assert english in findings.summary(one).en
    assert chinese in findings.summary(one).zh


def test_of_a_rail_the_switch_is_to_be_looked_at_and_not_each_card() -> None:
    one = replace(
        finding("slow_nic"), ranks=(Rank(5), Rank(13)), hosts=(), facts=(fact("rail", n_links=7, **SLOWER),)
    )
    assert checks.next_check(one).en.startswith("Look at the leaf switch that joins the NICs of rank")
    assert checks.next_check(one).zh.startswith("检查连接卡 5")


@pytest.mark.parametrize("role", ["tp", "pp", "dp", "cp", "ep", "world", "unknown"])
def test_the_words_for_what_a_group_is_for_are_of_one_group(role: str) -> None:
    said = fill(("within a {role:term}", "{role:term}"), {"role": role})
    assert re.fullmatch(
        r"within a ([\w-]+ group|pipeline|group of all ranks|group of unknown purpose)", said.en
    )


@pytest.mark.parametrize("kind", ["unreadable", "unlistable"])
def test_what_the_user_may_not_read_is_to_be_permitted_and_not_collected_again(kind: str) -> None:
    said = problems.advice(Problem(Fact(kind, (("detail", "Permission denied"),))))
    assert said.en == "let the user who analyses read it: chmod -R a+rX"


@pytest.mark.parametrize(
    ("kind", "detail"),
    [
        ("not_database", "file is not a database"),
        ("not_database", "integer overflow"),
        ("not_database", "database disk image is malformed"),
        ("not_database", "no such column: TASK.startNs"),
        ("not_json", "Input data was truncated"),
        ("not_json", "Expected `object`, got `array` - at `$.step1`"),
        ("unreadable", "Permission denied"),
        ("not_read_on_host", "its reader was killed by signal 9"),
    ],
)
def test_what_is_wrong_with_a_damaged_file_is_told_in_the_readers_language(kind: str, detail: str) -> None:
    said = problems.WHY[kind]
    chinese = fill(said, {"detail": detail}).zh
    assert detail not in chinese
    assert not re.search("[a-z]{3,} [a-z]{2,}", chinese)
    assert detail in fill(said, {"detail": detail}).en


def test_words_that_nobody_knows_stay_as_they_were_said() -> None:
    assert in_chinese("some words of another program") == "some words of another program"


def test_a_finding_of_some_steps_says_which_and_never_every_step() -> None:
    said = findings.summary(finding("slow_rank", steps=(11, 12, 13, 14), n_steps=10))
    assert "in steps 11-14 (4 of 10)" in said.en
    assert "第 11-14 步，10 步中有 4 步" in said.zh
    assert "every" not in said.en
    assert "in step 12 (1 of 10)" in findings.summary(finding("slow_rank", steps=(12,), n_steps=10)).en
    assert "in every step" in findings.summary(finding("slow_rank", steps=(1, 2), n_steps=2)).en
    assert "in the only step" in findings.summary(finding("slow_rank", steps=(1,), n_steps=1)).en


@pytest.mark.parametrize("kind", ["slow_rank", "slow_host", "slow_link"])
def test_a_chain_is_told_in_both_languages_with_its_numbers(kind) -> None:
    for role, waits_for, n_ranks in product(get_args(GroupRole), ("late", "held_up"), (1, 7)):
        (row,) = findings.chain(finding(kind, chain=(Wait(role, waits_for, n_ranks, Rank(29), 78.3),)))
        assert not re.search("[A-Za-z]{3}", row.zh)
        for number in (str(n_ranks), "29", "78.3 ms"):
            assert number in row.en
            assert number in row.zh
        assert (" waits " in row.en) == (n_ranks == 1)


def test_a_fact_survives_json() -> None:
    one = fact("matrix_kernels", kernels=(("MatMulV2", 0.23), ("Add", 0.2)))
    assert fact_of(one.plain()) == one


def finding(
    kind: str, *, steps: tuple[int, ...] = (1, 2), n_steps: int = 2, chain: tuple[Wait, ...] = ()
) -> Finding:
    """A finding of rank 13 on host 2."""
    said = fact("rank_computing", slower_share=0.22, n_peers=15, role=("stage", 0), n_steps=n_steps)
    return Finding(
        id=f"{kind}-13",
        kind=kind,  # type: ignore[arg-type]
        severity="warning",
        ranks=(Rank(13),),
        hosts=(HostId("2"), HostId("3")),
        links=(),
        cause="compute",
        pattern="persistent",
        steps=tuple(map(Step, steps)),
        cost_ms_per_step=1.0,
        cost_share=0.01,
        cumulative_saving_ms=1.0,
        confidence="high",
        evidence=(),
        facts=(said,),
        chain=chain,
    )


@pytest.mark.parametrize("kind", ["late_first_operator", "devices_idle"])
def test_a_time_of_all_ranks_that_is_a_median_says_so_as_its_cost_is_not(kind: str) -> None:
    english, chinese = findings.SENTENCES[kind]
    assert "_us:ms} (median)" in english
    assert "_us:ms}（中位数）" in chinese
