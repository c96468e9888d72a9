"""Where the mean step goes, what imbalance costs of it, and each part of the rank that is worth a look."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from msgspec import Struct

from cluster_analysis.numeric.arrays import FloatArray, numbers
from cluster_analysis.numeric.grouped import means_of
from cluster_analysis.reports.page.cube import METRICS
from cluster_analysis.result import AnalysisResult
from cluster_analysis.sentences import subjects
from cluster_analysis.sentences.costs import Cost, cost_of
from cluster_run.findings import WARNING_COST_SHARE, Finding, FindingsDocument, LostPart
from cluster_run.ids import Rank
from cluster_run.said.chinese import COLON, COMMA
from cluster_words import terms
from cluster_words.amounts import format_ms
from cluster_words.headings import say, term
from cluster_words.phrase import Phrase, joined

#: A rank's time is worth a second look when it is above its stage's by this much of the part …
FAR_OF_PART = 0.1
#: … and of the step.
FAR_OF_STEP = 0.005
#: What a rank spends by itself. Its communication and its bubble are what others make it wait.
_OWN = ("compute_only", "overlapped", "free", "preparing")


class StepPart(Struct, frozen=True):
    """One part of the mean step: its name on the page, its mean over all ranks, and one rank's next to it.

    A mean over a thousand ranks hides one of them: `beside_us` is the mean of the ranks that the costliest
    alarm blames, or else that of `most_rank`, the rank with most of this part. `is_far`: it is far above the
    median of its pipeline stage, in a part that is a rank's own doing. On a healthy page nothing is: no rank
    is blamed, so none is marked.
    """

    name: str
    mean_us: float
    compared_us: float
    most_rank: Rank | None
    is_far: bool


def blamed(document: FindingsDocument) -> Finding | None:
    """Return the costliest finding that blames ranks and is an alarm."""
    alarms = (one for one in document.findings if one.is_alarm and one.ranks)
    return next((one for one in alarms if one.record.part == "slow_devices"), None)


def step_parts(result: AnalysisResult) -> tuple[StepPart, ...]:
    """Return where the mean step goes: parts that add up to computing + exposed + free + preparing.

    Bubble is the receiving part of exposed communication, as the profiler counts it.
    """
    table = result.table("steps")
    if not table.num_rows:
        return ()
    ranks, row_of = np.unique(table["rank"].to_numpy(), return_inverse=True)
    # 0 where a rank has no value, or all have none.
    columns = {name: _column(table, name) for name in _NAMES}
    of_ranks = _parts(
        {name: np.nan_to_num(means_of(one, row_of, len(ranks))) for name, one in columns.items()}
    )
    of_all = _parts({name: _mean(one) for name, one in columns.items()})
    step_us = sum(float(values[0]) for values in of_all.values())
    finding, may_paint = blamed(result.document), result.document.verdict != "healthy"
    chosen = np.isin(ranks, finding.ranks) if finding else np.zeros(len(ranks), bool)
    stages = np.array([result.topology.stages.get(Rank(int(rank)), -1) for rank in ranks])
    parts = []
    for name, (mean_us,) in of_all.items():
        most = None if chosen.any() else int(np.argmax(of_ranks[name]))
        named = chosen if most is None else np.arange(len(ranks)) == most
        compared_us = float(of_ranks[name][named].mean())
        peers_us = float(np.median(of_ranks[name][np.isin(stages, stages[named])]))
        more_us = compared_us - peers_us
        is_more = more_us > FAR_OF_PART * peers_us and more_us > FAR_OF_STEP * step_us
        if mean_us > 0:
            rank = None if most is None else Rank(int(ranks[most]))
            parts.append(
                StepPart(
                    name, float(mean_us), compared_us, rank, is_far=may_paint and is_more and name in _OWN
                )
            )
    return tuple(parts)


def unusual_steps(result: AnalysisResult) -> tuple[int, ...]:
    """Return the steps that took 1.5 times the median step or more: they weigh on every mean."""
    table = result.table("steps")
    if not table.num_rows:
        return ()
    spent = np.nan_to_num(_column(table, "computing")) + np.nan_to_num(_column(table, "exposed"))
    steps, position = np.unique(table["step"].to_numpy(), return_inverse=True)
    means = np.bincount(position, spent) / np.bincount(position)
    limit = 1.5 * np.median(means)
    return tuple(int(one) for one in steps[means >= limit]) if limit > 0 else ()


_NAMES = tuple(name for name, (source, _) in METRICS.items() if source == "steps")


def _parts(means: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Return the parts of a step, in the order in which they are drawn, from the profiler's own columns."""
    bubble = np.minimum(means["bubble"], means["exposed"])
    return {
        "compute_only": np.maximum(0.0, means["computing"] - means["overlapped"]),
        "overlapped": means["overlapped"],
        "exposed_only": means["exposed"] - bubble,
        "bubble": bubble,
        "free": means["free"],
        "preparing": np.maximum(0.0, means["preparing"]),
    }


def _column(table: pa.Table, name: str) -> FloatArray:
    return numbers(table[METRICS[name][1]])


def _mean(values: FloatArray) -> FloatArray:
    known = values[~np.isnan(values)]
    return np.array([known.mean() if known.size else 0.0])


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
