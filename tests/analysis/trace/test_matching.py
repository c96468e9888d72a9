import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_analysis.trace.calls import calls_of
from cluster_analysis.trace.matching import match_calls
from cluster_analysis.trace.reduction import reduce_step
from cluster_run.ids import Step
from tests.analysis.jobs import NO_LINKS, Call, collectives_table, small_topology, steps_table


def rounds(n: int, ranks: int = 3, first_number: int = 0) -> list[Call]:
    """`n` all-reduces 100 µs apart (longer and longer gaps), which all ranks leave together."""
    calls = []
    for number in range(n):
        end = 1000.0 * number + 30.0 * number**2 + 500.0
        for rank in range(ranks):
            elapse = 100.0 + 40.0 * rank
            calls.append(Call(rank, "allreduce", end - elapse, elapse, number=first_number + number))
    return calls


def partners(table: pa.Table) -> set[frozenset[tuple[int, int]]]:
    """Operators as sets of (rank, running number in the file)."""
    calls = calls_of(table)
    operator, _ = match_calls(calls)
    return {
        frozenset(
            (int(calls.ranks[calls.rank[i]]), int(calls.number[i])) for i in np.flatnonzero(operator == one)
        )
        for one in np.unique(operator)
    }


def test_the_kth_call_of_each_rank_is_one_operator() -> None:
    assert partners(collectives_table(rounds(4))) == {
        frozenset((rank, number) for rank in range(3)) for number in range(4)
    }


def test_a_lost_record_leaves_a_hole_in_the_numbers_and_shifts_nothing() -> None:
    calls = [one for one in rounds(6) if (one.rank, one.number) != (1, 2)]
    assert frozenset({(0, 5), (1, 5), (2, 5)}) in partners(collectives_table(calls))
    assert frozenset({(0, 2), (2, 2)}) in partners(collectives_table(calls))


def test_ranks_that_lack_different_calls_make_as_many_and_are_matched_by_number() -> None:
    calls = [one for one in rounds(6, ranks=2) if (one.rank, one.number) not in {(0, 1), (1, 4)}]
    assert {frozenset({(0, 2), (1, 2)}), frozenset({(0, 3), (1, 3)}), frozenset({(1, 1)})} <= partners(
        collectives_table(calls)
    )


def test_ranks_that_count_from_elsewhere_are_matched_by_their_ends() -> None:
    calls = [
        Call(one.rank, one.op_type, one.start_us, one.elapse_us, number=one.number + one.rank)
        for one in rounds(6, ranks=2)
    ]
    assert partners(collectives_table(calls)) == {
        frozenset({(0, number), (1, number + 1)}) for number in range(6)
    }


def test_a_single_number_that_ranks_have_in_common_matches_no_calls_that_ended_at_other_times() -> None:
    jitter = [0.0, 2.0, 1.0, 0.0, 1.0, 2.0]
    calls = [
        Call(
            one.rank,
            one.op_type,
            one.start_us,
            one.elapse_us + late * one.rank,
            number=one.number + 5 * one.rank,
        )
        for one, late in zip(rounds(6, ranks=2), np.repeat(jitter, 2).tolist(), strict=True)
    ]
    assert partners(collectives_table(calls)) == {
        frozenset({(0, number), (1, number + 5)}) for number in range(6)
    }


def test_numbers_that_close_over_a_lost_record_are_not_believed_but_the_ends_are() -> None:
    kept = [one for one in rounds(6) if (one.rank, one.number) != (1, 2)]
    renumbered = [
        Call(one.rank, one.op_type, one.start_us, one.elapse_us, number=one.number - (one.number > 2))
        if one.rank == 1
        else one
        for one in kept
    ]
    table = collectives_table(renumbered, clock_offset_us={1: 7000.0})
    assert frozenset({(0, 5), (1, 4), (2, 5)}) in partners(table)
    assert frozenset({(0, 2), (2, 2)}) in partners(table)


def test_calls_that_overtake_others_on_another_stream_are_matched_by_their_numbers() -> None:
    calls = [
        Call(rank, "allreduce", begin, 1000.0, number=number)
        for rank, begins in enumerate(((0.0, 1000.0, 900.0), (0.0, 1000.0, 1100.0), (0.0, 1000.0, 950.0)))
        for number, begin in enumerate(begins)
    ]
    assert partners(collectives_table(calls)) == {
        frozenset((rank, number) for rank in range(3)) for number in range(3)
    }


def test_files_without_numbers_match_by_order() -> None:
    calls = [Call(one.rank, one.op_type, one.start_us, one.elapse_us) for one in rounds(3)]
    operator, place = match_calls(calls_of(collectives_table(calls)))
    assert len(np.unique(operator)) == 3
    assert set(place.tolist()) == {0, 1, 2}


@given(st.permutations(range(12)))
def test_the_order_of_rows_does_not_matter(order: list[int]) -> None:
    table = collectives_table(rounds(4))
    assert partners(table.take(order)) == partners(table)


def test_the_transfer_is_the_shortest_elapse_and_the_last_to_come_waits_least() -> None:
    evidence = reduce_step(
        Step(1), steps_table({0: 5e3, 1: 5e3, 2: 5e3}), collectives_table(rounds(2)), NO_LINKS,
        small_topology({"g": (0, 1, 2)}),
    )  # fmt: skip
    rows = evidence.matched.to_pylist()
    assert [row["transfer_us"] for row in rows] == [100.0, 100.0]
    assert {row["last_rank"] for row in rows} == {0}
    assert [row["max_wait_us"] for row in rows] == [80.0, 80.0]
    assert evidence.rank_times["wait_us"].to_pylist() == [0.0, 80.0, 160.0]


def test_zero_wait_fields_and_clocks_of_seconds_apart_change_nothing() -> None:
    calls = collectives_table(rounds(5))
    skewed = collectives_table(rounds(5), clock_offset_us={1: 2_000_000.0, 2: -31_000.0})
    where = small_topology({"g": (0, 1, 2)})
    totals = steps_table({0: 9e3, 1: 9e3, 2: 9e3})
    straight = reduce_step(Step(1), totals, calls, NO_LINKS, where)
    crooked = reduce_step(Step(1), totals, skewed, NO_LINKS, where)
    assert straight.matched.equals(crooked.matched)
    assert straight.rank_times["gap_us"].to_pylist() == pytest.approx(
        crooked.rank_times["gap_us"].to_pylist()
    )


def test_a_group_of_one_is_an_operator_nobody_waits_in() -> None:
    calls = [Call(0, "allreduce", 100.0, 3.0, group="alone"), *rounds(2)]
    where = small_topology({"g": (0, 1, 2), "alone": (0,)})
    totals = steps_table({0: 5e3, 1: 5e3, 2: 5e3})
    evidence = reduce_step(Step(1), totals, collectives_table(calls), NO_LINKS, where)
    alone = [row for row in evidence.matched.to_pylist() if row["group"] == "alone"]
    assert [row["max_wait_us"] for row in alone] == [0.0]
