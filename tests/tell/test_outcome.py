from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_analysis.findings_json import document_to_json, read_document
from cluster_run.errors import ExitCode, InputError, SchemaError
from cluster_run.facts import fact
from cluster_run.host_names import HostNames
from cluster_run.ids import HostId, Rank
from cluster_run.problem import Problem
from cluster_tell.outcome import (
    Outcome,
    outcome_from_text,
    outcome_text,
    outcome_to_line,
    without_names,
)
from cluster_tell.teller import TellWhen, is_worth_telling, message_text
from cluster_tell.verdict import FindingLine, Verdict, verdict_of
from tests.analysis.reports import builder

_SLOW = FindingLine("slow_rank-15", "slow_rank", "warning", "Rank 15 computes 22 % slower.", 12.34, 0.044)
_INFO = FindingLine("small_packets-0", "small_packets", "info", "Many small packets.", None, None)
_HEALTHY = Verdict("healthy", 8, 8, (), ())
_METRICS = """\
# HELP cluster_analysis_verdict 1 for the verdict that holds, 0 for the others.
# TYPE cluster_analysis_verdict gauge
cluster_analysis_verdict{verdict="healthy"} 1
cluster_analysis_step_seconds 0.2827
"""


def an_outcome(
    verdict: Verdict | None, state: str = "analysed", reason: str = "", metrics: str = ""
) -> Outcome:
    return Outcome(
        "12",
        "train",
        "FAILED",
        state,
        ExitCode.DONE,
        Path("/r"),
        verdict,
        reason,
        metrics,  # type: ignore[arg-type]
    )


def test_the_line_names_the_job_its_end_the_worst_finding_with_its_cost_and_the_page() -> None:
    verdict = Verdict("degraded", 8, 8, (_SLOW, _SLOW, _INFO), ("host 1: unreachable",))
    assert an_outcome(verdict).line == (
        "job 12 train (FAILED): degraded: Rank 15 computes 22 % slower (12.3 ms a step, 4.4 % of the step). "
        "1 more finding. 1 problem: host 1: unreachable. See /r/report.html"
    )


def test_healthy_and_could_not_tell_do_not_look_alike() -> None:
    unknown = Verdict("unknown", 0, 8, (), ("rank 3: truncated",))
    assert "nothing to look at" in an_outcome(_HEALTHY).line
    assert "nothing to look at" not in an_outcome(unknown).line
    assert "could not tell" in an_outcome(unknown).line


def test_a_verdict_on_a_part_of_the_data_says_so() -> None:
    line = an_outcome(_HEALTHY, reason="cluster-collect did not end within 5 s and was stopped").line
    assert "Not all was collected: cluster-collect did not end within 5 s" in line


def test_a_jobs_name_cannot_forge_a_line_or_colour_a_terminal() -> None:
    outcome = replace(an_outcome(None, "failed", "no\ndata"), job_name="x\njob 13: healthy\x1b[31m")
    assert outcome.line == "job 12 x job 13: healthy [31m (FAILED): not analysed: no data"


def test_a_failed_outcome_says_why() -> None:
    assert an_outcome(None, "failed", "no data").line == "job 12 train (FAILED): not analysed: no data"


@pytest.mark.parametrize(
    ("outcome", "told_by"),
    [
        (an_outcome(_HEALTHY), {"always"}),
        (an_outcome(Verdict("healthy", 8, 8, (_INFO,), ())), {"always"}),
        (an_outcome(Verdict("degraded", 8, 8, (_SLOW,), ())), {"always", "findings", "problems"}),
        (an_outcome(Verdict("healthy", 8, 8, (), ("x",))), {"always", "problems"}),
        (an_outcome(Verdict("unknown", 0, 8, (), ())), {"always", "problems"}),
        (an_outcome(None, "failed", "x"), {"always", "problems"}),
        (an_outcome(None, "nothing", "x"), {"always"}),
    ],
)
def test_people_are_told_only_what_they_asked_for(outcome: Outcome, told_by: set[TellWhen]) -> None:
    every: tuple[TellWhen, ...] = ("findings", "problems", "always", "never")
    assert {when for when in every if is_worth_telling(outcome, when)} == told_by


def test_a_message_names_a_few_findings_and_never_a_hundred() -> None:
    text = message_text(an_outcome(Verdict("degraded", 8, 8, (_SLOW,) * 100, ())))
    assert text.count("\n") == 3


@pytest.mark.parametrize(
    "outcome",
    [
        an_outcome(Verdict("degraded", 8, 8, (_SLOW, _INFO), ("p",)), metrics=_METRICS),
        an_outcome(None, "failed", "x"),
    ],
)
def test_an_outcome_travels_as_text_unchanged(outcome: Outcome) -> None:
    assert outcome_from_text(outcome_to_line(outcome)) == outcome
    assert json.loads(outcome_text(outcome))["line"] == outcome.line


_DEEP = ("[" * 100_000, '{"schema": ' + "[" * 900 + "]" * 900 + "}")


@pytest.mark.parametrize("text", ["", "Traceback", "[]", "{}", '{"schema": "cluster-hook/9"}', *_DEEP])
def test_what_a_crashed_worker_left_is_no_outcome(text: str) -> None:
    with pytest.raises(InputError):
        outcome_from_text(text)


def a_verdict(directory: Path, *problems: Problem) -> Verdict:
    path = directory / "findings.json"
    path.write_text(document_to_json(replace(builder.degraded().document, problems=problems)))
    return verdict_of(read_document(path))


def test_findings_are_read_with_their_problems_in_words(tmp_path: Path) -> None:
    lost = Problem(fact("truncated", byte=9), "communication.json", Rank(7), HostId("1"))
    verdict = a_verdict(tmp_path, lost)
    assert verdict.problems == ("host 1, rank 7, communication.json: truncated at byte 9",)
    assert verdict.problems_zh[0].startswith("主机 1，卡 7，communication.json：")
    assert verdict.alarms[0].text().startswith("Rank 5 ")


def test_a_message_says_why_nothing_could_be_told() -> None:
    verdict = verdict_of(builder.unknown().document)

    assert "could not tell if anything is wrong: only 2 of 32 ranks could be read" in verdict.headline()
    assert verdict.headline("zh").startswith("无法判断：32 张卡中只读取了 2 张；")


@pytest.mark.parametrize(
    ("costs", "told"),
    [
        ((28.8, 0.1, 28.8, 31.4), "(28.8–31.4 ms a step, 10.0–10.9 % of the step)"),
        ((None, None, None, 55.3), "(up to 55.3 ms a step)"),
        ((12.3, None, None, None), "(12.3 ms a step)"),
    ],
)
def test_a_message_tells_the_range_of_a_cost_or_its_bound(costs, told) -> None:
    alone_ms, share, low_ms, high_ms = costs
    line = FindingLine(
        "a", "slow_rank", "warning", "S.", alone_ms, share, cost_low_ms=low_ms, cost_high_ms=high_ms
    )

    assert line.text() == f"S {told}."


def test_a_message_tells_a_cost_that_may_be_more_as_the_least() -> None:
    document = builder.degraded().document
    first, *rest = document.findings
    least = replace(first, cost_low_ms=3.0, facts=(*first.facts, fact("cost_at_least")))
    verdict = verdict_of(replace(document, findings=(least, *rest)))

    assert "(at least 3.0 ms a step, at least 1.1 % of the step)" in verdict.alarms[0].text()


def test_a_message_in_chinese_is_made_of_the_facts_of_the_findings() -> None:
    outcome = replace(an_outcome(verdict_of(builder.degraded().document)), job_name="")

    assert message_text(outcome, "zh").splitlines() == [
        "作业 12（FAILED）：性能劣化：卡 5（主机 1）的计算比流水线阶段 0 的 15 张同类卡慢 22 %（每一步）"
        "（每步损失 12.3 ms，占 4.4 %）。卡 5 = 主机 1 / 设备 5。另有 1 个发现项。见 /r/report.html",
        "• 卡 2 与 10 之间的 RDMA 链路传输相同数据的时间比其他 31 条 RDMA 链路长 201 %（观测 40 次）。"
        "也可能是卡 10 的网卡或主机之间的网络：作业在此处没有使用其他链路，无法区分"
        "（每步损失 4.1 ms，占 1.5 %）。卡 2 = 主机 1 / 设备 2；卡 10 = 主机 2 / 设备 2。",
    ]
    assert outcome_from_text(outcome_text(outcome)) == outcome


def test_findings_without_facts_are_told_in_english_rather_than_not_at_all() -> None:
    text = message_text(an_outcome(Verdict("degraded", 8, 8, (_SLOW,), ("host 1: unreachable",))), "zh")

    assert text.startswith(
        "作业 12 train（FAILED）：性能劣化：Rank 15 computes 22 % slower（每步损失 12.3 ms"
    )
    assert "1 个问题：host 1: unreachable。" in text


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        *((one, InputError, "json") for one in ("", "{", "[]", '{"schema": "cluster-findings/1"}')),
        (None, InputError, "json: cannot be read: "),
        ('{"schema": "cluster-findings/2"}', SchemaError, "cluster-findings/2.*cluster-findings/1"),
    ],
)
def test_findings_that_are_not_whole_or_of_another_version_are_refused(
    tmp_path: Path, text: str | None, error: type[Exception], said: str
) -> None:
    path = tmp_path / "findings.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(error, match=said) as refused:
        read_document(path)
    assert "findings.json" in str(refused.value)


def test_thousands_of_broken_captures_are_a_number_in_a_record(tmp_path: Path) -> None:
    broken = [Problem(fact("unreadable", detail="x" * 200), rank=Rank(rank)) for rank in range(3000)]
    outcome = an_outcome(a_verdict(tmp_path, *broken))
    assert "3000 problems" in outcome.line
    assert len(outcome_text(outcome)) < 30_000
    assert outcome_from_text(outcome_to_line(outcome)) == outcome


_NAMES = HostNames([("node1.cluster", "10.0.0.1"), ("node2.cluster",), ("node12.cluster",)])


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("node1.cluster: refused", "host 1: refused"),
        ("NODE2: refused", "host 2: refused"),
        ("node12 and node1", "host 3 and host 1"),
        ("node123 is another", "node123 is another"),
        ("no directory /prof/node2/x", "no directory /prof/host 2/x"),
        ("10.0.0.1 port 22", "host 1 port 22"),
        ("connect to 192.168.7.9: refused", "connect to (an address): refused"),
        ("connect to [fe80::1%eth0]:22", "connect to [(an address)]:22"),
        ("connect to ::1 failed", "connect to (an address) failed"),
        ("Slurm 22.05.8 at 12:03:11", "Slurm 22.05.8 at 12:03:11"),
        ("ranks 1:2, a std::vector, 1.2.3.4.5", "ranks 1:2, a std::vector, 1.2.3.4.5"),
    ],
)
def test_a_text_names_hosts_by_their_numbers_and_holds_no_address(text: str, hidden: str) -> None:
    assert _NAMES.hidden(text) == hidden


def test_without_known_hosts_addresses_are_hidden_all_the_same() -> None:
    assert HostNames([]).hidden("10.0.0.1: refused") == "(an address): refused"


def test_every_sentence_of_an_outcome_is_without_names() -> None:
    finding = FindingLine("a", "slow_host", "warning", "Host node2 is slow.", 1.0, 0.1)
    verdict = Verdict("degraded", 8, 8, (finding,), ("node1.cluster: gone",))
    outcome = Outcome("1", "t", "", "analysed", ExitCode.DONE, Path("/r"), verdict, "10.0.0.1 is silent")
    line = without_names(outcome, _NAMES).line
    assert "node" not in line
    assert "10.0.0.1" not in line
    assert "host 2 is slow" in line
