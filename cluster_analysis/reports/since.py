"""What became of the findings of the older run, in words of both languages."""

from __future__ import annotations

from cluster_analysis.judge.baseline import Comparison
from cluster_analysis.judge.told_before import Matched
from cluster_analysis.reports import words
from cluster_analysis.reports.costs import cost_of
from cluster_analysis.reports.words import Dictionary
from cluster_analysis.sentences.phrase import Phrase

#: More lines are not read.
MAX_TOLD = 12


def since(comparison: Comparison, dictionary: Dictionary) -> tuple[tuple[str, Phrase], ...]:
    """Return `Fixed: slow rank 5 (was 97 ms).` and the like, each with its state; at most MAX_TOLD."""
    return tuple((one.state, _phrase(one, dictionary)) for one in comparison.findings[:MAX_TOLD])


def _phrase(one: Matched, dictionary: Dictionary) -> Phrase:
    return dictionary.say(
        f"since.{one.state}",
        what=words.subject(one.finding, dictionary),
        before=cost_of(one.before).phrase(),
        after=cost_of(one.after).phrase(),
    )
