"""The verdict and up to ten lines worth reading, for a terminal. The only module that knows rich's tables."""

from __future__ import annotations

import io

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cluster_analysis.judge.baseline import Comparison
from cluster_analysis.reports import wording
from cluster_analysis.reports.commands import commands, place_text
from cluster_analysis.reports.since import since
from cluster_analysis.reports.words import load_dictionary
from cluster_analysis.result import AnalysisResult

_VERDICT_STYLES = {"healthy": "bold green", "degraded": "bold yellow", "unknown": "bold magenta"}
#: Healthy, degraded and unknown differ by sign too: colour alone is not enough.
_VERDICT_SIGNS = {"healthy": "✓", "degraded": "▲", "unknown": "?"}
_SEVERITY_STYLES = {"critical": "red", "warning": "yellow", "info": "dim"}
_SEVERITY_SIGNS = {"critical": "■", "warning": "▲", "info": "·"}
#: Ten lines are read; a hundred are scrolled away.
MAX_FINDINGS = 5
MAX_PROBLEMS = 3
MAX_CHANGES = 3
MAX_NOTES = 4
MAX_CHECKS = 3
MAX_PLACES = 2
_HOSTS_HINT = "--show-addresses names the hosts."
_MIN_WIDTH = 40


def render(result: AnalysisResult, width: int, colour: bool, baseline: Comparison | None = None) -> str:
    """Return the text for a terminal of `width` columns, with colours where `colour`; ends with a newline.

    With a baseline, what changed against it stands below the findings.
    """
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=max(width, _MIN_WIDTH),
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        highlight=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
        _environ={},
    )
    document = result.document
    style = _VERDICT_STYLES[document.verdict]
    verdict = Text(f"{_VERDICT_SIGNS[document.verdict]} {wording.verdict_sentence(document)}", style=style)
    console.print(verdict)
    console.print(Text(wording.run_line(document), style="dim"))
    if document.findings:
        console.print()
        console.print(_findings_table(result, console.width))
        _print_next_checks(result, console)
    if baseline is not None:
        _print_changes(baseline, console)
    _print_problems(result, console)
    # rich pads cells of a table to its width; trailing blanks are noise in a log.
    return "\n".join(line.rstrip() for line in stream.getvalue().rstrip("\n").split("\n")) + "\n"


def _findings_table(result: AnalysisResult, width: int) -> Table:
    findings = result.document.findings
    table = Table(box=None, show_header=True, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("", no_wrap=True)
    table.add_column("a step", justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    wide = width >= 100
    if wide:
        table.add_column("what", no_wrap=True)
    table.add_column("finding", overflow="fold")
    for finding in findings[:MAX_FINDINGS]:
        style = _SEVERITY_STYLES[finding.severity]
        cells = [
            Text(_SEVERITY_SIGNS[finding.severity], style=style),
            Text(wording.format_ms(finding.cost_ms_per_step)),
            Text(wording.format_share(finding.cost_share)),
        ]
        if wide:
            cells.append(Text(wording.kind_name(finding), style=style))
        table.add_row(*cells, Text(wording.plain(finding.summary)))
    if len(findings) > MAX_FINDINGS:
        more = f"{len(findings) - MAX_FINDINGS} more in findings.json and report.html"
        table.add_row(*[Text("")] * (4 if wide else 3), Text(more, style="dim"))
    return table


def _print_next_checks(result: AnalysisResult, console: Console) -> None:
    """What to do about the first finding, and about each other one that is an alarm; who the hosts are."""
    first, *rest = result.document.findings
    console.print()
    console.print(Text.assemble(("Next: ", "bold"), wording.plain(first.next_check)))
    alarms = [finding for finding in rest if finding.is_alarm]
    checks = list(
        dict.fromkeys(finding.next_check for finding in alarms if finding.next_check != first.next_check)
    )
    for check in checks[: MAX_CHECKS - 1]:
        console.print(Text.assemble(("Then: ", "bold"), wording.plain(check)))
    hosts = list(dict.fromkeys(host for finding in (first, *alarms) for host in finding.hosts))
    for place in first.places[:MAX_PLACES]:
        console.print(Text.assemble(("Where: ", "bold"), wording.plain(place_text(place, result))))
    for command in commands(first, result)[:MAX_PLACES]:
        # Not wrapped: it is copied.
        console.print(Text.assemble(("Run: ", "bold"), command.text), soft_wrap=True)
    known = [
        f"host {host} is {wording.plain(result.addresses[host])}"
        for host in hosts
        if host in result.addresses
    ]
    if known:
        console.print(Text("; ".join(known)))
    elif hosts:
        console.print(Text(_HOSTS_HINT, style="dim"))


def _print_changes(baseline: Comparison, console: Console) -> None:
    console.print()
    console.print(Text("Against the baseline", style="bold"))
    for _, phrase in since(baseline, load_dictionary()):
        console.print(Padding(Text(wording.plain(phrase.en)), (0, 0, 0, 2)))
    for sentence in baseline.summary[:MAX_CHANGES]:
        console.print(Padding(Text(wording.plain(sentence)), (0, 0, 0, 2)))
    if not baseline.summary and not any(change.is_certain for change in baseline.changes):
        nothing = "nothing could be compared" if baseline.refusals else "nothing moved beyond noise"
        console.print(Padding(Text(nothing), (0, 0, 0, 2)))
    for refusal in baseline.refusals[:MAX_CHANGES]:
        console.print(Padding(Text(f"not compared: {wording.plain(refusal)}", style="magenta"), (0, 0, 0, 2)))


def _print_problems(result: AnalysisResult, console: Console) -> None:
    document = result.document
    if document.problems:
        console.print()
        heading = f"{wording.count(len(document.problems), 'problem')}: some data is missing"
        console.print(Text(heading, style="magenta"))
        for index in range(min(MAX_PROBLEMS, len(document.problems))):
            console.print(Padding(Text(wording.problem_line(result, index)), (0, 0, 0, 2)))
        if len(document.problems) > MAX_PROBLEMS:
            console.print(Text(f"  and {len(document.problems) - MAX_PROBLEMS} more", style="dim"))
    for note in document.notes[: MAX_NOTES if document.verdict == "unknown" else 2]:
        console.print(Text(f"Note: {wording.plain(note)}", style="dim"))
