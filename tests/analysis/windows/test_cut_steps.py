"""A last step that the end of the recording cut is left out; a last step that is merely different is not."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from cluster_analysis.tables.schema import LINKS, MATCHED, RANK_TIMES, STEPS
from cluster_analysis.trace.evidence import StepEvidence
from cluster_analysis.windows.cut_steps import is_last_cut
from cluster_run.ids import Step


def steps(*each: tuple[int, Sequence[float]]) -> list[StepEvidence]:
    """Steps with so many operators, and how long each rank took."""
    found = []
    for number, (n_operators, lengths) in enumerate(each):
        nothing = dict.fromkeys(STEPS.names, 0.0)
        rows = [
            {**nothing, "rank": rank, "step": number, "computing_us": length}
            for rank, length in enumerate(lengths)
        ]
        matched = pa.Table.from_pylist([dict.fromkeys(MATCHED.names)] * n_operators, MATCHED)
        found.append(
            StepEvidence(
                Step(number),
                pa.Table.from_pylist(rows, STEPS),
                matched,
                RANK_TIMES.empty_table(),
                LINKS.empty_table(),
                None,
            )
        )
    return found


WHOLE = (36, [100.0, 101.0])


@pytest.mark.parametrize(
    ("last", "is_cut"),
    [
        ((22, [55.0, 56.0]), True),
        ((9, [20.0, 21.0]), True),
        ((36, [55.0, 56.0]), False),  # whole, and quick
        ((22, [55.0, 99.0]), False),  # one rank took as long as ever
        ((40, [150.0, 150.0]), False),
    ],
)
def test_only_a_step_with_fewer_operators_and_less_time_is_cut(
    last: tuple[int, list[float]], is_cut: bool
) -> None:
    assert is_last_cut(steps(WHOLE, WHOLE, WHOLE, last)) == is_cut


def test_steps_that_differ_before_tell_nothing_of_the_last() -> None:
    assert not is_last_cut(steps(WHOLE, (20, [60.0, 61.0]), WHOLE, (22, [55.0, 56.0])))


def test_one_step_before_is_too_few() -> None:
    assert not is_last_cut(steps(WHOLE, (22, [55.0, 56.0])))
