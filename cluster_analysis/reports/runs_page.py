"""Several runs, or parts of one, on a page: a bar a run, and a row that leads to its report."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from cluster_analysis.reports.page.assembly import ASSETS, DRAWING, STYLES, assembled, words_of_scripts
from cluster_analysis.reports.page.packing import pack
from cluster_analysis.reports.step_time import step_parts
from cluster_analysis.result import AnalysisResult
from cluster_analysis.sentences import phrases, subjects, verdicts
from cluster_run.findings import Verdict
from cluster_run.version import VERSION
from cluster_words.amounts import format_ms
from cluster_words.headings import say
from cluster_words.pages import templates
from cluster_words.phrase import Phrase
from cluster_words.terms import VERDICT_SIGNS

_SCRIPTS = (*DRAWING, "js/stacks.js", "js/trend.js", "js/opening.js", "js/runs.js")
#: Findings of one run that stand in its row.
_MAX_NAMED = 3


class ListedRun(Struct, frozen=True):
    """A run: its name, the address of its report (empty without one), what was found or why nothing."""

    name: str
    href: str
    outcome: AnalysisResult | str


class _Row(Struct, frozen=True):
    """What a reader sees of a run."""

    number: int
    name: str
    href: str
    captured: str
    step: str
    lost: Phrase
    verdict: Verdict
    said: Sequence[Phrase]


def title_of_change(runs: Sequence[ListedRun]) -> Phrase:
    """Return how long a step took in the first and the last run whose step is known, as a title."""
    documents = [one.outcome.document for one in runs if not isinstance(one.outcome, str)]
    timed = [one.run for one in documents if one.run.step_ms is not None]
    if len(timed) < 2:
        return say("runs.count", n=len(runs))
    first, last = timed[0], timed[-1]
    return say(
        "runs.change",
        n=len(runs),
        first=format_ms(first.step_ms),
        last=format_ms(last.step_ms),
        before=subjects.plain(first.name),
        after=subjects.plain(last.name),
    )


def title_of_parts(name: str, n_parts: int) -> Phrase:
    """Return the title of a page of the parts of a tree."""
    return say("runs.parts", name=subjects.plain(name), n=n_parts)


def render(runs: Sequence[ListedRun], title: Phrase) -> bytes:
    """Return the page as UTF-8."""
    rows = [_row(number, one) for number, one in enumerate(runs, start=1)]
    columns = _parts(runs)
    heads = say("trend_columns")
    environment = templates(ASSETS)
    environment.globals.update(say=say)
    values = {
        "title": title,
        "version": VERSION,
        "rows": rows,
        "heads": [Phrase(*both) for both in zip(heads.en.split("|"), heads.zh.split("|"), strict=True)],
        "signs": VERDICT_SIGNS,
        "is_drawn": bool(columns),
        "payload": pack(
            {
                "rows": [
                    {"number": one.number, "name": one.name, "href": one.href, "verdict": one.verdict}
                    for one in rows
                ],
                "words": words_of_scripts(),
            },
            columns,
        ),
    }
    return assembled(environment.get_template("runs.html.j2").render, _SCRIPTS, STYLES, values)


def _parts(runs: Sequence[ListedRun]) -> dict[str, np.ndarray[tuple[int], np.dtype[np.float32]]]:
    """Return the parts of the mean step (runs,) in µs, NaN where a run has none; those that any run has."""
    found = [
        {} if isinstance(one.outcome, str) else {part.name: part.mean_us for part in step_parts(one.outcome)}
        for one in runs
    ]
    names = dict.fromkeys(name for one in found for name in one)
    return {name: np.array([one.get(name, np.nan) for one in found], np.float32) for name in names}


def _row(number: int, listed: ListedRun) -> _Row:
    unknown = Phrase("–", "–")
    name = subjects.plain(listed.name)
    if isinstance(listed.outcome, str):
        reason = subjects.plain(listed.outcome)
        return _Row(number, name, "", "", "–", unknown, "unknown", (Phrase(reason, reason),))
    document = listed.outcome.document
    run, lost = document.run, verdicts.lost_in_all(document)
    alarms = [one for one in document.findings if one.is_alarm]
    said = [phrases.finding_title(one) for one in alarms[:_MAX_NAMED]]
    if len(alarms) > _MAX_NAMED:
        said.append(say("more_problems", n=len(alarms) - _MAX_NAMED))
    if document.verdict == "unknown":
        said.insert(0, verdicts.unknown_reason(document))
    return _Row(
        number,
        name,
        listed.href,
        phrases.moment(run.captured),
        format_ms(run.step_ms),
        unknown if lost is None or document.verdict == "healthy" else lost.phrase(run.step_ms),
        document.verdict,
        said,
    )
