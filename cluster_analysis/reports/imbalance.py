"""The cost of imbalance: what a step would take if all ranks were alike, and what the rest is lost to."""

from __future__ import annotations

from msgspec import Struct

from cluster_analysis.sentences import terms
from cluster_analysis.sentences.amounts import format_ms
from cluster_analysis.sentences.headings import say, term
from cluster_analysis.sentences.phrase import Phrase, joined
from cluster_analysis.sentences.results import subjects
from cluster_analysis.sentences.results.costs import Cost, cost_of
from cluster_run.findings import WARNING_COST_SHARE, FindingsDocument, LostPart
from cluster_run.said.chinese import COLON, COMMA

#: A smaller part would be written as 0 %.
_LEAST_SHARE = 0.005


class Lost(Struct, frozen=True):
    """One part of the loss: its name in `LostPart`, what a reader calls it, and ms a step.

    `cost` is that of the finding where the part is about one alone: everywhere the same.
    """

    part: str
    name: Phrase
    ms: float
    cost: Phrase


class Imbalance(Struct, frozen=True):
    """The mean step, the step of equal ranks, both in ms, and what the difference is lost to, largest first.

    `lost` is empty where nothing is wrong: then no part of the difference can be repaired.
    """

    step_ms: float
    ideal_ms: float
    lost: tuple[Lost, ...]

    def sentence(self) -> Phrase:
        """Return it in one sentence: 46.4 s a step, 23.2 s if all ranks were alike: 22.7 s of the …"""
        said = say("if_alike", step=format_ms(self.step_ms), ideal=format_ms(self.ideal_ms))
        parts = [
            say("lost_also_to" if position else "lost_to", cost=one.cost, part=one.name)
            for position, one in enumerate(self.lost)
        ]
        if parts:
            said = joined((said, joined(parts, COMMA)), COLON)
        return Phrase(f"{said.en}.", f"{said.zh}。")


def cost_of_imbalance(document: FindingsDocument) -> Imbalance | None:
    """Return the cost of imbalance; None where it is not known, or less than a warning's."""
    run = document.run
    if document.verdict == "unknown" or not run.step_ms or not run.ideal_step_ms or not run.slowdown:
        return None
    if 1.0 - 1.0 / run.slowdown < WARNING_COST_SHARE:
        return None
    reported = run.lost if document.verdict == "degraded" else ()
    lost = [_lost(one, document) for one in reported if one.share >= _LEAST_SHARE]
    return Imbalance(run.step_ms, run.ideal_step_ms, tuple(lost))


def _lost(lost: LostPart, document: FindingsDocument) -> Lost:
    """Return a part by the name and cost of the one finding that it is about; by its own if of several."""
    about = [one for one in document.findings if one.record.part == lost.part and cost_of(one).high_ms]
    if len(about) == 1:
        name, cost = subjects.subject(about[0]), cost_of(about[0])
    else:
        name, cost = term(terms.LOST, lost.part), Cost(lost.ms, lost.ms)
    return Lost(lost.part, name, lost.ms, cost.phrase(document.run.step_ms))
