"""What changed since a baseline, and what became of its findings, in both languages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cluster_analysis.judge.baseline import Change, Comparison, Matched
from cluster_analysis.sentences import subjects
from cluster_analysis.sentences.costs import cost_of
from cluster_words.amounts import format_ms
from cluster_words.headings import say
from cluster_words.phrase import Phrase, fill, of_fact
from cluster_words.texts import Template, texts

#: More lines are not read.
MAX_REPORTED = 12
_SAID = texts("headings")
SENTENCES: Mapping[str, Template] = _SAID["changes"]
REFUSALS: Mapping[str, Template] = _SAID["refusals"]
_PARTS: Mapping[str, Template] = _SAID["parts"]
_MORE: Mapping[bool, Phrase] = {True: Phrase("more", "增加"), False: Phrase("less", "减少")}
_LONGER: Mapping[bool, Phrase] = {True: Phrase("longer", "增加"), False: Phrase("shorter", "减少")}
_NOISE: Template = ("± {share:percent}", "± {share:percent}")


def summary(comparison: Comparison) -> tuple[Phrase, ...]:
    """Return the certain changes, that of the step first; a step that is as before is said to be."""
    return tuple(_sentences(comparison))


def refusals(comparison: Comparison) -> tuple[Phrase, ...]:
    """Return what could not be compared, and why."""
    return tuple(of_fact(REFUSALS, one) for one in comparison.refusals)


def _sentences(comparison: Comparison) -> Iterator[Phrase]:
    step = next((one for one in comparison.changes if one.what == "step"), None)
    if step is not None:
        yield fill(SENTENCES["step" if step.is_certain else "same_step"], _values(step))
    for one in comparison.changes:
        if one.is_certain and one.what != "step":
            yield fill(SENTENCES[one.what], _values(one))


def _values(change: Change) -> dict[str, object]:
    is_more = change.change_share > 0
    more_ms = change.more_ms_per_step or 0.0
    known: dict[str, object] = {
        "before_us": change.before,
        "after_us": change.after,
        "share": change.change_share,
        "more": _MORE[is_more],
        "step_ms": format_ms(abs(more_ms)),
        "step_more": _MORE[more_ms > 0],
        "longer": _LONGER[is_more],
        "noise": fill(_NOISE, {"share": (change.high_share - change.low_share) / 2}),
        "name": change.name,
        "part": fill(_PARTS.get(change.name, (change.name, change.name)), {}),
        "transport": change.transport,
    }
    if change.ranks:
        known |= {"rank": change.ranks[0], "src": change.ranks[0], "dst": change.ranks[-1]}
    return known


def since(comparison: Comparison) -> tuple[tuple[str, Phrase], ...]:
    """Return sentences like `Fixed: slow rank 5 (was 97 ms).`, each with its state; at most MAX_REPORTED."""
    return tuple((one.state, _became(one)) for one in comparison.findings[:MAX_REPORTED])


def _became(one: Matched) -> Phrase:
    return say(
        f"since.{one.state}",
        what=subjects.subject(one.finding),
        before=cost_of(one.before).phrase(),
        after=cost_of(one.after).phrase(),
    )
