"""Which run a report is about: name, place, when it was recorded and analysed."""

from __future__ import annotations

from cluster_analysis.sentences.headings import say
from cluster_analysis.sentences.phrase import Phrase
from cluster_run.findings import FindingsDocument


def header_phrases(document: FindingsDocument, analysed: str | None = None) -> tuple[Phrase, ...]:
    """Return the facts that are known; `analysed` where the document holds no time of its own."""
    run = document.run
    path = run.path or run.name
    times = (("run.captured", moment(run.captured)), ("run.analysed", moment(run.analysed or analysed)))
    shown = [(say(key), value) for key, value in times if value]
    return (
        *([Phrase(path, path)] if path else []),
        *(Phrase(f"{what.en} {value}", f"{what.zh} {value}") for what, value in shown),
    )


def moment(text: str | None) -> str:
    """Return `2026-05-13 12:00:00` for a moment in ISO 8601; a zone is named where it is known."""
    return (text or "").replace("T", " ").replace("Z", " UTC")
