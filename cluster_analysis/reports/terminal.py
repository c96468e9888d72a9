"""The verdict and what is worth a screen, for a terminal. The only module that knows rich's tables."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console
from rich.containers import Lines
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cluster_analysis.judge.baseline import Comparison
from cluster_analysis.reports.commands import commands, naming_command
from cluster_analysis.reports.step_time import cost_of_imbalance
from cluster_analysis.result import AnalysisResult, Reported, Shown
from cluster_analysis.sentences import changes, phrases, subjects, verdicts
from cluster_analysis.sentences.costs import Cost, cost_of
from cluster_run.findings import Finding, gains_ms
from cluster_run.said.chinese import SEMICOLON, Language
from cluster_run.said.line_breaks import kept_together, line_breaks
from cluster_words.checks import next_check
from cluster_words.findings import summary
from cluster_words.headings import say
from cluster_words.notes import TOLD, note, reasons
from cluster_words.phrase import Phrase, joined
from cluster_words.terms import VERDICT_SIGNS

_VERDICT_STYLES = {"healthy": "bold green", "degraded": "bold yellow", "unknown": "bold magenta"}
_SEVERITY_STYLES = {"critical": "red", "warning": "yellow", "info": "dim"}
_SEVERITY_SIGNS = {"critical": "■", "warning": "▲", "info": "·"}
#: A screen is read; a hundred lines are scrolled away.
MAX_FINDINGS = 5
MAX_PROBLEMS = 3
MAX_CHANGES = 3
MAX_NOTES = 4
MAX_CHECKS = 3
MAX_COMMANDS = 2
_MIN_WIDTH = 40


class _Prose(Text):
    """Text whose lines end where those of both languages may; rich's end between a number and its unit."""

    def wrap(self, console: Console, width: int, **how: Any) -> Lines:
        """Return its lines."""
        lines = self.divide(line_breaks(self.plain, width))
        for line in lines:
            line.rstrip()
        return lines


def _prose(text: str, style: str = "", *, lead: str = "", indent: int = 0) -> Padding:
    """Return text to print, after `lead` in bold. In padding, as rich makes its own class of bare text."""
    lines = _Prose.assemble((lead, "bold"), (kept_together(text), style))
    return Padding(lines, (0, 0, 0, indent))


def text(given: Reported, shown: Shown) -> str:
    """Return the report for stdout."""
    text = render(given.result, shown.width, shown.colour, given.comparison, shown.language)
    return text + _replay(given.result, shown.language) if shown.is_verbose else text


def render(
    result: AnalysisResult,
    width: int,
    colour: bool,
    baseline: Comparison | None = None,
    language: Language = "en",
) -> str:
    """Return the text for a terminal of `width` columns, with colours where `colour`; ends with a newline.

    With a baseline, what changed against it stands below the findings. `language` is that of all words.
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
    sentence = verdicts.verdict_sentence(document).of(language)
    console.print(_prose(f"{VERDICT_SIGNS[document.verdict]} {sentence}", style))
    imbalance = cost_of_imbalance(document)
    if imbalance is not None and imbalance.lost:
        console.print(_prose(imbalance.sentence().of(language)))
    console.print(_prose(phrases.run_line(document).of(language), "dim"))
    for one in reasons(document)["choose"]:
        console.print(_prose(subjects.plain(note(one).of(language))))
    if document.verdict == "unknown":  # what could not be judged, and what to do about it, is the news
        _print_problems(result, console, language)
    if document.findings:
        console.print()
        console.print(_findings_table(result, console.width, language))
        if _news(result):
            _print_next_checks(result, console, language)
    if baseline is not None:
        _print_changes(baseline, console, language)
    if document.verdict != "unknown":
        _print_problems(result, console, language)
    # rich pads cells of a table to its width; trailing blanks are noise in a log.
    lines = stream.getvalue().replace("\N{NO-BREAK SPACE}", " ").rstrip("\n").split("\n")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _news(result: AnalysisResult) -> list[Finding]:
    """Return the findings that take a row; one that costs nothing takes none, unless it is an alarm."""
    step_ms, findings = result.document.run.step_ms, result.document.findings
    gains = {one.id: Cost(None, gain_ms) for one, gain_ms in gains_ms(findings)}

    def is_nothing(one: Finding) -> bool:
        cost = cost_of(one)
        return cost.is_nothing(step_ms) and gains.get(one.id, cost).is_nothing(step_ms)

    return [one for one in findings if one.is_alarm or not is_nothing(one)]


def _findings_table(result: AnalysisResult, width: int, language: Language) -> Table:
    findings, step_ms = result.document.findings, result.document.run.step_ms
    shown = _news(result)[:MAX_FINDINGS]
    table = Table(box=None, show_header=bool(shown), pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("", no_wrap=True)
    table.add_column(say("costs").of(language), justify="right", no_wrap=True)
    table.add_column(say("share").of(language), justify="right", no_wrap=True)
    wide = width >= 100
    if wide:
        table.add_column(say("what").of(language), no_wrap=True)
    table.add_column(say("finding").of(language), overflow="fold")
    blanks = [""] * (4 if wide else 3)
    for finding, before in zip(shown, (None, *shown), strict=False):
        if not finding.is_alarm and (before is None or before.is_alarm):
            table.add_row(*blanks, Text(say("small").of(language), style="dim"))
        style = _SEVERITY_STYLES[finding.severity]
        cells = [
            Text(_SEVERITY_SIGNS[finding.severity], style=style),
            Text(cost_of(finding).phrase(step_ms).of(language)),
            Text(cost_of(finding).share(step_ms).of(language)),
        ]
        if wide:
            cells.append(Text(subjects.kind_name(finding).of(language), style=style))
        said = [summary(finding), *([_confidence(finding)] if finding.is_alarm else [])]
        table.add_row(*cells, _prose(subjects.plain(joined(said).of(language))))
    if len(findings) > len(shown):
        more = say("more_findings", n=len(findings) - len(shown)).of(language)
        table.add_row(*blanks, Text(more, style="dim"))
    return table


def _confidence(finding: Finding) -> Phrase:
    """Return how sure an alarm is, where it is not quite."""
    if finding.confidence == "high":
        return Phrase("", "")
    said = say(f"confidence.{finding.confidence}")
    return Phrase(f"{said.en.capitalize()}.", f"{said.zh}。")


def _replay(result: AnalysisResult, language: Language) -> str:
    """How well the replay fits, a line a figure; nothing where there is none."""
    lines = [
        f"  {phrases.format_metric(name, value)} {phrases.replay_phrase(name).of(language)}\n"
        for name, value in result.document.replay.items()
    ]
    return "".join((f"{say('method.replay').of(language)}\n", *lines)) if lines else ""


def _print_next_checks(result: AnalysisResult, console: Console, language: Language) -> None:
    """What to do about the first finding, and about each other one that is an alarm; who the hosts are."""
    document = result.document
    first, *rest = document.findings
    console.print()
    alarms = [finding for finding in rest if finding.is_alarm]
    checks = list(dict.fromkeys(next_check(finding).of(language) for finding in (first, *alarms)))
    for number, check in enumerate(checks[:MAX_CHECKS]):
        lead = say("then" if number else "next").of(language)
        console.print(_prose(subjects.plain(check), lead=lead))
    hosts = dict.fromkeys(host for finding in (first, *alarms) for host in finding.named_hosts)
    locate = subjects.locator(result)
    for place in first.named_places:
        where = subjects.plain(locate(place).of(language))
        console.print(_prose(where, lead=say("where").of(language)))
    for command in commands(first, result)[:MAX_COMMANDS]:
        # Not wrapped, because it is copied; with its host, so that it runs on the right one.
        at = "" if command.place is None else f"  # {subjects.plain(locate(command.place).of(language))}"
        console.print(Text.assemble((say("run").of(language), "bold"), command.text, at), soft_wrap=True)
    known = [
        say("host_is", host=host, address=subjects.plain(result.addresses[host]))
        for host in hosts
        if host in result.addresses
    ]
    if known:
        console.print(_prose(joined(known, SEMICOLON).of(language)))
    elif all(one.kind != "hosts_by_devices" for one in document.notes):  # else they are not known
        asked = [*hosts][: max(1, min(len(first.named_hosts), MAX_COMMANDS))]
        for naming, host in {naming_command(host, result): host for host in asked}.items():
            hint = say("which_machine", host=host, command=naming) if naming else say("hosts_hint")
            console.print(Text(subjects.plain(hint.of(language)), style="dim"), soft_wrap=bool(naming))


def _print_changes(baseline: Comparison, console: Console, language: Language) -> None:
    console.print()
    console.print(Text(say("baseline").of(language), style="bold"))
    for _, phrase in changes.since(baseline):
        console.print(_prose(subjects.plain(phrase.of(language)), indent=2))
    sentences = changes.summary(baseline)
    for sentence in sentences[:MAX_CHANGES]:
        console.print(_prose(subjects.plain(sentence.of(language)), indent=2))
    if not sentences:
        nothing = say("nothing_compared" if baseline.refusals else "nothing_moved").of(language)
        console.print(_prose(nothing, indent=2))
    for why in changes.refusals(baseline)[:MAX_CHANGES]:
        refused = subjects.plain(say("not_compared", why=why).of(language))
        console.print(_prose(refused, "magenta", indent=2))


def _print_problems(result: AnalysisResult, console: Console, language: Language) -> None:
    document = result.document
    reported = phrases.problem_groups(document)
    if reported:
        console.print()
        console.print(Text(say("problems", n=len(reported)).of(language), style="magenta"))
        for one in reported[:MAX_PROBLEMS]:
            console.print(_prose(phrases.problem_phrase(one, result).of(language), indent=2))
        if len(reported) > MAX_PROBLEMS:
            more = say("more_problems", n=len(reported) - MAX_PROBLEMS).of(language)
            console.print(Text(f"  {more}", style="dim"))
    _print_notes(result, console, language)


def _print_notes(result: AnalysisResult, console: Console, language: Language) -> None:
    """Print what could not be judged, first what can be put right, as on the page."""
    document = result.document
    apart = reasons(document)
    reported = [say(f"note.{name}", note=note(fact)) for name in TOLD for fact in apart[name]]
    most = MAX_NOTES if document.verdict == "unknown" else 2
    for one in reported[:most]:
        console.print(_prose(subjects.plain(one.of(language)), "dim"))
    if len(reported) > most:
        more = say("more_findings", n=len(reported) - most).of(language)
        console.print(Text(f"  {more}", style="dim"))
