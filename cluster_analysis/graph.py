"""Lay the operators of all steps side by side as one graph, in an order in which it can be replayed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from cluster_analysis.evidence import BoolArray, FloatArray, IntArray, JobEvidence, StepOperators
from cluster_analysis.message_times import Messages, message_times
from cluster_analysis.replay import Graph
from cluster_analysis.replay_order import replay_order
from cluster_analysis.visits import Visits
from cluster_run.ids import Step


def laid_out(evidence: JobEvidence) -> JobEvidence:
    """Return the evidence with the graph in place of the operators by step, which are as large as it is."""
    return replace(
        evidence, graph=job_graph(evidence), step_operators=tuple(None for _ in evidence.step_operators)
    )


def job_graph(evidence: JobEvidence) -> Graph | None:
    """Return the graph of all steps; None unless every step has operators: a part would not be the job."""
    by_step = dict(zip(evidence.steps, evidence.step_operators, strict=True))
    operators = [
        by_step.get(Step(step)) for step in np.unique(evidence.step_table["step"].to_numpy()).tolist()
    ]
    present = [one for one in operators if one is not None]
    return build_graph(present) if len(present) == len(operators) else None


def build_graph(steps: Sequence[StepOperators]) -> Graph | None:
    """Lay the steps side by side; None when there is no operator to replay."""
    if not any(step.n_visits for step in steps):
        return None
    ranks = np.unique(np.concatenate([step.ranks for step in steps]))
    groups = tuple(sorted({group for step in steps for group in step.groups}))
    types = tuple(sorted({name for step in steps for name in step.types}))
    visit_base = np.r_[0, np.cumsum([step.n_visits for step in steps])]
    operator_base = np.r_[0, np.cumsum([len(step.operator_group) for step in steps])]
    n_visits = int(visit_base[-1])

    def joined(name: str) -> FloatArray:
        return np.concatenate([getattr(step, name) for step in steps])

    def marked(name: str) -> BoolArray:
        return np.concatenate([getattr(step, name) for step in steps])

    def shifted(name: str, base: IntArray, *, none: int) -> IntArray:
        """Positions of all steps numbered through; `none` where a step has -1."""
        moved = np.concatenate([getattr(step, name) for step in steps], dtype=np.int32)
        bounds = np.r_[0, np.cumsum([len(getattr(step, name)) for step in steps])].tolist()
        for at, (begin, end) in zip(base.tolist(), pairwise(bounds), strict=False):
            moved[begin:end] += at * (moved[begin:end] >= 0)
        moved[moved < 0] = none
        return moved

    def renamed(name: str, names: str, wanted: tuple[str, ...]) -> IntArray:
        place = {text: number for number, text in enumerate(wanted)}
        parts = [
            np.array([place[text] for text in getattr(step, names)] or [0], np.int32)[getattr(step, name)]
            for step in steps
        ]
        return np.concatenate(parts)

    rank = np.concatenate(
        [np.searchsorted(ranks, step.ranks).astype(np.int32)[step.visit_rank] for step in steps]
    )
    number_of_step = np.repeat(np.arange(len(steps), dtype=np.int32), np.diff(visit_base))
    operator = shifted("visit_operator", operator_base, none=0)
    after, sender, receiver = (
        shifted(f"visit_{name}", visit_base, none=n_visits) for name in ("after", "sender", "receiver")
    )
    join = shifted("visit_join", visit_base, none=n_visits + 1)
    is_p2p, is_side = marked("visit_is_p2p"), marked("visit_is_side")
    at = np.flatnonzero(is_p2p)
    messages = Messages(
        at, n_visits, operator[at], rank[at], sender[at], receiver[at],
        marked("visit_is_send")[at], marked("visit_is_receive")[at],
    )  # fmt: skip
    own, waits = np.full(n_visits, np.nan), np.zeros(n_visits, bool)
    transfer, own[at], waits[at] = message_times(
        messages, rank, joined("visit_elapse_us"), joined("operator_transfer_us")
    )
    n_operators = len(transfer)
    cell = number_of_step * np.int32(len(ranks)) + rank
    by_operator = shifted("visit_by_operator", visit_base, none=0)
    order = replay_order(
        Visits(operator, by_operator, cell, after, join, sender, receiver, own, is_side, is_p2p, waits),
        n_operators,
        len(steps) * len(ranks),
    )
    return Graph(
        ranks=ranks,
        n_steps=len(steps),
        rank=rank,
        step=number_of_step,
        operator=operator,
        after=after,
        sender=sender,
        receiver=receiver,
        gap_us=np.nan_to_num(joined("visit_gap_us"), copy=False),
        is_side=is_side,
        is_p2p=is_p2p,
        waits_for_receiver=waits,
        transfer_us=transfer,
        operator_step=np.repeat(np.arange(len(steps), dtype=np.int32), np.diff(operator_base)),
        operator_group=renamed("operator_group", "groups", groups),
        operator_type=renamed("operator_type", "types", types),
        operator_place=joined("operator_place").astype(np.int32),
        operator_bytes=joined("operator_bytes"),
        operator_n_ranks=np.bincount(operator, minlength=n_operators),
        groups=groups,
        types=types,
        measured_us=_measured(steps, ranks),
        order=order,
    )


def _measured(steps: Sequence[StepOperators], ranks: IntArray) -> FloatArray:
    """Return each rank's step times by [step, rank] in µs; NaN where it has none."""
    measured = np.full((len(steps), len(ranks)), np.nan)
    for number, step in enumerate(steps):
        measured[number, np.searchsorted(ranks, step.ranks)] = step.step_us
    return measured
