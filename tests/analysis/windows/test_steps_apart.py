"""Ranks that count other times from step to step than those whom collectives connect them with."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cluster_analysis.tables.schema import COLLECTIVES, LINKS, MATCHED, RANK_TIMES, STEPS
from cluster_analysis.trace.evidence import StepEvidence
from cluster_analysis.windows.other_times import departures
from cluster_analysis.windows.steps_apart import at_other_times
from cluster_run.ids import Step
from tests.analysis.windows.test_other_times import ALL, MS, OWN_HOSTS, calls, topology

Ends = list[tuple[float, ...]]
PAIRS = [(0, 2), (1, 3)]
STAGES = [(0, 1), (2, 3)]
STEPS_MS = (0, 100, 200)


def steps(ended_ms: Ends, groups: list[tuple[int, ...]]) -> list[StepEvidence]:
    """One call of each group in each step, which members leave when given, by the clocks of four hosts."""
    found = []
    for step in range(max(map(len, ended_ms))):
        rows = [
            {
                "rank": rank,
                "step": step,
                "group": str(group),
                "op_type": "allreduce",
                "op_index": 0,
                "start_ns": 10**18 + round((ended_ms[rank][step] - 10) * MS),
                "elapse_us": 10_000.0,
            }
            for group, members in enumerate(groups)
            for rank in members
            if step < len(ended_ms[rank])
        ]
        found.append(evidence(step, pa.Table.from_pylist(rows, COLLECTIVES), groups))
    return found


def evidence(step: int, collectives: pa.Table, groups: list[tuple[int, ...]]) -> StepEvidence:
    left = departures(collectives, topology(groups, OWN_HOSTS))
    tables = (one.empty_table() for one in (STEPS, MATCHED, RANK_TIMES, LINKS))
    return StepEvidence(Step(step), *tables, None, apart=left.apart, clocks=left.clocks)


@pytest.mark.parametrize(
    ("ended_ms", "groups", "ranks", "in_steps"),
    [
        ([STEPS_MS] * 4, ALL, (), ()),
        # A clock that was set by less than a step, and by more.
        ([STEPS_MS] * 3 + [(0, 100, 260)], ALL, (), ()),
        ([STEPS_MS] * 3 + [(0, 100, 900)], ALL, (3,), (2,)),
        ([STEPS_MS] * 3 + [(0, -700, -600)], ALL, (3,), (1,)),
        # In all steps: another run.
        ([STEPS_MS] * 3 + [(0, 101, 199)], ALL, (3,), (1, 2)),
        ([STEPS_MS] * 3 + [(3.6e6, 3.6e6 + 101, 3.6e6 + 199)], ALL, (3,), (1, 2)),
        ([STEPS_MS] * 3 + [(0, 101, 199)], [*ALL, *PAIRS], (3,), (1, 2)),
        # What hosts' clocks drift.
        ([STEPS_MS] * 3 + [(0, 100.01, 200.02)], ALL, (), ()),
        # Half of the ranks, or groups of two: nobody says who is right.
        ([STEPS_MS] * 2 + [(0, 100, 900)] * 2, PAIRS, (0, 1, 2, 3), (2,)),
        ([STEPS_MS] * 2 + [(0, 101, 199)] * 2, [*ALL, *STAGES], (0, 1, 2, 3), (1, 2)),
        # Clocks were always apart; and ranks that share no group may work as they like.
        ([STEPS_MS] * 2 + [(900, 1000, 1100)] * 2, ALL, (), ()),
        ([STEPS_MS] * 2 + [(0, 100, 900)] * 2, STAGES, (), ()),
        ([STEPS_MS] * 3 + [()], ALL, (), ()),
    ],
)
def test_who_counts_other_times_between_steps_than_most_is_named(
    ended_ms: Ends, groups: list[tuple[int, ...]], ranks: tuple[int, ...], in_steps: tuple[int, ...]
) -> None:
    found = at_other_times(steps(ended_ms, groups))
    assert [dict(one.values) for one in found] == ([{"ranks": ranks, "steps": in_steps}] if ranks else [])


def test_steps_without_calls_tell_nothing() -> None:
    assert at_other_times(steps([STEPS_MS] * 4, [])) == ()


@pytest.mark.parametrize(("job_of_steps", "named"), [("1112", False), ("1222", True), ("2", True)])
def test_who_leaves_apart_within_most_steps_is_named(job_of_steps: str, named: bool) -> None:
    found = [
        evidence(step, calls((1, 1, int(job), 1), ALL, later_ms=(1000.0 * step,) * 4), ALL)
        for step, job in enumerate(job_of_steps)
    ]
    assert bool(at_other_times(found)) == named
