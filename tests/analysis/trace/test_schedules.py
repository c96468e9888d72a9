"""How the messages of a known schedule lie on calls that may send and receive at once."""

from __future__ import annotations

import pytest

from cluster_analysis.trace.pairing.schedules import (
    BatchCall,
    StageCalls,
    batched,
    candidates,
    of_kinds,
    single,
)

SCHEDULES = [schedule for n_sends in (6, 8, 12) for schedule in candidates(4, n_sends)]
STAGES = [stage for schedule in SCHEDULES for stage in schedule if stage.messages]


def messages_of(calls: tuple[BatchCall, ...]) -> list[object]:
    return [message for call in calls for message in (*call.sends, *call.receives)]


@pytest.mark.parametrize("same_peer", [False, True])
def test_every_number_of_calls_that_fits_holds_all_messages_in_order(same_peer: bool) -> None:
    for stage in STAGES:
        fitting = [
            one
            for n_calls in range(2 * len(stage.messages))
            if (one := batched(stage, n_calls, same_peer=same_peer)) is not None
        ]
        assert fitting
        for one in fitting:
            assert messages_of(one) == list(stage.messages)
            assert all(len(call.sends) <= 1 and len(call.receives) <= 1 for call in one)


def test_with_weights_in_between_the_last_backwards_send_alone() -> None:
    stage = next(candidates(4, 8))[1]
    whole = next(one for n in range(99) if (one := batched(stage, n, same_peer=False)) is not None)
    more = batched(stage, len(whole) + 2, same_peer=False)
    assert more is not None
    both = [call for call in whole if call.sends and call.receives and not call.sends[0][2]]
    assert [call for call in more if call.sends and call.receives and not call.sends[0][2]] == both[:-2]


def test_messages_are_laid_on_calls_by_what_these_do() -> None:
    for stage in STAGES:
        ways = (single(stage), *(batched(stage, n_calls, same_peer=False) for n_calls in range(99)))
        for calls in (one for one in ways if one is not None):
            sends, receives = [bool(one.sends) for one in calls], [bool(one.receives) for one in calls]
            assert of_kinds(stage, sends, receives) == calls
        assert of_kinds(stage, [True] * 99, [True] * 99) is None
        assert of_kinds(stage, [], []) is None


def has_chunks(stage: StageCalls) -> bool:
    """Whether it holds several parts of the model: then two of its messages differ in that alone."""
    return len({message[:4] for message in stage.messages}) < len(stage.messages)


def test_only_interleaved_schedules_have_chunks() -> None:
    assert [has_chunks(schedule[1]) for schedule in candidates(4, 12)] == [False, False, True]
