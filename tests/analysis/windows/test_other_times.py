"""Ranks of one host that were in steps of one number at other times."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cluster_analysis.tables.model import Group, ParallelSizes, Topology
from cluster_analysis.tables.schema import STEP_CALLS
from cluster_analysis.windows.other_times import at_other_times
from cluster_run.ids import HostId, Rank

MS = 1_000_000


def job(groups: list[tuple[int, ...]], host_of: list[str]) -> Topology:
    return Topology(
        ranks=tuple(map(Rank, range(len(host_of)))),
        hosts={Rank(rank): HostId(host) for rank, host in enumerate(host_of)},
        devices={},
        groups={
            str(at): Group(str(at), "dp", tuple(map(Rank, one)), "high") for at, one in enumerate(groups)
        },
        parallel=ParallelSizes(),
        stages={},
    )


def calls(begun_ms: list[tuple[int, ...]]) -> pa.Table:
    """Steps of 100 ms each, by rank."""
    rows = [
        {"rank": rank, "step": step, "start_ns": begun * MS, "end_ns": (begun + 100) * MS}
        for rank, of_rank in enumerate(begun_ms)
        for step, begun in enumerate(of_rank)
    ]
    return pa.Table.from_pylist(rows, STEP_CALLS)


ALL = [(0, 1, 2, 3)]
ONE_HOST = ["1"] * 4
USUAL, LATER, A_LITTLE, ONCE = (0, 110), (110, 220), (30, 140), (0, 500)


@pytest.mark.parametrize(
    ("begun", "groups", "host_of", "named"),
    [
        ([USUAL] * 4, ALL, ONE_HOST, ()),
        ([USUAL, USUAL, LATER, USUAL], ALL, ONE_HOST, (2,)),
        ([USUAL, USUAL, LATER, USUAL], [*ALL, (2, 3)], ONE_HOST, (2,)),
        ([USUAL, LATER], [(0, 1)], ["1"] * 2, (0, 1)),
        ([USUAL, USUAL, A_LITTLE, USUAL], ALL, ONE_HOST, ()),
        ([USUAL, USUAL, ONCE, USUAL], ALL, ONE_HOST, ()),
        # Clocks of two hosts are not compared, nor ranks that share no group.
        ([USUAL, USUAL, LATER, LATER], ALL, ["1", "1", "2", "2"], ()),
        ([USUAL, USUAL, LATER, LATER], [(0, 1), (2, 3)], ONE_HOST, ()),
        ([USUAL, (), USUAL, USUAL], ALL, ONE_HOST, ()),
    ],
)
def test_who_was_in_steps_of_one_number_at_another_time_than_most_of_its_host_is_named(
    begun: list[tuple[int, ...]], groups: list[tuple[int, ...]], host_of: list[str], named: tuple[int, ...]
) -> None:
    found = at_other_times(calls(begun), job(groups, host_of))
    assert [dict(one.values)["ranks"] for one in found] == ([named] if named else [])
