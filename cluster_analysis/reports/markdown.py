"""The findings as Markdown, to be pasted into a ticket."""

from __future__ import annotations

import re

from cluster_analysis.judge.baseline import Comparison
from cluster_analysis.reports import wording
from cluster_analysis.reports.commands import commands, place_text
from cluster_analysis.reports.header import header_line
from cluster_analysis.reports.since import since
from cluster_analysis.reports.words import load_dictionary
from cluster_analysis.result import AnalysisResult
from cluster_run.findings import Finding, FindingsDocument

#: Characters that Markdown or the HTML around it would read as markup.
_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~!&])")


def render(result: AnalysisResult, baseline: Comparison | None = None, analysed: str | None = None) -> str:
    """Return the whole report as GitHub-flavoured Markdown; ends with a newline.

    `analysed` is the time to be told, where the document holds none.
    """
    document = result.document
    lines = [
        f"## {document.verdict.capitalize()}",
        "",
        _escaped(wording.verdict_sentence(document)),
        "",
        _escaped(wording.run_line(document)),
        "",
        *_header(document, analysed),
    ]
    if document.findings:
        lines += _findings_table(result)
        for number, finding in enumerate(document.findings, start=1):
            lines += _details(number, finding, result)
    if baseline is not None:
        lines += _changes(baseline)
    lines += _problems(result)
    if document.notes:
        lines += ["### What could not be judged", "", *(f"- {_escaped(note)}" for note in document.notes), ""]
    lines.append(f"<sub>cluster-analyse {_escaped(document.tool_version)}</sub>")
    return "\n".join(lines) + "\n"


def _header(document: FindingsDocument, analysed: str | None) -> list[str]:
    """Return which run it is, for those who read the ticket on another day."""
    facts = [_escaped(text) for text in header_line(document, analysed)]
    lines = [" · ".join(facts), ""] if facts else []
    return [*lines, f"`{document.run.command}`", ""] if document.run.command else lines


def _findings_table(result: AnalysisResult) -> list[str]:
    rows = [
        "| # | severity | what | who | cost a step | share | saved so far |",
        "| ---: | --- | --- | --- | ---: | ---: | ---: |",
    ]
    for number, finding in enumerate(result.document.findings, start=1):
        cells = (
            str(number),
            finding.severity,
            wording.kind_name(finding),
            _escaped(wording.culprit(finding, result)),
            wording.format_ms(finding.cost_ms_per_step),
            wording.format_share(finding.cost_share),
            wording.format_ms(finding.cumulative_saving_ms),
        )
        rows.append(f"| {' | '.join(cells)} |")
    return [*rows, ""]


def _details(number: int, finding: Finding, result: AnalysisResult) -> list[str]:
    lines = [f"### {number}. {_escaped(finding.summary)}", "", f"Next: {_escaped(finding.next_check)}", ""]
    if finding.evidence:
        lines += ["| metric | value | median of peers | MAD | peers |", "| --- | ---: | ---: | ---: | ---: |"]
        lines += [
            f"| {_escaped(one.metric)} | {wording.format_number(one.value)} | "
            f"{wording.format_number(one.peers_median)} | {wording.format_number(one.peers_mad)} | "
            f"{one.n_peers} |"
            for one in finding.evidence
        ]
        lines.append("")
    if finding.chain:
        lines += [f"{position}. {_escaped(link)}" for position, link in enumerate(finding.chain, start=1)]
        lines.append("")
    lines += _where(finding, result)
    facts = f"{finding.pattern}, cause {finding.cause}, confidence {finding.confidence}"
    return [*lines, f"{facts[0].upper()}{facts[1:]}.", ""]


def _where(finding: Finding, result: AnalysisResult) -> list[str]:
    places = [f"- {_escaped(place_text(place, result))}" for place in finding.places[:8]]
    if len(finding.places) > 8:
        places.append(f"- and {len(finding.places) - 8} more")
    lines = [*places, ""] if places else []
    asked = commands(finding, result)
    if asked:
        # The commands of one place stand together, under its name.
        by_place = {
            command.where: [one.text for one in asked if one.where == command.where] for command in asked
        }
        code = [line for where, texts in by_place.items() for line in (f"# {_in_code(where)}", *texts)]
        lines += ["```sh", *code, "```", ""]
    return lines


def _in_code(text: str) -> str:
    """Return a name for a block of code, where nothing can be escaped: without what could be markup."""
    return re.sub(r"[<>`]", "", wording.plain(text))


def _changes(baseline: Comparison) -> list[str]:
    lines = [
        "### Against the baseline",
        "",
        *(f"- {_escaped(phrase.en)}" for _, phrase in since(baseline, load_dictionary())),
        *(f"- {_escaped(sentence)}" for sentence in baseline.summary[:8]),
    ]
    lines += [f"- not compared: {_escaped(refusal)}" for refusal in baseline.refusals]
    certain = [change for change in baseline.changes if change.is_certain]
    if not certain:
        return [
            *lines,
            *([] if baseline.summary or baseline.refusals else ["Nothing moved beyond noise."]),
            "",
        ]
    lines += [
        "",
        "| what | metric | before | after | change | noise band |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
    ]
    for change in certain[:20]:
        cells = (
            _escaped(f"{change.what} {change.name}"),
            _escaped(change.metric),
            wording.format_number(change.before),
            wording.format_number(change.after),
            f"{100 * change.change_share:+.1f} %",
            f"{100 * change.low_share:+.1f} … {100 * change.high_share:+.1f} %",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def _problems(result: AnalysisResult) -> list[str]:
    problems = result.document.problems
    if not problems:
        return []
    lines = [f"- {_escaped(wording.problem_line(result, index))}" for index in range(len(problems))]
    return ["### Problems", "", *lines, ""]


def _escaped(text: str) -> str:
    return _MARKUP.sub(r"\\\1", wording.plain(text)).replace("\\<", "&lt;").replace("\\>", "&gt;")
