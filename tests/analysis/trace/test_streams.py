"""Which calls run on a second stream, and from where their gaps count, in calls made by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from cluster_analysis.trace.calls import Calls, calls_of
from cluster_analysis.trace.streams.free import likely_streams
from cluster_analysis.trace.streams.streams import Streams, sequence
from tests.analysis.jobs import Call, collectives_table, steps_table

N_RANKS = 6
LATE = 4
LONG_US = 4e6
#: What a call of four seconds ends too late on paper, at a hundredth of a percent of drift.
DRIFT_US = 300.0


def in_order(of_rank: Callable[[int], list[Call]]) -> tuple[Calls, Streams]:
    """The sequence of one stage's ranks whose groups `d0` … are data-parallel."""
    calls = calls_of(collectives_table([call for rank in range(N_RANKS) for call in of_rank(rank)]))
    data = frozenset(name for name in calls.groups if name.startswith("d"))
    return calls, sequence(calls, np.zeros(N_RANKS, np.int32), data)


def named(calls: Calls, number: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Positions of the calls with this running number, one a rank."""
    return np.flatnonzero(calls.number == number)


def long_call_then_gradients(rank: int) -> list[Call]:
    """A call of 4 s, 100 µs later the gradients on their own stream, and beside them the next call."""
    ended = 2000.0 + LONG_US
    return [
        Call(rank, "allgather", 0.0, 1000.0, group="t", number=1),
        Call(rank, "allgather", 2000.0, LONG_US + DRIFT_US, group="t", number=2),
        Call(rank, "reducescatter", ended + 100.0, 5000.0, group="d", number=3),
        Call(rank, "allgather", ended + 1000.0, 1000.0, group="t", number=4),
    ]


def test_a_side_call_counts_from_the_long_call_before_it_though_that_ends_later_on_paper() -> None:
    calls, found = in_order(long_call_then_gradients)
    side = named(calls, 3)
    assert found.is_side[side].all()
    assert calls.number[found.after[side]].tolist() == [2] * N_RANKS
    assert (found.gap_us[side] < 1000.0).all()


def one_stream_with_a_long_call(rank: int) -> list[Call]:
    return [
        Call(rank, "allgather", 0.0, 1000.0, group="t", number=1),
        Call(rank, "allgather", 2000.0, LONG_US + DRIFT_US, group="t", number=2),
        Call(rank, "allreduce", 2000.0 + LONG_US + 100.0, 1000.0, group="e", number=3),
    ]


def test_a_call_right_after_one_of_four_seconds_needs_no_stream_of_its_own() -> None:
    calls, found = in_order(one_stream_with_a_long_call)
    assert not found.is_side.any()
    assert found.gap_us[named(calls, 3)].tolist() == [0.0] * N_RANKS


def test_calls_that_do_not_overlap_are_one_stream_and_their_gaps_add_up_to_the_local_time() -> None:
    def of_rank(rank: int) -> list[Call]:
        return [Call(rank, "allreduce", 1000.0 * k, 100.0 * k, number=k) for k in range(1, 6)]

    calls, found = in_order(of_rank)
    assert not found.is_side.any()
    assert (found.join == -1).all()
    for rank in range(N_RANKS):
        own = calls.rank == rank
        assert found.gap_us[own].tolist() == pytest.approx([0.0, 900.0, 800.0, 700.0, 600.0])


def single_overlap(rank: int) -> list[Call]:
    """Many calls one after the other; one record of each rank begins before the call before it has ended."""
    calls = [
        Call(rank, ("allreduce", "broadcast")[k % 2], 1000.0 * k, 400.0, group="te"[k % 2], number=k)
        for k in range(60)
    ]
    calls[21] = Call(rank, "broadcast", 20_300.0, 400.0, group="e", number=21)
    return calls


def test_a_kind_of_call_that_overlaps_once_in_thirty_times_is_on_no_stream_of_its_own() -> None:
    assert not in_order(single_overlap)[1].is_side.any()


def gathered_after_waiting(rank: int) -> list[Call]:
    """Gradients that peers wait for unequally long, 2 ms of optimizer, then weights on the same stream."""
    waited = 3000.0 * rank
    return [
        Call(rank, "allreduce", 0.0, 1000.0, group="t", number=1),
        Call(rank, "reducescatter", 1500.0, 9000.0 + waited, group="d", number=2),
        Call(rank, "allreduce", 2000.0, 1000.0, group="t", number=3),
        Call(rank, "allgather", 12_500.0 + waited, 2000.0, group="d", number=4),
    ]


def test_weights_gathered_after_the_optimizer_count_from_the_gradients_it_waited_for() -> None:
    calls, found = in_order(gathered_after_waiting)
    weights = named(calls, 4)
    assert found.is_side[weights].all()
    assert calls.number[found.after[weights]].tolist() == [2] * N_RANKS
    assert found.gap_us[weights].tolist() == pytest.approx([2000.0] * N_RANKS)


def weights_at_the_begin(rank: int) -> list[Call]:
    """Weights that all ranks wait for until the last one comes, then computing beside the next ones."""
    begin = 9_000.0 if rank == LATE else 100.0 * rank
    return [
        Call(rank, "allgather", begin, 12_000.0 - begin, group="d", number=1),
        Call(rank, "allgather", 12_000.0, 4_000.0, group="d", number=2),
        Call(rank, "allreduce", 13_500.0, 500.0, group="t", number=3),
        Call(rank, "allreduce", 15_000.0, 500.0, group="t", number=4),
    ]


def test_weights_that_a_step_begins_with_are_no_second_stream_to_those_that_wait_for_them() -> None:
    calls, found = in_order(weights_at_the_begin)
    first, second, main = (named(calls, number) for number in (1, 2, 3))
    assert not found.is_side[first].any()
    assert found.is_side[second].all()
    assert calls.number[found.after[main]].tolist() == [1] * N_RANKS
    assert found.gap_us[main] == pytest.approx(np.full(N_RANKS, 1_500.0))


@pytest.mark.parametrize(("send", "gradients"), [(2, 3), (3, 2)], ids=["send first", "gradients first"])
def test_gradients_that_begin_with_a_send_say_nothing_of_where_sends_are(send: int, gradients: int) -> None:
    def of_rank(rank: int) -> list[Call]:
        return [
            Call(rank, "allreduce", 0.0, 500.0, group="t", number=1),
            Call(rank, "send", 1_000.0, 300.0, group="p", number=send),
            Call(rank, "allreduce", 1_000.0, 20_000.0, group="d", number=gradients),
            Call(rank, "allreduce", 2_000.0, 500.0, group="t", number=4),
        ]

    calls, found = in_order(of_rank)
    assert calls.number[found.is_side].tolist() == [gradients] * N_RANKS


def weights_beside_the_begin(rank: int) -> list[Call]:
    """The same, but computing goes on meanwhile and begins its own calls at its own time."""
    return [
        Call(rank, "allgather", 0.0, 2_000.0 * rank + 1_000.0, group="d", number=1),
        Call(rank, "allgather", 13_000.0, 4_000.0, group="d", number=2),
        Call(rank, "allreduce", 13_500.0, 500.0, group="t", number=3),
        Call(rank, "allreduce", 15_000.0, 500.0, group="t", number=4),
    ]


def test_weights_that_nobody_waits_for_are_on_the_second_stream_from_the_begin_on() -> None:
    calls, found = in_order(weights_beside_the_begin)
    assert found.is_side[named(calls, 1)].all()


def one_waits_for_its_weights(rank: int) -> list[Call]:
    """All compute for 10 ms once their weights are there; those of one rank come 200 ms late."""
    late = 200_000.0 if rank == LATE else 0.0
    return [
        Call(rank, "allreduce", 0.0, 1_000.0, group="t", number=1),
        Call(rank, "allgather", 1_000.0, 2_000.0 + late, group="d", number=2),
        Call(rank, "allreduce", 13_000.0 + late, 1_000.0, group="t", number=3),
        Call(rank, "allgather", 14_000.0 + late, 4_000.0, group="d", number=4),
        Call(rank, "allreduce", 16_000.0 + late, 1_000.0, group="t", number=5),
    ]


def test_that_one_rank_waited_for_its_weights_shows_that_all_do() -> None:
    calls, found = in_order(one_waits_for_its_weights)
    main = named(calls, 3)
    assert calls.number[found.join[main]].tolist() == [2] * N_RANKS
    assert found.gap_us[main] == pytest.approx(np.full(N_RANKS, 10_000.0))


@pytest.mark.parametrize("lacking", [(0,), (1,), (0, 1)], ids=["quick", "late", "both"])
def test_ranks_without_peers_wait_for_what_other_members_of_the_same_operator_wait_for(
    lacking: tuple[int, ...],
) -> None:
    """Two ranks may lack the same record, so that none shows it and they run no program that others do."""

    def of_rank(rank: int) -> list[Call]:
        made = one_waits_for_its_weights(LATE if rank in (1, LATE) else rank)
        return [replace(one, rank=rank) for one in made if rank not in lacking or one.number != 5]

    calls, found = in_order(of_rank)
    main = named(calls, 3)
    assert calls.number[found.join[main]].tolist() == [2] * N_RANKS
    assert found.gap_us[main] == pytest.approx(np.full(N_RANKS, 10_000.0))


def gradients_beside_a_batch(rank: int) -> list[Call]:
    """The last exchange with the next stage, and beside it the gradients; then all ranks meet."""
    work = 1000.0 + 10.0 * rank
    return [
        Call(rank, "batchsendrecv", 0.0, 500.0, group="p", number=1),
        Call(rank, "batchsendrecv", 500.0 + work, 500.0, group="p", number=2),
        Call(rank, "reducescatter", 500.0 + work, 4000.0, group="d", number=3),
        Call(rank, "allreduce", 4500.0 + work, 100.0, group="w", number=4),
    ]


def test_gradients_that_move_during_an_exchange_between_stages_are_on_a_second_stream() -> None:
    calls, found = in_order(gradients_beside_a_batch)
    assert calls.number[found.is_side].tolist() == [3] * N_RANKS
    assert found.gap_us[named(calls, 2)].tolist() == pytest.approx(
        [1000.0 + 10.0 * i for i in range(N_RANKS)]
    )


def gradients_of_all_computing(rank: int) -> list[Call]:
    """Nothing but gradients, summed up beside the computing, and one call at the end that waits for them."""
    late = 300.0 if rank == LATE else 0.0
    return [
        Call(rank, "allreduce", late, 1300.0 - late, group="d", number=1),
        Call(rank, "allreduce", 1300.0, 1000.0, group="d", number=2),
        Call(rank, "allreduce", 2000.0 + late, 500.0, group="w", number=3),
    ]


def test_gradients_are_never_what_a_step_begins_with() -> None:
    calls, found = in_order(gradients_of_all_computing)
    assert found.is_side[calls.number < 3].all()


def sends_that_wait(rank: int, *, n_early: int) -> list[Call]:
    """Twenty long sends, and what follows each, of which so many begin before the send has ended."""
    calls = []
    for number in range(20):
        begun = 10_000.0 * number
        calls.append(Call(rank, "send", begun, 5000.0, group="p", number=2 * number))
        ended = begun + (4000.0 if number < n_early else 6000.0)
        calls.append(Call(rank, "allgather", ended, 1000.0, group="t", number=2 * number + 1))
    return calls


@pytest.mark.parametrize(("n_early", "is_beside"), [(1, False), (10, True)])
def test_sends_run_beside_the_rest_where_what_comes_next_regularly_begins_before_they_end(
    n_early: int, is_beside: bool
) -> None:
    calls, found = in_order(lambda rank: sends_that_wait(rank, n_early=n_early))
    assert found.is_side[calls.is_send].all() == is_beside
    assert found.is_side.any() == is_beside


@pytest.mark.parametrize("is_beside", [False, True])
def test_sends_are_where_the_totals_have_room_for_them_beside_gradients_that_computing_covers(
    is_beside: bool,
) -> None:
    """Some ranks send to others, which come late; computing covers gradients, and sends or not."""
    calls = list[Call]()
    n_senders = N_RANKS // 2
    for rank in range(N_RANKS):
        moves, begun, lasts = ("send", 10e3, 6_400.0) if rank < n_senders else ("receive", 16e3, 400.0)
        calls += [
            Call(rank, "allreduce", 4_000.0, 5_000.0, group="d", number=1),
            Call(rank, moves, begun, lasts, group=f"p{rank % n_senders}", number=2),
            Call(rank, "allreduce", 20e3, 100.0, group="w", number=3),
        ]
    own = calls_of(collectives_table(calls))
    exposed = np.full(N_RANKS, 500.0)
    exposed[:n_senders] = 100.0 if is_beside else 6_500.0
    steps = steps_table(dict.fromkeys(range(N_RANKS), 20_100.0))
    overlapped = pa.array([*(n_senders * [11_400.0 if is_beside else 5_000.0]), *(n_senders * [5_000.0])])
    steps = steps.set_column(steps.column_names.index("overlapped_us"), "overlapped_us", overlapped)
    stage = np.repeat([0, 1], n_senders).astype(np.int32)
    shortest = np.where(own.is_send, 400.0, own.elapse_us)
    found = likely_streams(own, stage, frozenset({"d"}), shortest, steps, exposed)
    assert found.is_side[own.is_send].tolist() == [is_beside] * n_senders


def held_back(rank: int, *, overtaking: int) -> list[Call]:
    """Gradients in a queue beside computing; the last ones go behind it, on the stream that computes."""
    begun = 6000.0 + 100.0 * rank
    behind = begun if rank < overtaking else 9000.0
    return [
        Call(rank, "allreduce", 1000.0, 3000.0, group="d", number=1),
        Call(rank, "allreduce", 4000.0, 2500.0, group="d", number=2),
        Call(rank, "allreduce", 6500.0, 2000.0, group="d", number=3),
        Call(rank, "allreduce", behind, 4000.0, group="d", number=4),
    ]


def test_gradients_that_overtake_others_of_their_group_are_on_the_main_stream() -> None:
    calls, found = in_order(lambda rank: held_back(rank, overtaking=N_RANKS))
    assert sorted(calls.number[found.is_side].tolist()) == sorted([1, 2, 3] * N_RANKS)
    last = named(calls, 4)
    assert found.gap_us[last] == pytest.approx(0.0)  # a rank's first main call: its step's begin
    assert (found.after[last] == -1).all()


def test_one_rank_whose_calls_overlap_does_not_put_a_group_on_two_streams() -> None:
    _, found = in_order(lambda rank: held_back(rank, overtaking=1))
    assert not found.is_side.any()
