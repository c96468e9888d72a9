"""The findings as Markdown, to be pasted into a ticket."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct, structs

from cluster_analysis.judge.baseline import Comparison
from cluster_analysis.reports.commands import commands
from cluster_analysis.reports.step_time import cost_of_imbalance
from cluster_analysis.result import AnalysisResult, Reported, Shown
from cluster_analysis.sentences import changes, phrases, subjects, verdicts
from cluster_analysis.sentences.costs import Cost, cost_of
from cluster_run.findings import Finding
from cluster_run.said.chinese import Language
from cluster_words import terms
from cluster_words.checks import next_check
from cluster_words.findings import chain, summary
from cluster_words.headings import say, term
from cluster_words.notes import TOLD, note, reasons
from cluster_words.phrase import Phrase

#: Places of one finding that are listed; more say nothing to a reader.
_MAX_PLACES = 8
#: Characters that Markdown or the HTML around it would read as markup.
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~!&])")


def text(given: Reported, shown: Shown) -> str:
    """Return the report for stdout; it shows no time but that of the recording."""
    return ticket_of(structs.replace(given, analysed=None), shown.language)


def ticket_of(given: Reported, language: Language = "en") -> str:
    """Return the whole report as GitHub-flavoured Markdown; ends with a newline."""
    document = given.result.document
    ticket = _Ticket(given.result, language)
    imbalance = cost_of_imbalance(document)
    lines = [
        f"## {ticket.said(say(f'verdict.{document.verdict}'))}",
        "",
        ticket.said(verdicts.verdict_sentence(document)),
        "",
        *([ticket.said(imbalance.sentence()), ""] if imbalance else []),
        ticket.said(phrases.run_line(document)),
        "",
        *ticket.chosen(),
        *ticket.header(given.analysed),
    ]
    open_points = [*ticket.problems(), *ticket.notes()]
    if document.verdict == "unknown":
        lines += open_points
    if document.findings:
        lines += ticket.findings_table()
        for number, finding in enumerate(document.findings, start=1):
            lines += ticket.details(number, finding)
    if given.comparison is not None:
        lines += ticket.changes(given.comparison)
    if document.verdict != "unknown":
        lines += open_points
    lines.append(f"<sub>cluster-analyse {_escaped(document.tool_version)}</sub>")
    return "\n".join(lines) + "\n"


class _Ticket(Struct, frozen=True):
    """A result, and the language in which it is written."""

    result: AnalysisResult
    language: Language

    def said(self, phrase: Phrase) -> str:
        return _escaped(phrase.of(self.language))

    def header(self, analysed: str | None) -> list[str]:
        """Return the facts that identify the run, for those who read the ticket later."""
        document = self.result.document
        facts = [self.said(one) for one in phrases.header_phrases(document, analysed)]
        lines = [" · ".join(facts), ""] if facts else []
        return [*lines, f"`{document.run.command}`", ""] if document.run.command else lines

    def chosen(self) -> list[str]:
        """Return the note on other jobs or windows that were not analysed."""
        document = self.result.document
        return [line for one in reasons(document)["choose"] for line in (self.said(note(one)), "")]

    def notes(self) -> list[str]:
        """Return what could not be judged, grouped by what can be done about it, as on the page."""
        document, lines = self.result.document, list[str]()
        apart = reasons(document)
        for name in TOLD:
            if notes := apart[name]:
                heading = self.said(say(f"notes.{name}"))
                lines += [f"### {heading}", "", *(f"- {self.said(note(one))}" for one in notes), ""]
        return lines

    def table(self, heads: str, rule: str, rows: Iterable[Sequence[str]]) -> list[str]:
        return [say(heads).of(self.language), rule, *(f"| {' | '.join(cells)} |" for cells in rows), ""]

    def findings_table(self) -> list[str]:
        rows = []
        step_ms = self.result.document.run.step_ms
        for number, finding in enumerate(self.result.document.findings, start=1):
            saved_ms = finding.cumulative_saving_ms
            cells = (
                say(f"severity.{finding.severity}"),
                subjects.kind_name(finding),
                subjects.named(finding, self.result),
                cost_of(finding).phrase(step_ms),
                cost_of(finding).share(step_ms),
                Cost(saved_ms, saved_ms).phrase(),
            )
            rows.append([str(number), *map(self.said, cells)])
        return self.table("finding_columns", "| ---: | --- | --- | --- | ---: | ---: | ---: |", rows)

    def details(self, number: int, finding: Finding) -> list[str]:
        check = f"{say('next').of(self.language)}{self.said(next_check(finding))}"
        lines = [f"### {number}. {self.said(summary(finding))}", "", check, ""]
        if finding.evidence:
            rows = [
                (
                    _escaped(one.metric),
                    *map(subjects.format_number, (one.value, one.peers_median, one.peers_mad)),
                    str(one.n_peers),
                )
                for one in finding.evidence
            ]
            lines += self.table("evidence_columns", "| --- | ---: | ---: | ---: | ---: |", rows)
        if finding.chain:
            waits = enumerate(chain(finding), start=1)
            lines += [*(f"{position}. {self.said(one)}" for position, one in waits), ""]
        lines += self.where(finding)
        traits = say(
            "traits",
            pattern=term(terms.PATTERNS, finding.pattern),
            cause=term(terms.CAUSES, finding.cause),
            confidence=term(terms.CONFIDENCES, finding.confidence),
        )
        return [*lines, self.said(traits), ""]

    def where(self, finding: Finding) -> list[str]:
        """Return the places of a finding, and what to run there."""
        locate = subjects.locator(self.result)
        places = [f"- {self.said(locate(place))}" for place in finding.places[:_MAX_PLACES]]
        if len(finding.places) > _MAX_PLACES:
            more = say("more_places", n=len(finding.places) - _MAX_PLACES)
            places.append(f"- {self.said(more)}")
        lines = [*places, ""] if places else []
        asked = commands(finding, self.result)
        if asked:
            code = [line for one in asked for line in (f"# {_in_code(one.where)}", one.text)]
            lines += ["```sh", *code, "```", ""]
        return lines

    def changes(self, baseline: Comparison) -> list[str]:
        sentences, refused = changes.summary(baseline), changes.refusals(baseline)
        lines = [
            f"### {self.said(say('baseline'))}",
            "",
            *(f"- {self.said(phrase)}" for _, phrase in changes.since(baseline)),
            *(f"- {self.said(sentence)}" for sentence in sentences[:8]),
        ]
        lines += [f"- {self.said(say('not_compared', why=why))}" for why in refused]
        certain = [change for change in baseline.changes if change.is_certain]
        if not certain:
            nothing = [] if sentences or refused else [self.said(say("nothing_moved"))]
            return [*lines, *nothing, ""]
        rows = [
            (
                _escaped(f"{change.what} {change.name}"),
                _escaped(change.metric),
                *map(subjects.format_number, (change.before, change.after)),
                f"{100 * change.change_share:+.1f} %",
                f"{100 * change.low_share:+.1f} … {100 * change.high_share:+.1f} %",
            )
            for change in certain[:20]
        ]
        return [*lines, "", *self.table("change_columns", "| --- | --- | ---: | ---: | ---: | ---: |", rows)]

    def problems(self) -> list[str]:
        groups = phrases.problem_groups(self.result.document)
        if not groups:
            return []
        return [
            f"### {self.said(say('problem_section'))}",
            "",
            *(f"- {self.said(phrases.problem_phrase(one, self.result))}" for one in groups),
            "",
        ]


def _in_code(text: str) -> str:
    """Return a name for a block of code, where nothing can be escaped: without what could be markup."""
    return re.sub(r"[<>`]", "", subjects.plain(text))


def _escaped(text: str) -> str:
    return _MARKUP.sub(r"\\\1", subjects.plain(text)).replace("\\<", "&lt;").replace("\\>", "&gt;")
