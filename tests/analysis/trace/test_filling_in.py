from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.tables.model import Topology
from cluster_analysis.trace.alignment import clock_offsets
from cluster_analysis.trace.calls import Calls, calls_of
from cluster_analysis.trace.matching import match_calls
from cluster_analysis.trace.missing.imputation import with_missing_calls
from cluster_analysis.trace.missing.placing import UsualGaps
from cluster_analysis.trace.pairing.ends import programs_of
from cluster_analysis.trace.reduction import reduce_step
from cluster_analysis.trace.streams.streams import sequence
from cluster_run.ids import Step
from cluster_simulate.api import Healthy, JobSpec
from tests.analysis.copies import replace
from tests.analysis.jobs import NO_LINKS, SMALL, Call, collectives_table, judged, small_topology, steps_table
from tests.analysis.said import notes_of

WHERE = small_topology({"g": (0, 1, 2)}, stages={0: 0, 1: 0, 2: 0})


def three_rounds(lost: set[tuple[int, int]]) -> list[Call]:
    calls = []
    for number in range(3):
        for rank in range(3):
            elapse = 100.0 + 50.0 * rank
            calls.append(Call(rank, "allreduce", 1000.0 * (number + 1) - elapse, elapse, number=number))
    return [one for one in calls if (one.rank, one.number) not in lost]


def filled_of(
    made: list[Call], where: Topology = WHERE, *, clock_offset_us: dict[int, float] | None = None
) -> tuple[Calls, Calls]:
    """The calls that were recorded, and the same with those that are missing."""
    calls = calls_of(collectives_table(made, clock_offset_us=clock_offset_us))
    return calls, with_missing(calls, where)


def with_missing(calls: Calls, where: Topology, began_us: FloatArray | None = None) -> Calls:
    """The calls with those that are missing.

    `began_us` (2, ranks) is when devices and steps began, by each rank's clock, which is 0 at its first call.
    """
    operator, _ = match_calls(calls)
    offset, n = clock_offsets(calls, operator), len(calls.ranks)
    programs, local = programs_of(calls, offset, where, None), sequence(calls, np.zeros(n, np.int32))
    began = np.full((2, n), np.nan) if began_us is None else began_us
    return with_missing_calls(calls, operator, offset, where, programs, local, began)[0]


def test_a_lost_collective_ends_where_the_other_members_left_it() -> None:
    _, filled = filled_of(three_rounds({(1, 1)}), clock_offset_us={1: 5000.0})
    own = np.flatnonzero(filled.rank == 1)
    assert len(own) == 3
    ends = filled.end_us[own]
    assert np.diff(ends).tolist() == pytest.approx([1000.0, 1000.0])
    assert (np.diff(filled.start_us[own]) > 0).all()


def test_calls_that_begin_at_one_time_keep_their_order_where_others_are_filled_in() -> None:
    together = [
        Call(rank, "send" if number == 8 else "allreduce", 5000.0, elapse, f"{number}", number)
        for rank in range(3)
        for number, elapse in ((7, 900.0), (8, 300.0))
    ]
    calls, filled = filled_of([*three_rounds({(1, 1)}), *together])
    assert len(filled) == len(calls) + 1
    assert filled.number[filled.number > 2].tolist() == [7, 8] * 3


@pytest.mark.parametrize("other_has_it", [True, False])
def test_a_collective_that_most_members_lack_was_made_if_other_groups_of_its_purpose_have_it(
    other_has_it: bool,
) -> None:
    groups = {"a": (0, 1, 2, 3), "b": (4, 5, 6, 7)}
    calls = [
        Call(rank, "allreduce", 1000.0 * number + 10.0 * rank, 100.0 - 10.0 * rank, group, number)
        for group, ranks in groups.items()
        for number in range(4)
        for rank in ranks
        if not (number == 3 and ((group == "b" and not other_has_it) or rank in (0, 1, 3)))
    ]
    where = small_topology(groups, {"a": "tp", "b": "tp"}, stages=dict.fromkeys(range(8), 0))
    _, filled = filled_of(calls, where)
    n_calls = np.bincount(filled.rank)
    assert n_calls[[0, 1, 3]].tolist() == ([4, 4, 4] if other_has_it else [3, 3, 3])


def test_others_that_have_a_call_on_unlike_streams_do_not_say_when_the_one_that_lost_it_came() -> None:
    calls = calls_of(collectives_table(three_rounds({(1, 1)})))
    zeros, others = np.zeros(3, np.int64), np.flatnonzero(calls.number == 1)
    gaps = UsualGaps.of(calls, match_calls(calls)[0], zeros, zeros[:1], np.zeros((2, 3)))
    alike = sequence(calls, np.zeros(3, np.int32))
    is_side = np.isin(np.arange(len(calls)), others[:1])
    came_us = [
        gaps.issued_us(calls, 1, others, streams, {}, 0.0)
        for streams in (alike, replace(alike, is_side=is_side))
    ]
    assert np.isfinite(came_us).tolist() == [True, False]


def test_the_time_in_a_lost_call_is_not_taken_for_local_work() -> None:
    totals = steps_table(dict.fromkeys(range(3), 3000.0))
    whole, holed = (
        reduce_step(Step(1), totals, collectives_table(three_rounds(lost)), NO_LINKS, WHERE).operators
        for lost in (set(), {(0, 1)})
    )
    assert whole is not None
    assert holed is not None

    def local(step: object, rank: int) -> float:
        return float(step.instance_gap_us[step.instance_rank == rank].sum())  # type: ignore[attr-defined]

    assert local(holed, 0) == pytest.approx(local(whole, 0), abs=90.0)


def test_a_group_of_which_most_members_have_no_files_is_not_filled_in() -> None:
    calls, filled = filled_of(three_rounds(set()), small_topology({"g": tuple(range(8))}))
    assert filled is calls


def test_lost_messages_are_paired_by_what_their_stage_does() -> None:
    result = judged(replace(SMALL, microbatches=4, healthy=Healthy(missing_records=0.01)))
    assert result.detection.verdict == "healthy"
    step = result.evidence.step_operators[0]
    assert step is not None
    p2p = step.instance_is_p2p
    paired = (step.instance_sender >= 0) | (step.instance_receiver >= 0)
    assert paired[p2p].mean() > 0.97


def test_merged_evidence_names_ranks_without_steps() -> None:
    result = judged(replace(SMALL, healthy=Healthy(missing_ranks=(3, 17))))
    assert any("30 of 32 ranks can be compared" in note for note in notes_of(result.detection))


def test_a_lost_call_of_the_one_whom_all_others_waited_for_begins_when_its_transfer_did() -> None:
    lost = [one for one in three_rounds({(0, 1)}) if one.number != 1]
    waiting = [
        Call(rank, "allreduce", 2000.0 - elapse, elapse, number=1)
        for rank, elapse in ((1, 880.0), (2, 850.0))
    ]
    _, filled = filled_of([*lost, *waiting])
    assert filled.elapse_us[filled.rank == 0].tolist() == pytest.approx([100.0, 100.0, 100.0])


def filled_in(calls: list[Call]) -> Calls:
    """The calls of a step with the missing ones."""
    found = calls_of(collectives_table(calls))
    where = small_topology({"g": tuple(range(6))}, stages=dict.fromkeys(range(6), 0))
    return with_missing(found, where)


def test_of_two_that_lack_a_call_all_others_waited_for_the_one_that_came_later() -> None:
    """Rank 5 is done with a call of its own 800 µs later than the others, and rank 4 with them."""
    calls = [
        one
        for rank in range(6)
        for one in (
            Call(rank, "allreduce", 0.0, 100.0, number=0),
            Call(rank, "allreduce", 200.0, 1500.0 if rank == 5 else 700.0, f"t{rank}", number=7),
            Call(rank, "allreduce", 1000.0, 900.0, number=1),
            Call(rank, "allreduce", 2500.0, 100.0, number=2),
        )
        if not (rank > 3 and one.number == 1)
    ]
    filled = filled_in(calls)
    made_up = filled.rows < 0
    assert filled.start_us[made_up].tolist() == pytest.approx([1000.0, 1800.0])
    assert filled.end_us[made_up].tolist() == pytest.approx([1900.0, 1900.0])


def two_stages(lost: set[tuple[int, int]]) -> list[Call]:
    """Two ranks of each of two stages; messages come from rank 0 to 1 and from 2 to 3, 1000 us apart.

    Each sends after 600 us of work, and its receiver waits for that; `lost` are ranks and numbers.
    """
    calls = []
    for group, (source, target) in {"a": (0, 1), "b": (2, 3)}.items():
        for number in range(6):
            at = 1000.0 * number + 600.0
            calls.append(Call(source, "send", at, 100.0, group=group, number=number))
            calls.append(Call(target, "receive", at - 300.0, 400.0, group=group, number=number))
    return [one for one in calls if (one.rank, one.number) not in lost]


def test_of_two_lost_messages_the_second_begins_behind_the_first() -> None:
    calls = calls_of(collectives_table(two_stages({(1, 2), (1, 3)})))
    where = small_topology(
        {"a": (0, 1), "b": (2, 3)}, {"a": "pp", "b": "pp"}, stages={0: 0, 1: 1, 2: 0, 3: 1}
    )
    filled = with_missing(calls, where)
    own, whole = np.flatnonzero(filled.rank == 1), np.flatnonzero(filled.rank == 3)
    assert filled.end_us[own].tolist() == pytest.approx(filled.end_us[whole].tolist(), abs=5.0)
    assert filled.start_us[own].tolist() == pytest.approx(filled.start_us[whole].tolist(), abs=5.0)


def late_receiver(at_us: float, late_us: float, number: int, *, waits: bool) -> list[Call]:
    """A message in each replica whose receiver comes so late; in the second one only if `waits`."""
    calls = list[Call]()
    for group, source, own_us in (("a", 0, late_us), ("b", 2, late_us if waits else -300.0)):
        over_us = at_us + max(own_us + 50.0, 100.0)
        begun_us = at_us + own_us
        calls.append(Call(source, "send", at_us, over_us - at_us, group=group, number=number))
        calls.append(Call(source + 1, "receive", begun_us, over_us - begun_us, group=group, number=number))
    return calls


@pytest.mark.parametrize(
    ("own_waits", "others_wait", "lasts_us"),
    [
        pytest.param(False, False, 100.0, id="nobody waits"),
        pytest.param(True, False, 5050.0, id="that of another replica waits"),
        pytest.param(False, True, 5050.0, id="other messages wait"),
    ],
)
def test_a_lost_send_waits_for_a_late_receiver_where_others_did(
    own_waits: bool, others_wait: bool, lasts_us: float
) -> None:
    """All receivers wait for their senders, but for the last one of rank 1, which comes 5 ms later."""
    calls = two_stages({(rank, number) for rank in range(4) for number in (4, 5)})
    calls += late_receiver(4600.0, 2000.0 if others_wait else -300.0, 4, waits=True)
    calls += late_receiver(9600.0, 5000.0, 5, waits=own_waits)
    where = small_topology(
        {"a": (0, 1), "b": (2, 3)}, {"a": "pp", "b": "pp"}, stages={0: 0, 1: 1, 2: 0, 3: 1}
    )
    _, filled = filled_of([one for one in calls if (one.rank, one.number) != (0, 5)], where)
    assert filled.elapse_us[filled.rows < 0].tolist() == pytest.approx([lasts_us], abs=5.0)


def test_a_lost_call_before_a_lost_send_waits_though_other_replicas_were_earlier() -> None:
    """Rank 4 stands still for 10 ms before its replica's fourth call; rank 0 lacks that and the send."""
    calls = list[Call]()
    for group, source, pause_us in (("a", 0, 1e4), ("b", 2, 0.0)):
        for number in range(6):
            at = 1000.0 * number + 600.0 + (pause_us if number >= 3 else 0.0)
            waits_us = pause_us if number == 3 else 0.0
            for rank in (source, source + 8, source + 12):
                calls.append(
                    Call(rank, "allreduce", at - 200.0 - waits_us, 50.0 + waits_us, f"t{group}", number)
                )
            calls.append(Call(source + 4, "allreduce", at - 200.0, 50.0, f"t{group}", number))
            calls.append(Call(source, "send", at, 100.0, group, number))
            calls.append(Call(source + 1, "receive", at - 300.0, 400.0, group, number))
    groups = {"a": (0, 1), "b": (2, 3), "ta": (0, 4, 8, 12), "tb": (2, 6, 10, 14)}
    roles = {"a": "pp", "b": "pp", "ta": "tp", "tb": "tp"}
    where = small_topology(groups, roles, stages={rank: rank % 2 for rank in (*range(4), *range(4, 16, 2))})
    _, filled = filled_of([one for one in calls if (one.rank, one.number) != (0, 3)], where)
    assert filled.elapse_us[filled.rows < 0].tolist() == pytest.approx([10050.0, 100.0], abs=5.0)


def left_together(end_us: float, elapse_us: float, number: int, *, lost: frozenset[int]) -> list[Call]:
    return [
        Call(rank, "allreduce", end_us - elapse_us, elapse_us, number=number)
        for rank in range(6)
        if rank not in lost
    ]


@pytest.mark.parametrize(
    ("n_ranks", "stood_still_us", "is_transfer"),
    [
        pytest.param(12, 290e3, True, id="it is chance that just the late one's record is lost"),
        pytest.param(6, 290e3, False, id="of few ranks the late one may well be it"),
        pytest.param(12, 150e3, False, id="so long ranks come late every now and then"),
    ],
)
def test_a_call_in_which_many_stood_still_lasted_as_long_for_the_one_whose_record_is_lost(
    n_ranks: int, stood_still_us: float, is_transfer: bool
) -> None:
    ends = {1: 1000.0, 2: 2000.0, 3: 3000.0 + stood_still_us, 4: 4000.0 + stood_still_us}
    found = calls_of(
        collectives_table(
            [
                Call(rank, "allreduce", end - lasts, lasts, number=number)
                for number, end in ends.items()
                for lasts in [300.0 + (stood_still_us if number == 3 else 0.0)]
                for rank in range(n_ranks)
                if (rank, number) != (1, 3)
            ]
        )
    )
    where = small_topology({"g": tuple(range(n_ranks))}, stages=dict.fromkeys(range(n_ranks), 0))
    filled = with_missing(found, where)
    lasted = filled.elapse_us[filled.rank == 1][2]
    assert lasted == pytest.approx(stood_still_us + 300.0 if is_transfer else 300.0, abs=1.0)


def test_a_message_that_ends_within_the_jitter_of_a_lost_collective_stays_behind_it() -> None:
    lost = frozenset({1})
    rounds = [left_together(1000.0 * number, 300.0, number, lost=frozenset()) for number in (1, 2, 4, 5)]
    calls = [*chain.from_iterable(rounds), *left_together(3010.0, 300.0, 3, lost=lost)]
    calls += [Call(1, "receive", 3000.0, 5.0, group="p", number=1)]
    found = filled_in(calls)
    own = np.flatnonzero(found.rank == 1)
    assert [found.types[kind] for kind in found.kind[own]] == [
        *["allreduce"] * 3,
        "receive",
        *["allreduce"] * 2,
    ]


@pytest.mark.slow
def test_a_replay_with_lost_records_lasts_as_long_as_the_job_did() -> None:
    spec = JobSpec(tp=4, pp=4, dp=4, vpp=2, steps=5, microbatches=8)
    uneven = Healthy(stage_work=(1.1, 1.0, 1.0, 1.3), missing_records=0.05)
    result = judged(replace(spec, healthy=uneven), seed=3)
    assert result.detection.replay["step_ms"] == pytest.approx(result.job.step_ms, rel=0.011)


def test_a_lost_record_of_the_one_whom_all_wait_for_does_not_hide_its_cost() -> None:
    spec = JobSpec(tp=1, pp=1, dp=16, steps=5, healthy=Healthy(missing_records=0.05))
    result = judged(spec, "slow_rank:1.2@9", seed=7)
    (finding,) = result.alarms
    assert finding.cost_ms_per_step == pytest.approx(result.true_cost_ms, rel=0.03)


@pytest.mark.parametrize(
    "spec",
    [
        JobSpec(tp=4, pp=4, dp=4, steps=5, p2p="rendezvous"),
        JobSpec(tp=4, pp=2, dp=4, steps=5, dp_mode="zero3"),
    ],
    ids=["messages", "collectives"],
)
def test_who_lacks_the_first_record_of_a_step_waits_in_it_for_who_begins_late(spec: JobSpec) -> None:
    lossy = replace(spec, healthy=Healthy(missing_records=0.05))
    result = judged(lossy, "slow_rank:1.1@5,cause=input", seed=2)
    cost_ms = max(one.cost_ms_per_step or 0.0 for one in result.alarms if one.cause == "input")
    assert cost_ms == pytest.approx(result.true_cost_ms, rel=0.05)


@pytest.mark.parametrize("device_began_us", [-1300.0, -500.0], ids=["in it", "behind it"])
def test_a_first_record_that_the_totals_lack_too_counts_from_where_the_step_began(
    device_began_us: float,
) -> None:
    """All begin 200 µs into the step, and wait for rank 3; the device of rank 1 seems to begin behind it."""
    calls = [Call(rank, "allreduce", 900.0 if rank == 3 else 200.0, 100.0, number=0) for rank in range(6)]
    calls = [replace(one, elapse_us=1000.0 - one.start_us) for one in calls if one.rank != 1]
    found = calls_of(collectives_table([*calls, *left_together(1800.0, 300.0, 1, lost=frozenset())]))
    where = small_topology({"g": tuple(range(6))}, stages=dict.fromkeys(range(6), 0))
    began = np.stack([np.zeros(6), np.full(6, -200.0)])
    began[:, 1], began[1, 3] = (device_began_us, -1500.0), -900.0
    filled = with_missing(found, where, began_us=began)
    own = np.flatnonzero(filled.rank == 1)
    assert filled.end_us[own] - filled.start_us[own] == pytest.approx([800.0, 300.0])


TWO_GROUPS = small_topology(
    {"t": tuple(range(6)), "d": tuple(range(6))}, {"t": "tp", "d": "dp"}, stages=dict.fromkeys(range(6), 0)
)


def two_groups(lost: set[tuple[int, str, int]]) -> list[Call]:
    """Four calls of one group after 10 µs each, with one of the other group after 500 µs between them."""
    calls, now = list[Call](), 0.0
    for number in range(4):
        for group, work_us, lasts_us in (("t", 10.0, 50.0), ("d", 500.0, 5.0)):
            begun = now + work_us
            now = begun + lasts_us
            calls += [Call(rank, "allreduce", begun, lasts_us, group, number) for rank in range(6)]
    return [one for one in calls if (one.rank, one.group, one.number) not in lost]


@given(st.sets(st.tuples(st.integers(0, 5), st.sampled_from("td"), st.integers(1, 3)), max_size=8))
def test_what_is_filled_in_takes_no_negative_time_and_lies_where_the_others_have_it(
    lost: set[tuple[int, str, int]],
) -> None:
    _, filled = filled_of(two_groups(lost), TWO_GROUPS)
    whole = calls_of(collectives_table(two_groups(set())))
    assert (filled.elapse_us >= 0).all()
    enough = {key for key in lost if sum((r, *key[1:]) not in lost for r in range(6)) >= 4}
    if enough == lost:
        assert filled.end_us == pytest.approx(whole.end_us, abs=1e-6)
        assert filled.start_us == pytest.approx(whole.start_us, abs=1e-6)
