"""How the page is written: numbers stay with their units, and Chinese is that of the trade."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest

from cluster_analysis.reports.page import cube, traffic
from cluster_analysis.reports.page.assembly import ASSETS
from cluster_analysis.reports.timeline import perfetto
from cluster_analysis.sentences.costs import Cost
from cluster_analysis.sentences.verdicts import unknown_reason
from cluster_run.facts import fact
from cluster_run.kinds import OPEN_NOTES, FaultKind, WorkloadKind
from cluster_tell import metrics
from cluster_words import checks
from cluster_words.headings import words_of_page
from cluster_words.notes import WHY_OPEN, reasons
from cluster_words.pages import templates
from tests.analysis.copies import replace
from tests.analysis.reports import builder
from tests.analysis.reports.pages import Elements, on_terminal, page_of, ticket_of

#: A half-width bracket around Chinese, or right behind it.
_NARROW = re.compile(r"[\u4e00-\u9fff]\(|\([^()]*[\u4e00-\u9fff][^()]*\)")


@pytest.fixture(scope="module", params=["degraded", "unknown"])
def page(request) -> str:
    return page_of(getattr(builder, request.param)()).decode()


def test_no_line_ends_between_a_number_and_its_unit(page):
    said = re.findall(r'data-(?:en|zh)="([^"]*)"', page)
    assert any("\N{NO-BREAK SPACE}ms" in one for one in said)
    assert [one for one in said if re.search(r"\d (?:ms|s|µs|%|GB/s)(?![A-Za-z])|\d [张台步个]", one)] == []


def test_a_command_that_is_copied_keeps_its_plain_blanks(page):
    assert [one for one in re.findall(r'data-text="([^"]*)"', page) if "\N{NO-BREAK SPACE}" in one] == []


def test_chinese_brackets_are_as_wide_as_its_letters(page):
    said = [one for one in re.findall(r'data-zh="([^"]*)"', page) if _NARROW.search(one)]
    assert said == []
    assert [zh for _, zh in words_of_page().values() if _NARROW.search(zh)] == []


@pytest.mark.parametrize(
    ("key", "word"),
    [
        ("part.preparing", "预处理"),
        ("metric.preparing", "预处理时间"),
        ("metric.computing", "计算时间"),
        ("metric.overlapped", "计算通信间重叠时间"),
        ("metric.free", "空闲时间"),
        ("metric.bubble", "空泡时间"),
        ("metric.total", "总时间"),
        ("matrix.transport", "链路方式"),
        ("matrix.time", "传输时间"),
        ("matrix.size", "传输大小"),
        ("matrix.title", "通信矩阵"),
        ("groups.group", "通信域"),
        ("ranks.byrank", "卡序号"),
    ],
)
def test_words_are_those_of_mindstudio_insight(key, word):
    assert words_of_page()[key][1] == word


def test_what_can_be_put_right_stands_apart_from_what_cannot():
    notes = [fact("few_steps", n_steps=2), fact("unpaired_messages"), fact("no_operators")]
    document = replace(builder.unknown().document, notes=tuple(notes))
    several, alone = (
        reasons(replace(document, run=replace(document.run, expected_ranks=n_ranks))) for n_ranks in (8, 1)
    )
    assert [one.kind for one in several["mend"]] == ["no_operators", "few_steps"]
    assert [one.kind for one in several["bear"]] == ["unpaired_messages"]
    assert [one.kind for one in alone["bear"]] == ["unpaired_messages", "no_operators"]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_what_is_only_to_be_fetched_is_told_before_what_another_capture_or_nothing_would_put_right(order):
    notes = [
        fact("waiting_copied", share=0.9, step_share=0.25),
        fact("costly_unexplained", findings=("slow_rank-1",), step_share=0.06, n_steps=8),
        fact("waits_for_absent", step_share=0.17, wait_us=1e5, step=12, ranks=(15,)),
    ]
    whole = builder.unknown()
    run = replace(whole.document.run, ranks=8, expected_ranks=64)
    document = replace(whole.document, run=run, notes=tuple(notes[at] for at in order))

    assert unknown_reason(document).en == (
        "only 8 of 64 ranks could be read; 17 % of the step went into waiting for ranks without files, or "
        "for the network"
    )
    apart = reasons(document)
    assert [one.kind for one in apart["mend"]] == ["waits_for_absent", "costly_unexplained"]


@pytest.mark.parametrize("render", [lambda one: on_terminal(one, 80), ticket_of])
def test_what_could_not_be_judged_stands_before_the_findings_only_where_nothing_else_is_known(render):
    lacking = fact("ranks_missing", n_read=62, n_ranks=64, n_missing=2)
    degraded = builder.degraded()
    degraded = replace(degraded, document=replace(degraded.document, notes=(lacking,)))
    said, finding = "62 of 64 ranks", "Rank 5"
    for result, is_first in ((degraded, False), (builder.unknown_of(degraded), True)):
        text = " ".join(render(result).split())
        assert (text.index(said) < text.index(finding)) is is_first


def test_up_to_nothing_is_nothing():
    assert Cost(None, 0.0).phrase(700.0).en == "0 ms"
    assert Cost(None, 0.0).share(700.0).en == "0.0 %"
    assert Cost(None, 55.3).phrase(700.0).en == "up to 55.3 ms"
    assert Cost(None, None).phrase(700.0).en == "unknown"


def test_notes_that_leave_the_verdict_open_say_why_in_short():
    assert sorted(WHY_OPEN) == sorted(OPEN_NOTES)


def test_the_headline_of_one_rank_says_that_nothing_stands_beside_it():
    result = builder.unknown_of(builder.healthy(builder.Job(1, 1, 1, 5)))
    assert "one rank, and no other to compare it with" in Elements(page_of(result).decode()).text


# Each finding names the page of the documents that says what it means.
ROOT = Path(__file__).parents[3]
KINDS = (*get_args(FaultKind), *get_args(WorkloadKind))


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_site_it_is_a_heading_of_a_file_of_the_repository(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(checks.BASE_VARIABLE, raising=False)
    page = checks.page_of(SimpleNamespace(kind=kind))  # type: ignore[arg-type]
    for place in (page.en, page.zh):
        path, _, anchor = place.partition("#")
        assert re.search(f"^## {anchor}$", (ROOT / path).read_text("utf-8"), re.MULTILINE)


def test_with_a_site_it_is_its_address_and_the_site_takes_the_same_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(checks.BASE_VARIABLE, "https://docs.example/profiler/")
    page = checks.page_of(SimpleNamespace(kind="slow_rank"))  # type: ignore[arg-type]
    assert page.en == "https://docs.example/profiler/findings.html#slow_rank"
    assert page.zh == "https://docs.example/profiler/zh/findings.html#slow_rank"
    assert checks.BASE_VARIABLE in (ROOT / "mkdocs.yml").read_text("utf-8")


# docs/report.md says what the code does.
DOC = (Path(__file__).parents[3] / "docs" / "report.md").read_text("utf-8")


def grouped(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def test_every_metric_is_in_the_table_and_the_table_has_no_other():
    assert set(re.findall(r"^\| `(cluster_analysis_\w+)`", DOC, re.MULTILINE)) == set(metrics._MEANINGS)


def test_limits_of_the_page_are_those_of_the_code():
    assert f"up to {grouped(cube.MAX_CELLS)} ranks × steps" in DOC
    assert f"Up to {grouped(traffic.MAX_LINKS)} links" in DOC
    assert f"more than {grouped(perfetto.MAX_SLICES)} operators" in DOC


def test_version_of_the_chart_library_is_that_of_the_file():
    script = files("cluster_analysis.reports").joinpath("assets/uplot/uPlot.iife.min.js").read_text("utf-8")
    assert re.search(r"v([\d.]+)", script).group(1) in DOC


def test_every_template_compiles() -> None:
    environment = templates(ASSETS)
    names = environment.list_templates(extensions=["j2"])
    assert names
    for name in names:
        environment.get_template(name)
