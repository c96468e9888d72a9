"""Notes on what could not be judged, and why, in both languages; and what their reader can do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from cluster_run.facts import Fact
from cluster_run.findings import FindingsDocument
from cluster_words.phrase import Phrase, of_fact
from cluster_words.texts import Template, texts

#: What a reader can do about a note: `mend` it (first what only needs to be fetched), `bear` it as each run
#: has it, `know` it, or `choose` another part of the data.
Action = Literal["mend", "bear", "know", "choose"]
_SAID = texts("notes")
#: The notes by action.
NOTES: Mapping[Action, Mapping[str, Template]] = {action: _SAID[action] for action in get_args(Action)}
#: What could not be judged, in the order in which reports tell it; what was chosen stands at their begin.
TOLD: Sequence[Action] = ("mend", "bear", "know")
SENTENCES: Mapping[str, Template] = {kind: said for own in NOTES.values() for kind, said in own.items()}
#: Shorter texts of notes that leave a question open.
WHY_OPEN: Mapping[str, Template] = _SAID["open"]


def why_open(notes: Sequence[Fact]) -> Phrase | None:
    """Return, shorter than its note, the first question that notes leave open; None where none does."""
    return next((of_fact(WHY_OPEN, one) for one in notes if one.kind in WHY_OPEN), None)


def note(fact: Fact) -> Phrase:
    """Return the sentence of a note."""
    return of_fact(SENTENCES, fact)


def reasons(document: FindingsDocument) -> dict[Action, list[Fact]]:
    """Group the notes of a document by their reader's action; what is to be mended first stands first.

    A job of one rank does not communicate, and has no peers: no other capture of it would.
    """
    n_ranks = document.run.expected_ranks
    alone = {"no_operators", "no_communication_matrix"} if n_ranks == 1 else set()
    notes = [one for one in document.notes if n_ranks > 1 or one.kind != "few_peers"]
    return {
        "mend": [one for kind in NOTES["mend"] if kind not in alone for one in notes if one.kind == kind],
        "bear": [one for one in notes if one.kind in alone.union(NOTES["bear"])],
        "know": [one for one in notes if one.kind in NOTES["know"]],
        "choose": [one for one in notes if one.kind in NOTES["choose"]],
    }
