"""Which run a report is about: name, place, when it was recorded and analysed."""

from __future__ import annotations

from cluster_run.findings import FindingsDocument


def header_line(document: FindingsDocument, analysed: str | None = None) -> tuple[str, ...]:
    """Return the facts that are known, in English; `analysed` where the document holds no time of its own."""
    run = document.run
    known = (
        ("", run.path or run.name),
        ("captured ", moment(run.captured)),
        ("analysed ", moment(run.analysed or analysed)),
    )
    return tuple(f"{what}{value}" for what, value in known if value)


def moment(text: str | None) -> str:
    """Return `2026-05-13 12:00:00` for a moment in ISO 8601; a zone is named where it is known."""
    return (text or "").replace("T", " ").replace("Z", " UTC")
