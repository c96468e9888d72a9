"""Lay the operators of all steps side by side as one graph, in an order in which it can be replayed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cluster_analysis.calls import RECEIVE_TYPES, SEND_TYPES
from cluster_analysis.evidence import BoolArray, FloatArray, IntArray, JobEvidence, StepOperators
from cluster_analysis.replay import Graph
from cluster_analysis.replay_order import Visits, replay_order
from cluster_run.ids import Step

#: A send this many times as long as the quick ones was held up, by its receiver or by the network.
_LONG_SEND = 1.5
#: Fewer held-up sends than this say nothing, and change nothing.
_MIN_LONG_SHARE = 0.02
#: Of the messages between two ranks, these are surely not held up by third ones.
_QUICK_QUANTILE = 0.1
#: A receive that takes the transfer, give or take this share, met its sender; so do this many, if sends wait.
_MEETING_SPREAD = 0.5
_MEETING_SHARE = 0.5


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

    def shifted(name: str, base: IntArray) -> IntArray:
        parts = [getattr(step, name) for step in steps]
        moved = [
            np.where(part >= 0, part + at, n_visits).astype(np.int32)
            for part, at in zip(parts, base.tolist(), strict=False)
        ]
        return np.concatenate(moved)

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
    operator = shifted("visit_operator", operator_base)
    operator_type = renamed("operator_type", "types", types)
    after, join, sender, receiver = (
        shifted(f"visit_{name}", visit_base) for name in ("after", "join", "sender", "receiver")
    )
    is_p2p = joined("visit_is_p2p").astype(bool)
    elapse = joined("visit_elapse_us")
    transfer, own, waits = _message_times(
        elapse, operator, joined("operator_transfer_us"), is_p2p,
        rank=rank, sender=sender, receiver=receiver,
        is_send=_of_types(types, SEND_TYPES)[operator_type[operator]],
        is_receive=_of_types(types, RECEIVE_TYPES)[operator_type[operator]],
    )  # fmt: skip
    join = np.where(join < n_visits, join, np.int32(n_visits + 1))
    is_side = joined("visit_is_side").astype(bool)
    n_operators = len(transfer)
    cell = number_of_step * np.int32(len(ranks)) + rank
    order = replay_order(
        Visits(operator, cell, after, join, sender, receiver, own, is_side, is_p2p, waits),
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
        gap_us=np.nan_to_num(joined("visit_gap_us")),
        is_side=is_side,
        is_p2p=is_p2p,
        waits_for_receiver=waits,
        transfer_us=transfer,
        operator_step=np.repeat(np.arange(len(steps), dtype=np.int32), np.diff(operator_base)),
        operator_group=renamed("operator_group", "groups", groups),
        operator_type=operator_type,
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


def _of_types(types: tuple[str, ...], wanted: frozenset[str]) -> BoolArray:
    return np.array([name in wanted for name in types], bool)


def _message_times(
    elapse: FloatArray, operator: IntArray, transfer: FloatArray, is_p2p: BoolArray, *, rank: IntArray,
    sender: IntArray, receiver: IntArray, is_send: BoolArray, is_receive: BoolArray,
) -> tuple[FloatArray, FloatArray, BoolArray]:  # fmt: skip
    """Transfers of point-to-point operators, what a receive takes by itself, and which sends wait.

    An eager send takes the same time whatever the receiver does, and its message as long as itself. A
    send that waits, and a batch, take what the shorter of the two ends takes.
    """
    n = len(elapse)
    own = np.full(n, np.nan)
    waits = np.zeros(n, bool)
    transfer = transfer.copy()
    if not is_p2p.any():
        return transfer, own, waits
    has_sender, has_receiver = sender < n, receiver < n
    is_batch = is_p2p & ~is_send & ~is_receive
    for kind in (is_send, is_batch & has_receiver & ~has_sender):
        sends = kind & has_receiver
        waits |= sends & (not is_eager(elapse[sends], elapse[receiver[sends]]))
    exchanging = is_batch & has_receiver & has_sender
    one_way = is_batch & has_receiver & ~has_sender
    waits |= exchanging & (bool(waits[one_way].any()) or not one_way.any())
    # Both ends of a batch may have waited for third ranks: the shortest is then no transfer.
    # A receiver that finds its message there takes next to nothing, which is no transfer either.
    if is_batch.any():
        sends = is_batch & has_receiver
        usual = float(np.median(transfer[operator[sends if sends.any() else is_batch]]))
        now = transfer[operator[is_batch]]
        own_usual = np.maximum(
            _usual_of_pairs(now, rank, is_batch, np.minimum(sender, receiver)), 0.3 * usual
        )
        now = np.where(now > 3.0 * own_usual, own_usual, now)
        transfer[operator[is_batch]] = np.where(now < 0.3 * usual, usual, now)
        quick = is_batch & (elapse < 0.9 * transfer[operator])
        own[quick] = elapse[quick]
    eager_sends = is_send & ~waits
    transfer[operator[eager_sends]] = elapse[eager_sends]
    from_eager = np.flatnonzero(has_sender)
    from_eager = from_eager[eager_sends[sender[from_eager]]]
    transfer[operator[from_eager]] = elapse[sender[from_eager]]
    # A message that was sent before its receiver came is there; one that waits for it moves only then.
    received = np.zeros(n, bool)
    received[from_eager] = is_receive[from_eager]
    if received.any():
        quickest = float(np.percentile(elapse[received], 2))
        own[received] = np.minimum(elapse[received], quickest)
    alone = is_p2p & ~has_sender & ~has_receiver
    own[alone] = elapse[alone]
    return transfer, own, waits


def _usual_of_pairs(
    transfer: FloatArray, rank: IntArray, is_batch: BoolArray, partner: IntArray
) -> FloatArray:
    """The quick transfers between the two ranks of each batch; a slow link's are all slow."""
    n = len(rank)
    here = np.flatnonzero(is_batch)
    other = np.where(partner[here] < n, rank[np.minimum(partner[here], n - 1)], -1)
    low, high = np.minimum(rank[here], other), np.maximum(rank[here], other)
    _, pair = np.unique(low.astype(np.int64) * (int(rank.max()) + 2) + high, return_inverse=True)
    order = np.lexsort((transfer, pair))
    count = np.bincount(pair)
    quick = np.cumsum(count) - count + (_QUICK_QUANTILE * (count - 1)).astype(np.int64)
    usual: FloatArray = transfer[order][quick][pair]
    return usual


def is_eager(send: FloatArray, receive: FloatArray) -> bool:
    """Whether sends return without waiting for their receivers.

    A send that waits for its receiver is long just when the receiver came late, and a late receiver that
    starts the transfer takes as long as the transfer. An eager send is long when the network was busy;
    its receiver then waits as well, or finds the message there and takes next to nothing.
    """
    if not len(send):
        return True
    usual = max(float(np.percentile(send, 25)), 1.0)
    is_long = send > _LONG_SEND * usual
    if np.mean(is_long) < _MIN_LONG_SHARE:
        return True
    met = np.abs(receive[is_long] / usual - 1.0) < _MEETING_SPREAD
    return bool(np.mean(met) < _MEETING_SHARE)
