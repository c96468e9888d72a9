"""Transfer times of messages, and the sends that wait for their receivers, from the times of both ends."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.thresholds.calls import (
    HELD_UP_FACTOR,
    LONG_SEND,
    MEETING_SHARE,
    MEETING_SPREAD,
    MIN_LONG_SHARE,
    QUICK_QUANTILE,
    QUICK_SENDS_PERCENT,
    SHORT_MESSAGE_SHARE,
)


class Messages(Struct, frozen=True):
    """The point-to-point instances of a job (M,). `sender` and `receiver`: `n_instances` for none."""

    instances: IntArray
    n_instances: int
    operator: IntArray
    rank: IntArray
    sender: IntArray
    receiver: IntArray
    is_send: BoolArray
    is_receive: BoolArray


def message_times(
    messages: Messages, instance_rank: IntArray, elapse: FloatArray, transfer: FloatArray, *,
    may_wait: bool,
) -> tuple[FloatArray, FloatArray, BoolArray]:  # fmt: skip
    """Transfers of operators (O,), what a message's instance takes by itself (M,), and which ones wait (M,).

    An eager send, single or alone in its batch, takes the same time whatever the receiver does, and its
    message as long as itself. A send that waits, and an exchange, take what the shorter of the two ends
    takes. A transfer time is NaN where it takes the transfer.

    Args:
        instance_rank: the rank of every instance (V,).
        elapse: how long every instance lasted, µs (V,).
        transfer: transfers as the reduction has them, µs (O,).
        may_wait: off where it is known that no send waits for its receiver.
    """
    n, operator = messages.n_instances, messages.operator
    sender, receiver = messages.sender, messages.receiver
    lasted = elapse[messages.instances]
    own = np.full(len(operator), np.nan)
    waits = np.zeros(len(operator), bool)
    transfer = transfer.copy()
    has_sender, has_receiver = sender < n, receiver < n
    is_batch = ~messages.is_send & ~messages.is_receive
    for kind, long in ((messages.is_send, LONG_SEND), (is_batch & ~has_sender, HELD_UP_FACTOR)):
        sends = kind & has_receiver
        waits |= sends & (not is_eager(lasted[sends], elapse[receiver[sends]], long))
    exchanging = is_batch & has_receiver & has_sender
    one_way = (messages.is_send | (is_batch & ~has_sender)) & has_receiver
    waits |= exchanging & (bool(waits[one_way].any()) or not one_way.any())
    waits &= may_wait
    # Both ends of a batch with several partners may have waited for others: the shortest is then no transfer.
    if is_batch.any():
        sends = is_batch & has_receiver
        usual = float(np.median(transfer[operator[sends if sends.any() else is_batch]]))
        now = transfer[operator[is_batch]]
        own_usual = np.maximum(
            _usual_of_pairs(now, messages, instance_rank, is_batch), SHORT_MESSAGE_SHARE * usual
        )
        is_pair = _wait_for_each_other(messages)[is_batch]
        now = np.where((now > HELD_UP_FACTOR * own_usual) & ~is_pair, own_usual, now)
        transfer[operator[is_batch]] = now
    eager_sends = (messages.is_send | one_way) & ~waits
    transfer[operator[eager_sends]] = lasted[eager_sends]
    is_eager_instance = np.zeros(n, bool)
    is_eager_instance[messages.instances[eager_sends]] = True
    from_eager = np.flatnonzero(has_sender)
    from_eager = from_eager[is_eager_instance[sender[from_eager]]]
    transfer[operator[from_eager]] = elapse[sender[from_eager]]
    # A message that was sent before its receiver came is there; one that waits for it moves only then.
    received = from_eager[(messages.is_receive | ~has_receiver)[from_eager]]
    if len(received):
        quickest = float(np.percentile(lasted[received], 2))
        own[received] = np.minimum(lasted[received], quickest)
    alone = ~has_sender & ~has_receiver
    own[alone] = lasted[alone]
    return transfer, own, waits


def _wait_for_each_other(messages: Messages) -> BoolArray:
    """Whether a message's ends have one partner each, each other: no third rank holds them up (M,)."""
    n, sender, receiver = messages.n_instances, messages.sender, messages.receiver
    partner = np.where(receiver < n, receiver, sender)
    has_one = (partner < n) & ((sender == n) | (receiver == n) | (sender == receiver))
    only = np.full(n + 1, n, np.int64)
    only[messages.instances[has_one]] = partner[has_one]
    return np.asarray(has_one & (only[partner] == messages.instances), np.bool_)


def _usual_of_pairs(
    transfer: FloatArray, messages: Messages, instance_rank: IntArray, is_batch: BoolArray
) -> FloatArray:
    """The quick transfers between the two ranks of each batch; a slow link's are all slow."""
    n, rank = messages.n_instances, messages.rank[is_batch]
    partner = np.minimum(messages.sender, messages.receiver)[is_batch]
    other = np.where(partner < n, instance_rank[np.minimum(partner, n - 1)], -1)
    low, high = np.minimum(rank, other), np.maximum(rank, other)
    _, pair = np.unique(low.astype(np.int64) * (int(instance_rank.max()) + 2) + high, return_inverse=True)
    order = np.lexsort((transfer, pair))
    count = np.bincount(pair)
    quick = np.cumsum(count) - count + (QUICK_QUANTILE * (count - 1)).astype(np.int64)
    return np.asarray(transfer[order][quick][pair])


def is_eager(send: FloatArray, receive: FloatArray, long: float = LONG_SEND) -> bool:
    """Whether sends return without waiting for their receivers; `long` times a quick one is a long one.

    A send that waits for its receiver is long just when the receiver came late, and a late receiver that
    starts the transfer takes as long as the transfer. An eager send is long when the network was busy;
    its receiver then waits as well, or finds the message there and takes next to nothing. One that sends
    itself takes as long as that: of such receivers a busy network's long sends say nothing.
    """
    if not len(send):
        return True
    usual = max(float(np.percentile(send, QUICK_SENDS_PERCENT)), 1.0)
    is_long = send > long * usual
    if np.mean(is_long) < MIN_LONG_SHARE:
        return True
    met = np.abs(receive[is_long] / usual - 1.0) < MEETING_SPREAD
    return bool(np.mean(met) < MEETING_SHARE)
