from dataclasses import replace

import numpy as np
import pytest

from cluster_analysis.alignment import clock_offsets
from cluster_analysis.calls import calls_of
from cluster_analysis.imputation import with_missing_calls
from cluster_analysis.matching import match_calls
from cluster_analysis.reduction import reduce_step
from cluster_analysis.simulation.api import Healthy
from cluster_run.ids import Step
from tests.analysis.detection.jobs import (
    NO_LINKS,
    SMALL,
    Call,
    collectives_table,
    judged,
    small_topology,
    steps_table,
)

WHERE = small_topology({"g": (0, 1, 2)}, stages={0: 0, 1: 0, 2: 0})


def three_rounds(lost: set[tuple[int, int]]) -> list[Call]:
    calls = []
    for number in range(3):
        for rank in range(3):
            elapse = 100.0 + 50.0 * rank
            calls.append(Call(rank, "allreduce", 1000.0 * (number + 1) - elapse, elapse, number=number))
    return [one for one in calls if (one.rank, one.number) not in lost]


def test_a_lost_collective_ends_where_the_other_members_left_it() -> None:
    calls = calls_of(collectives_table(three_rounds({(1, 1)}), clock_offset_us={1: 5000.0}))
    operator, _ = match_calls(calls)
    offset = clock_offsets(calls, operator)
    filled = with_missing_calls(calls, operator, offset, WHERE)
    own = np.flatnonzero(filled.rank == 1)
    assert len(own) == 3
    ends = filled.end_us[own]
    assert np.diff(ends).tolist() == pytest.approx([1000.0, 1000.0])
    assert (np.diff(filled.start_us[own]) > 0).all()


def test_complete_calls_are_left_as_they_are() -> None:
    calls = calls_of(collectives_table(three_rounds(set())))
    operator, _ = match_calls(calls)
    assert with_missing_calls(calls, operator, clock_offsets(calls, operator), WHERE) is calls


def test_the_time_in_a_lost_call_is_not_taken_for_local_work() -> None:
    totals = steps_table(dict.fromkeys(range(3), 3000.0))
    whole, holed = (
        reduce_step(Step(1), totals, collectives_table(three_rounds(lost)), NO_LINKS, WHERE).operators
        for lost in (set(), {(0, 1)})
    )
    assert whole is not None
    assert holed is not None

    def local(step: object, rank: int) -> float:
        return float(step.visit_gap_us[step.visit_rank == rank].sum())  # type: ignore[attr-defined]

    assert local(holed, 0) == pytest.approx(local(whole, 0), abs=90.0)


def test_a_group_of_which_most_members_have_no_files_is_not_filled_in() -> None:
    wide = small_topology({"g": tuple(range(8))})
    calls = calls_of(collectives_table(three_rounds(set())))
    operator, _ = match_calls(calls)
    assert with_missing_calls(calls, operator, clock_offsets(calls, operator), wide) is calls


def test_lost_messages_are_paired_by_what_their_stage_does() -> None:
    result = judged(replace(SMALL, healthy=Healthy(missing_records=0.01)))
    assert result.detection.verdict == "healthy"
    step = result.evidence.step_operators[0]
    assert step is not None
    p2p = step.visit_is_p2p
    paired = (step.visit_sender >= 0) | (step.visit_receiver >= 0)
    assert paired[p2p].mean() > 0.97


def test_merged_evidence_names_ranks_without_steps() -> None:
    result = judged(replace(SMALL, healthy=Healthy(missing_ranks=(3, 17))))
    assert any("30 of 32 ranks were read" in note for note in result.detection.notes)


def test_a_lost_call_of_the_one_whom_all_others_waited_for_begins_when_its_transfer_did() -> None:
    lost = [one for one in three_rounds({(0, 1)}) if one.number != 1]
    waiting = [
        Call(rank, "allreduce", 2000.0 - elapse, elapse, number=1)
        for rank, elapse in ((1, 880.0), (2, 850.0))
    ]
    calls = calls_of(collectives_table([*lost, *waiting]))
    operator, _ = match_calls(calls)
    filled = with_missing_calls(calls, operator, clock_offsets(calls, operator), WHERE)
    assert filled.elapse_us[filled.rank == 0].tolist() == pytest.approx([100.0, 100.0, 100.0])
