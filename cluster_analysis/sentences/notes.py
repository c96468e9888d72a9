"""Notes on what could not be judged, and why, in both languages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cluster_analysis.sentences.phrase import Phrase, fill
from cluster_analysis.sentences.texts import Template, texts
from cluster_run.facts import Fact
from cluster_run.kinds import NoteFact

_SAID = texts("notes")
SENTENCES: Mapping[NoteFact, Template] = _SAID["notes"]
#: The same, shorter, of those that leave a question open.
WHY_OPEN: Mapping[NoteFact, Template] = _SAID["open"]


def why_open(notes: Sequence[Fact]) -> Phrase | None:
    """Return, shorter than its note, the first question that notes leave open; None where none does."""
    return next((fill(WHY_OPEN[one.kind], dict(one.values)) for one in notes if one.kind in WHY_OPEN), None)  # type: ignore[index]


def note(fact: Fact) -> Phrase:
    """Return the sentence of a note."""
    return fill(SENTENCES[fact.kind], dict(fact.values))  # type: ignore[index]
