"""The verdict and what is worth a screen, for a terminal. The only module that knows rich's tables."""

from __future__ import annotations

import io
from typing import Any

from msgspec import Struct
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
    """Return the report for stdout: what was found, and below it what changed since a baseline."""
    result, stream = given.result, io.StringIO()
    console = Console(
        file=stream,
        width=max(shown.width, _MIN_WIDTH),
        force_terminal=shown.colour,
        color_system="standard" if shown.colour else None,
        no_color=not shown.colour,
        highlight=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
        _environ={},
    )
    document, screen = result.document, _Screen(result, console, shown.language)
    sentence = verdicts.verdict_sentence(document).of(shown.language)
    sign, style = VERDICT_SIGNS[document.verdict], _VERDICT_STYLES[document.verdict]
    console.print(_prose(f"{sign} {sentence}", style))
    imbalance = cost_of_imbalance(document)
    if imbalance is not None and imbalance.lost:
        screen.say(imbalance.sentence())
    screen.say(phrases.run_line(document), "dim")
    for one in reasons(document)["choose"]:
        screen.say(note(one))
    if document.verdict == "unknown":  # what could not be judged, and what to do about it, is the news
        screen.problems()
    if document.findings:
        console.print()
        console.print(_findings_table(result, console.width, shown.language))
        if _news(result):
            screen.next_checks()
    if given.comparison is not None:
        screen.changes(given.comparison)
    if document.verdict != "unknown":
        screen.problems()
    # rich pads cells of a table to its width; trailing blanks are noise in a log.
    lines = stream.getvalue().replace("\N{NO-BREAK SPACE}", " ").rstrip("\n").split("\n")
    written = "\n".join(line.rstrip() for line in lines) + "\n"
    return written + _replay(result, shown.language) if shown.is_verbose else written


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


class _Screen(Struct, frozen=True):
    """What is printed of a result, where, and in which language."""

    result: AnalysisResult
    console: Console
    language: Language

    def say(self, phrase: Phrase, style: str = "", *, lead: Phrase | None = None, indent: int = 0) -> None:
        said = subjects.plain(phrase.of(self.language))
        lead_text = "" if lead is None else lead.of(self.language)
        self.console.print(_prose(said, style, lead=lead_text, indent=indent))

    def next_checks(self) -> None:
        """Print what to do about the first finding, and about other alarms; who the hosts are."""
        result, document = self.result, self.result.document
        first, *rest = document.findings
        self.console.print()
        alarms = [finding for finding in rest if finding.is_alarm]
        checks = {one.of(self.language): one for one in map(next_check, (first, *alarms))}
        for number, check in enumerate([*checks.values()][:MAX_CHECKS]):
            self.say(check, lead=say("then" if number else "next"))
        hosts = dict.fromkeys(host for finding in (first, *alarms) for host in finding.named_hosts)
        locate = subjects.locator(result)
        for place in first.named_places:
            self.say(locate(place), lead=say("where"))
        for command in commands(first, result)[:MAX_COMMANDS]:
            # Not wrapped, because it is copied; with its host, so that it runs on the right one.
            where = "" if command.place is None else subjects.plain(locate(command.place).of(self.language))
            line = ((say("run").of(self.language), "bold"), command.text, f"  # {where}" if where else "")
            self.console.print(Text.assemble(*line), soft_wrap=True)
        known = [
            say("host_is", host=host, address=subjects.plain(result.addresses[host]))
            for host in hosts
            if host in result.addresses
        ]
        if known:
            self.say(joined(known, SEMICOLON))
        elif all(one.kind != "hosts_by_devices" for one in document.notes):  # else they are not known
            asked = [*hosts][: max(1, min(len(first.named_hosts), MAX_COMMANDS))]
            for naming, host in {naming_command(host, result): host for host in asked}.items():
                hint = say("which_machine", host=host, command=naming) if naming else say("hosts_hint")
                told = subjects.plain(hint.of(self.language))
                self.console.print(Text(told, style="dim"), soft_wrap=bool(naming))

    def changes(self, baseline: Comparison) -> None:
        self.console.print()
        self.console.print(Text(say("baseline").of(self.language), style="bold"))
        sentences = changes.summary(baseline)
        told = [*(phrase for _, phrase in changes.since(baseline)), *sentences[:MAX_CHANGES]]
        if not sentences:
            told.append(say("nothing_compared" if baseline.refusals else "nothing_moved"))
        for phrase in told:
            self.say(phrase, indent=2)
        for why in changes.refusals(baseline)[:MAX_CHANGES]:
            self.say(say("not_compared", why=why), "magenta", indent=2)

    def problems(self) -> None:
        """Print problems, and what could not be judged: first what can be put right, as on the page."""
        document = self.result.document
        reported = phrases.problem_groups(document)
        if reported:
            self.console.print()
            heading = say("problems", n=len(reported)).of(self.language)
            self.console.print(Text(heading, style="magenta"))
        for group in reported[:MAX_PROBLEMS]:
            self.say(phrases.problem_phrase(group, self.result), indent=2)
        self._more("more_problems", len(reported) - MAX_PROBLEMS)
        apart = reasons(document)
        notes = [say(f"note.{name}", note=note(fact)) for name in TOLD for fact in apart[name]]
        most = MAX_NOTES if document.verdict == "unknown" else 2
        for one in notes[:most]:
            self.say(one, "dim")
        self._more("more_findings", len(notes) - most)

    def _more(self, key: str, n: int) -> None:
        if n > 0:
            self.console.print(Text(f"  {say(key, n=n).of(self.language)}", style="dim"))
