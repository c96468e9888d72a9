"""`cluster-analyse report OUT` and `trend DIR…`: what earlier outputs say, without raw data."""

from __future__ import annotations

import argparse
import json
import os
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from msgspec import Struct, structs

from cluster_analysis.command import exit_code, shown
from cluster_analysis.kept.loaded import is_output, load_document, load_result, output_of
from cluster_analysis.options import FailOn, add_format
from cluster_analysis.outputs.registry import TEXTS
from cluster_analysis.reports import html, runs_page
from cluster_analysis.reports.runs_page import ListedRun
from cluster_analysis.result import Reported
from cluster_analysis.sentences import subjects, verdicts
from cluster_analysis.sentences.costs import Cost
from cluster_run.command_line import Parser, add_language, exit_code_of, named_path
from cluster_run.errors import ExitCode, InputError, spoken
from cluster_run.layout import ANALYSIS_OUTPUT_NAME, REPORT_NAME
from cluster_run.said.chinese import Language
from cluster_run.said.tables import format_table
from cluster_run.standard_streams import write_result
from cluster_words.amounts import format_ms
from cluster_words.headings import say

#: Findings of one run that stand in its row.
_MAX_NAMED = 3


def query(argv: Sequence[str]) -> int:
    """Run one of the queries and return its exit code. Nothing is raised."""
    try:
        arguments = make_parser().parse_args(argv)
    except SystemExit as stop:
        return int(stop.code or 0)
    return exit_code_of("cluster-analyse", lambda: int(arguments.run(arguments)), wanted=arguments.lang)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the queries."""
    parser = Parser(prog="cluster-analyse")
    commands = parser.add_subparsers(title="without raw data", metavar="QUERY", required=True)
    report = commands.add_parser(
        "report", help="the findings of an earlier call again",
        description="Tells the findings of an output again, from findings.json and tables/. Writes nothing "
        "but the page that --page or --open asks for.",
    )  # fmt: skip
    help_of_output = "an output, or the run that holds it"
    report.add_argument("output", metavar="OUT", type=named_path, help=help_of_output)
    add_format(report)
    report.add_argument("--page", metavar="FILE", type=named_path, help="write the page, too")
    report.add_argument("--open", action="store_true", help="open the page in a browser")
    report.set_defaults(run=_report)
    trend = commands.add_parser(
        "trend", help="step, loss and findings by run",
        description="One row a run: when it was recorded, the mean step, what is lost of it, the findings. "
        "Each DIR is an output, a run that holds one, or a directory of such runs.",
    )  # fmt: skip
    trend.add_argument("directories", metavar="DIR", nargs="+", type=named_path, help=help_of_output)
    trend.add_argument("--json", action="store_true", help="a list of rows for programs")
    trend.add_argument("--page", metavar="FILE", type=named_path, help="write a page with a bar a run, too")
    trend.set_defaults(run=_trend)
    for one in (report, trend):
        add_language(one, " of the result on stdout, not of JSON")
    return parser


def _report(arguments: argparse.Namespace) -> int:
    folder = output_of(arguments.output)
    given = Reported(load_result(folder))
    page = arguments.page or (folder / REPORT_NAME if arguments.open else None)
    if page is not None and (arguments.page is not None or not page.exists()):
        _write_page(page, dict(html.files(given))[REPORT_NAME])
    write_result(TEXTS[arguments.format](given, shown(arguments.lang, is_verbose=False)))
    if arguments.open and page is not None:
        webbrowser.open(page.resolve().as_uri())
    return int(exit_code(given, FailOn()))


def _write_page(page: Path, content: bytes) -> None:
    try:
        page.write_bytes(content)
    except OSError as error:
        raise InputError(f"{page}: cannot be written: {spoken(error)}") from error


class Row(Struct, frozen=True):
    """One run of a trend; times in ms a step, None where they are not known."""

    run: str
    captured: str | None
    step_ms: float | None
    #: What all alarms cost together: at least, at most.
    lost_ms: float | None
    lost_high_ms: float | None
    verdict: str
    findings: tuple[str, ...]
    #: Why nothing is known of the run: its findings cannot be read.
    problem: str | None = None

    def cells(self, language: Language) -> tuple[str, ...]:
        """Return what a reader sees of it."""
        more = len(self.findings) - _MAX_NAMED
        named = ", ".join(self.findings[:_MAX_NAMED]) + (f" +{more}" if more > 0 else "")
        verdict = say(f"verdict.{self.verdict}").of(language)
        captured = (self.captured or "–").replace("T", " ")
        cost = Cost(self.lost_ms, self.lost_high_ms)
        is_told = cost.is_known and self.verdict != "healthy"
        lost = cost.phrase(self.step_ms).of(language) if is_told else "–"
        return (self.run, captured, format_ms(self.step_ms), lost, verdict, self.problem or named)


def outputs_of(directories: Sequence[Path]) -> list[tuple[Path, Row]]:
    """Return each output below `directories` and its row, by the time of the recording.

    A directory without an output, or with a damaged one, has a row that says so.

    Raises:
        InputError: no output can be read.
    """
    folders = list(dict.fromkeys(one for directory in directories for one in _outputs(directory)))
    found = [(folder, _row(folder)) for folder in folders]
    problems = [row.problem for _, row in found if row.problem is not None]
    if len(problems) == len(found):
        raise InputError(problems[0])
    return sorted(found, key=lambda one: one[1].captured or "")


def _outputs(directory: Path) -> list[Path]:
    if not is_output(directory) and directory.is_dir():
        inside = (path for one in sorted(directory.iterdir()) for path in (one, one / ANALYSIS_OUTPUT_NAME))
        found = [one for one in inside if is_output(one)]
        if found:
            return found
    own = (directory, directory / ANALYSIS_OUTPUT_NAME)
    return [next((one for one in own if is_output(one)), directory)]


def _row(folder: Path) -> Row:
    try:
        document = load_document(folder)
    except InputError as error:
        run = folder.resolve()
        name = run.parent.name if run.name == ANALYSIS_OUTPUT_NAME else run.name
        return Row(name, None, None, None, None, "unknown", (), str(error))
    nothing_ms = 0.0 if document.verdict == "healthy" else None
    lost = verdicts.lost_in_all(document) or Cost(nothing_ms, nothing_ms)
    return Row(
        document.run.name or folder.name,
        document.run.captured,
        document.run.step_ms,
        lost.low_ms,
        lost.high_ms,
        document.verdict,
        tuple(one.id for one in document.findings if one.is_alarm),
    )


def _address(folder: Path, page: Path) -> str:
    """Return where the report of an output is, seen from a page; empty without one."""
    report = folder / REPORT_NAME
    return quote(os.path.relpath(report, page.parent)) if report.is_file() else ""


def _listed(folder: Path, row: Row, page: Path) -> ListedRun:
    try:
        return ListedRun(row.run, _address(folder, page), load_result(folder))
    except InputError as error:
        return ListedRun(row.run, "", str(error))


def _trend(arguments: argparse.Namespace) -> int:
    found = outputs_of(arguments.directories)
    rows = [row for _, row in found]
    is_whole = all(row.problem is None for row in rows)
    if arguments.page is not None:
        listed = [_listed(folder, row, arguments.page) for folder, row in found]
        is_whole &= not any(isinstance(one.outcome, str) for one in listed)
        _write_page(arguments.page, runs_page.render(listed, runs_page.title_of_change(listed)))
    code = int(ExitCode.DONE if is_whole else ExitCode.INCOMPLETE)
    if arguments.json:
        write_result(json.dumps(list(map(structs.asdict, rows)), indent=1, ensure_ascii=False) + "\n")
        return code
    language = shown(arguments.lang, is_verbose=False).language
    heads = tuple(say("trend_columns").of(language).split("|"))
    cells = [[*map(subjects.plain, row.cells(language))] for row in rows]
    write_result(format_table(heads, cells))
    return code
