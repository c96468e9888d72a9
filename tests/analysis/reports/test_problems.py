"""What many ranks lack alike is told once; findings.json keeps a row for each of them."""

from __future__ import annotations

import json

import pytest

from cluster_analysis.findings_json import document_to_json
from cluster_analysis.reports import html, markdown, terminal
from cluster_analysis.result import AnalysisResult
from cluster_run.facts import fact
from cluster_run.ids import HostId, Rank
from cluster_run.problem import Problem
from tests.analysis.copies import replace
from tests.analysis.reports import builder

MATRIX = "communication_matrix.json"


def lacking(ranks: range) -> AnalysisResult:
    """A healthy job of 32 ranks on four hosts; some of them have no matrix, and rank 7 lost its operators."""
    result = builder.healthy()
    rows = [
        Problem(fact("matrix_not_there"), MATRIX, Rank(rank), HostId(str(rank // 8 + 1))) for rank in ranks
    ]
    lost = Problem(fact("truncated", byte=9), "communication.json", Rank(7), HostId("1"))
    document = replace(result.document, problems=(*rows, lost))
    return replace(result, document=document)


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
    said, in_chinese = terminal.render(result, 300, False), terminal.render(result, 300, False, language="zh")
    assert "2 problems: some data is missing" in said
    assert english in said
    assert chinese in in_chinese
    assert "host 1, rank 7, communication.json: truncated at byte 9" in said
    assert said.count(MATRIX) == 1
    ticket = markdown.render(result).replace("\\", "")
    assert english in ticket
    assert ticket.count(MATRIX) == 1
    page = html.render(result).decode()
    assert "2 problems: some data is missing" in page
    assert english.split(", " + MATRIX, maxsplit=1)[0].rsplit(", ", maxsplit=1)[-1] in page
    assert page.count(f"<code>{MATRIX}</code>") == 1


def test_findings_json_has_a_row_for_each_rank() -> None:
    rows = json.loads(document_to_json(lacking(range(32)).document))["problems"]
    assert [row["rank"] for row in rows] == [*range(32), 7]
