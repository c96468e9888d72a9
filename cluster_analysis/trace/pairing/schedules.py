"""Pipeline schedules: which message each stage sends and receives in which order.

Files name a send and its group, not the peer. Where a group has more than two stages, the peers follow from
the schedule. Candidates are the schedules that frameworks use; callers check them against the operators'
times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice

from msgspec import Struct

from cluster_analysis.thresholds.calls import MAX_CHUNKS

#: (sending stage, receiving stage, is_forward, micro-batch, virtual stage that receives)
Message = tuple[int, int, bool, int, int]


class StageCalls(Struct, frozen=True):
    """Schedule of one stage: its messages in program order, and whether each is sent."""

    messages: tuple[Message, ...]
    is_send: tuple[bool, ...]

    @property
    def sends(self) -> tuple[Message, ...]:
        """Messages it sends, in order."""
        return tuple(m for m, is_send in zip(self.messages, self.is_send, strict=True) if is_send)

    @property
    def receives(self) -> tuple[Message, ...]:
        """Messages it receives, in order."""
        return tuple(m for m, is_send in zip(self.messages, self.is_send, strict=True) if not is_send)


class BatchCall(Struct, frozen=True):
    """One batchSendRecv: what it sends and what it receives."""

    sends: tuple[Message, ...]
    receives: tuple[Message, ...]


def candidates(n_stages: int, n_first_sends: int) -> Iterator[tuple[StageCalls, ...]]:
    """Yield schedules whose first stage sends `n_first_sends` messages: 1F1B, GPipe and interleaved."""
    yield _schedule(n_stages, n_first_sends, 1, False)
    yield _schedule(n_stages, n_first_sends, 1, True)
    for chunks in range(2, MAX_CHUNKS + 1):
        microbatches, rest = divmod(n_first_sends, 2 * chunks - 1)
        if not rest and microbatches and microbatches % n_stages == 0:
            yield _schedule(n_stages, microbatches, chunks, False)


def batched(calls: StageCalls, n_calls: int, *, same_peer: bool) -> tuple[BatchCall, ...] | None:
    """Merge a send with the receive right after it, always or only where both are with one peer.

    Into so many calls; None where they are more or fewer.

    Zero bubble works off its weights between a backward and the next receive (Qi et al., ICLR'24), from some
    micro-batch of each stage on: the sends of its last backwards stay alone.
    """
    merged = _batched(calls, same_peer=same_peer)
    both = [at for at, one in enumerate(merged) if one.sends and one.receives and not one.sends[0][2]]
    n_alone = n_calls - len(merged)
    if not 0 <= n_alone <= len(both):
        return None
    alone = set(both[len(both) - n_alone :])
    return tuple(
        part
        for at, one in enumerate(merged)
        for part in ((BatchCall(one.sends, ()), BatchCall((), one.receives)) if at in alone else (one,))
    )


def of_kinds(
    calls: StageCalls, sends: Sequence[bool], receives: Sequence[bool]
) -> tuple[BatchCall, ...] | None:
    """Assign the messages of a stage to calls that are known to send, to receive, or to do both.

    None where they do not fit.
    """
    found: list[BatchCall] = []
    left = iter(zip(calls.messages, calls.is_send, strict=True))
    for wanted in zip(sends, receives, strict=True):
        taken = list(islice(left, sum(wanted)))
        call = BatchCall(*(tuple(one for one, is_send in taken if is_send == side) for side in (True, False)))
        if (bool(call.sends), bool(call.receives)) != wanted:
            return None
        found.append(call)
    return None if next(left, None) else tuple(found)


def _batched(calls: StageCalls, *, same_peer: bool) -> tuple[BatchCall, ...]:
    """Merge a send with the receive right after it, always or only when both are with one peer."""
    merged: list[BatchCall] = []
    for one in single(calls):
        before = merged[-1] if merged else one
        if (
            one.receives
            and not before.receives
            and (not same_peer or before.sends[0][1] == one.receives[0][0])
        ):
            merged[-1] = BatchCall(before.sends, one.receives)
        else:
            merged.append(one)
    return tuple(merged)


def single(calls: StageCalls) -> tuple[BatchCall, ...]:
    """One call a message."""
    return tuple(
        BatchCall((message,), ()) if is_send else BatchCall((), (message,))
        for message, is_send in zip(calls.messages, calls.is_send, strict=True)
    )


@cache
def _schedule(
    n_stages: int, microbatches: int, chunks: int, all_forward_first: bool
) -> tuple[StageCalls, ...]:
    return tuple(
        _stage(n_stages, microbatches, chunks, stage, all_forward_first) for stage in range(n_stages)
    )


def _stage(n_stages: int, microbatches: int, chunks: int, stage: int, all_forward_first: bool) -> StageCalls:
    messages: list[Message] = []
    is_send: list[bool] = []
    last = n_stages * chunks - 1
    for forward, microbatch, chunk in _passes(n_stages, microbatches, chunks, stage, all_forward_first):
        virtual = chunk * n_stages + stage
        before, after = (virtual - 1, virtual + 1) if forward else (virtual + 1, virtual - 1)
        if 0 <= before <= last:
            messages.append((before % n_stages, stage, forward, microbatch, virtual))
            is_send.append(False)
        if 0 <= after <= last:
            messages.append((stage, after % n_stages, forward, microbatch, after))
            is_send.append(True)
    return StageCalls(tuple(messages), tuple(is_send))


def _passes(
    n_stages: int, microbatches: int, chunks: int, stage: int, all_forward_first: bool
) -> list[tuple[bool, int, int]]:
    """(is forward, micro-batch, chunk) in the order in which a stage works."""
    total = microbatches * chunks
    ahead = n_stages - stage - 1
    warm_up = ahead if chunks == 1 else 2 * ahead + (chunks - 1) * n_stages
    warm_up = total if all_forward_first else min(total, warm_up)
    forward = [_place(k, n_stages, chunks) for k in range(total)]
    backward = [(microbatch, chunks - 1 - chunk) for microbatch, chunk in forward]
    passes = [(True, *one) for one in forward[:warm_up]]
    for number in range(total - warm_up):
        passes += [(True, *forward[warm_up + number]), (False, *backward[number])]
    return passes + [(False, *one) for one in backward[total - warm_up :]]


def _place(k: int, n_stages: int, chunks: int) -> tuple[int, int]:
    if chunks == 1:
        return k, 0
    turn, within = divmod(k, n_stages * chunks)
    return turn * n_stages + within % n_stages, within // n_stages
