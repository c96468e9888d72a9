"""The registry of reports: each is one module and one line, and writes what it says it owns."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_analysis.cli import main
from cluster_analysis.outputs import everything
from cluster_analysis.outputs.registry import FILES, TEXTS, FileReport
from cluster_analysis.result import Reported, Shown
from tests.analysis.outputs import longest_step
from tests.analysis.reports import builder
from tests.analysis.reports.test_perfetto import collectives
from tests.analysis.runs import write_small_run

OF_A_REPORT = Reported(
    builder.degraded(),
    builder.comparison(),
    "2026-01-01T00:00:00Z",
    lambda: collectives([tuple(range(0, 32, 8))], dict.fromkeys(range(32), 0.0), n_ops=3),
)


@pytest.mark.parametrize("report", FILES, ids=lambda report: report.owned)
def test_a_report_writes_what_it_owns_and_nothing_else(report: FileReport) -> None:
    written = dict(report.files(OF_A_REPORT))
    assert written
    assert {name.partition("/")[0] for name in written} == {report.owned}
    assert all(written.values())


@pytest.mark.parametrize("report", FILES, ids=lambda report: report.owned)
def test_the_same_result_gives_the_same_bytes(report: FileReport) -> None:
    assert dict(report.files(OF_A_REPORT)) == dict(report.files(OF_A_REPORT))


def test_the_findings_are_written_last() -> None:
    assert FILES[-1].owned == "findings.json"


@pytest.mark.parametrize("name", TEXTS)
def test_every_format_tells_the_slow_rank(name: str) -> None:
    text = TEXTS[name](OF_A_REPORT, Shown())
    assert "5" in text
    assert text.endswith("\n")


@pytest.mark.slow
def test_a_new_report_is_one_module_and_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, folder = write_small_run(tmp_path / "run"), tmp_path / "out"
    command = [str(run), "--output", str(folder), "-q", "--scheduler=threads", "--no-report"]
    line = FileReport(longest_step.files, "longest_step.txt", "the longest step")
    monkeypatch.setattr(everything, "FILES", (line, *FILES))
    assert main(command) == 0
    assert (folder / "longest_step.txt").read_text().endswith(" ms\n")

    unwanted = FileReport(line.files, line.owned, line.holds, lambda options: options.write_report)
    monkeypatch.setattr(everything, "FILES", (unwanted, *FILES))
    (folder / "longest_step.txt").write_text("older")
    assert main(command) == 0
    assert (folder / "longest_step.txt").read_text() == "older"  # what a call does not write stays
