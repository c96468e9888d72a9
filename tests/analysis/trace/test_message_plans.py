"""The schedule is told from the calls' order and times, whatever the clocks of the stages say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster_analysis.trace.calls import Calls, calls_of
from cluster_analysis.trace.messages.pairs import pair_messages
from cluster_analysis.trace.messages.plans import Pipeline, pairs_by_number, plan_of
from cluster_analysis.trace.messages.schedules import Message, StageCalls, candidates
from tests.analysis.jobs import Call, collectives_table, small_topology

#: A loaded machine is slow and makes no test fail.
UNHURRIED = settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])

N_STAGES = 4
N_BATCHES = 8
TRANSFER_US = 200.0
WORK_US = 5000.0
ONE_F_ONE_B, GPIPE, *_, RING, _ = candidates(N_STAGES, N_BATCHES)


def played(
    schedule: tuple[StageCalls, ...], clock_us: tuple[float, ...] = (0.0,) * N_STAGES
) -> tuple[list[Call], dict[Message, tuple[int, int]]]:
    """Calls of stages that work between messages, and the (sender's, receiver's) numbers of each message.

    A send returns at once; a receive begins when its stage is ready and ends when the message is there.
    """
    clock = dict(enumerate(clock_us))
    now = [WORK_US] * len(schedule)
    done = [0] * len(schedule)
    there: dict[Message, float] = {}
    calls: list[Call] = []
    number: dict[tuple[Message, bool], int] = {}
    while any(done[stage] < len(own.messages) for stage, own in enumerate(schedule)):
        for stage, own in enumerate(schedule):
            while done[stage] < len(own.messages):
                message, is_send = own.messages[done[stage]], own.is_send[done[stage]]
                if not is_send and message not in there:
                    break
                begun = now[stage]
                ended = begun + TRANSFER_US
                if is_send:
                    there[message] = ended
                else:
                    ended = max(begun + 20.0, there[message])
                done[stage] += 1
                number[message, is_send] = done[stage]
                kind = "send" if is_send else "receive"
                calls.append(Call(stage, kind, begun + clock[stage], ended - begun, "p", done[stage]))
                now[stage] = ended + (20.0 if is_send else WORK_US)
    return calls, {message: (number[message, True], number[message, False]) for message in there}


def by_stage(made: list[Call]) -> tuple[Calls, Pipeline]:
    calls = calls_of(collectives_table(made))
    stages = [np.flatnonzero(calls.rank == stage) for stage in range(N_STAGES)]
    return calls, Pipeline(
        tuple(own[calls.is_send[own]] for own in stages),
        tuple(own[calls.is_receive[own]] for own in stages),
        tuple(own[:0] for own in stages),
    )


def ends_of(calls: Calls, send: np.ndarray, receive: np.ndarray) -> set[tuple[int, int, int, int]]:
    """(sending stage, its number, receiving stage, its number) of each message."""
    return {
        (int(calls.rank[a]), int(calls.number[a]), int(calls.rank[b]), int(calls.number[b]))
        for a, b in zip(send.tolist(), receive.tolist(), strict=True)
    }


def true_ends(numbers: dict[Message, tuple[int, int]]) -> set[tuple[int, int, int, int]]:
    return {(message[0], sent, message[1], received) for message, (sent, received) in numbers.items()}


@pytest.mark.parametrize("schedule", [ONE_F_ONE_B, GPIPE, RING], ids=["1F1B", "GPipe", "ring"])
def test_the_schedule_that_made_the_calls_is_found(schedule: tuple[StageCalls, ...]) -> None:
    made, numbers = played(schedule)
    calls, pipeline = by_stage(made)
    plan = plan_of(calls, [pipeline], calls.origin_us)
    assert plan is not None
    assert ends_of(calls, *plan.pairs([pipeline])) == true_ends(numbers)


@UNHURRIED
@given(st.lists(st.floats(-1e8, 1e8), min_size=N_STAGES, max_size=N_STAGES))
def test_stages_that_no_collective_connects_may_have_any_clocks(clock_us: list[float]) -> None:
    made, numbers = played(ONE_F_ONE_B, tuple(clock_us))
    calls = calls_of(collectives_table(made))
    where = small_topology({"p": tuple(range(N_STAGES))}, stages={stage: stage for stage in range(N_STAGES)})
    ends = pair_messages(calls, calls.origin_us, where)
    received = np.flatnonzero(ends.sender >= 0)
    assert ends.n_unpaired == 0
    assert ends_of(calls, ends.sender[received], received) == true_ends(numbers)


def at_once(one: Call) -> Call:
    """A receive that finds its message there: it began shortly before it ended."""
    if one.op_type == "send":
        return one
    return replace(one, start_us=one.start_us + one.elapse_us - 20.0, elapse_us=20.0)


@pytest.mark.parametrize("waits", [True, False], ids=["waiting too long", "arriving before they are sent"])
def test_messages_that_contradict_clocks_that_collectives_connect_fit_no_schedule(waits: bool) -> None:
    made, _ = played(ONE_F_ONE_B, (0.0, 1e6, 0.0, 1e6))
    together = [Call(stage, "allreduce", 9e6, 10.0, "all", 99) for stage in range(N_STAGES)]
    own = made if waits else [at_once(one) for one in made]
    calls, pipeline = by_stage([*own, *together])
    assert plan_of(calls, [pipeline], calls.origin_us) is None
    apart, pipeline = by_stage(own)
    assert plan_of(apart, [pipeline], apart.origin_us) is not None


def test_in_a_ring_everybody_receives_from_the_one_before() -> None:
    made, _ = played(RING)
    calls = calls_of(collectives_table(made))
    ends = pair_messages(calls, calls.origin_us, small_topology({"p": tuple(range(N_STAGES))}))
    received = np.flatnonzero(calls.is_receive)
    assert ends.n_unpaired == 0
    senders = calls.rank[ends.sender[received]]
    assert senders.tolist() == ((calls.rank[received] - 1) % N_STAGES).tolist()


def test_calls_of_no_known_schedule_have_no_plan() -> None:
    made, _ = played(ONE_F_ONE_B)
    calls, pipeline = by_stage(made)
    short = replace(pipeline, sends=(pipeline.sends[0][:-1], *pipeline.sends[1:]))
    assert plan_of(calls, [short], calls.origin_us) is None


@UNHURRIED
@given(st.sets(st.tuples(st.integers(0, N_STAGES - 1), st.integers(1, 16)), max_size=6))
def test_lost_records_lose_their_own_messages_and_no_other(lost: set[tuple[int, int]]) -> None:
    made, numbers = played(ONE_F_ONE_B)
    kept = [one for one in made if (one.rank, one.number) not in lost]
    # A step's pipelines are read together: one with all records, one with holes.
    again = [replace(one, rank=one.rank + N_STAGES, group="q") for one in made]
    calls = calls_of(collectives_table([*kept, *again]))
    holed, whole = (of_group(calls, first) for first in (0, N_STAGES))
    plan = plan_of(calls, [whole], calls.origin_us)
    assert plan is not None
    found = ends_of(calls, *pairs_by_number(calls, holed, plan, whole))
    assert found == {
        one for one in true_ends(numbers) if (one[0], one[1]) not in lost and (one[2], one[3]) not in lost
    }


def of_group(calls: Calls, first: int) -> Pipeline:
    stages = [np.flatnonzero(calls.rank == first + stage) for stage in range(N_STAGES)]
    return Pipeline(
        tuple(own[calls.is_send[own]] for own in stages),
        tuple(own[calls.is_receive[own]] for own in stages),
        tuple(own[:0] for own in stages),
    )
