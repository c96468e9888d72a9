"""Ranks that were not in steps together with others, and captures that are copies."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from cluster_analysis.tables.hccl_names import OWN_GROUP_PREFIX
from cluster_analysis.tables.model import Group, ParallelSizes, Topology
from cluster_analysis.tables.schema import COLLECTIVES, STEPS, rows_of, with_columns
from cluster_analysis.windows.other_times import departures, of_same_times
from cluster_run.facts import fact
from cluster_run.ids import HostId, Rank

MS = 1_000_000
ALL = [(0, 1, 2, 3)]
ONE_HOST, OWN_HOSTS = "1111", "1234"
#: Seeds of the jobs that ranks belong to: ranks of one leave together.
ONE_JOB = (1, 1, 1, 1)


def topology(groups: list[tuple[int, ...]], hosts: str) -> Topology:
    return Topology(
        ranks=tuple(map(Rank, range(len(hosts)))),
        hosts={Rank(rank): HostId(host) for rank, host in enumerate(hosts)},
        devices={},
        groups={
            str(at): Group(str(at), "dp", tuple(map(Rank, one)), "high") for at, one in enumerate(groups)
        },
        parallel=ParallelSizes(),
        stages={},
    )


def calls(
    job_of: tuple[int, ...],
    groups: list[tuple[int, ...]],
    *,
    later_ms: tuple[float, ...] = (0.0,) * 4,
    n: int = 20,
    kind: str = "allreduce",
    set_back: int | None = None,
) -> pa.Table:
    """Collectives about 10 ms apart: members come up to 4 ms too early, and leave together to 20 µs.

    Args:
        job_of: the job of each rank; none has no calls.
        groups: members of groups, which call one after the other.
        later_ms: clock of each rank.
        n: calls of each group.
        kind: of all operators.
        set_back: a rank whose clock jumps an hour ahead in the middle.
    """
    rows = []
    for rank, job in enumerate(job_of):
        shared, own = np.random.default_rng(job), np.random.default_rng(100 + rank)
        end_ms = 0.0
        for at in range(n * len(groups)):
            end_ms += 10 + shared.normal(0, 1)
            group = at % len(groups)
            if not job or rank not in groups[group]:
                continue
            elapse_ms = 1 + own.uniform(0, 4)
            left_ms = end_ms + own.normal(0, 0.02) + later_ms[rank]
            left_ms += 3.6e6 * (rank == set_back and 2 * at > n * len(groups))
            rows.append(
                {
                    "rank": rank,
                    "step": 0,
                    "group": str(group),
                    "op_type": kind,
                    "op_index": at,
                    "start_ns": 10**15 + round((left_ms - elapse_ms) * MS),
                    "elapse_us": 1e3 * elapse_ms,
                }
            )
    return pa.Table.from_pylist(rows, COLLECTIVES)


def who_left_apart(collectives: pa.Table, topology: Topology) -> tuple[Rank, ...]:
    return departures(collectives, topology).apart


@pytest.mark.parametrize("hosts", [ONE_HOST, OWN_HOSTS])
@pytest.mark.parametrize(
    ("job_of", "groups", "apart"),
    [
        (ONE_JOB, ALL, ()),
        ((1, 1, 2, 1), ALL, (2,)),
        ((2, 1, 1, 1), ALL, (0,)),
        # Its partner in another group is with the others elsewhere.
        ((1, 1, 2, 1), [*ALL, (2, 3)], (2,)),
        # Two of one other job, which agree with each other.
        ((1, 1, 2, 2), [(0, 2), (1, 3), (2, 3), (0, 1)], (0, 1, 2, 3)),
        # No majority says who is right.
        ((1, 2), [(0, 1)], (0, 1)),
        ((1, 1, 2, 2), [(0, 1), (2, 3)], ()),
        # A member that calls nothing is told elsewhere.
        ((1, 0, 1, 1), ALL, ()),
    ],
)
def test_ranks_that_leave_collectives_at_other_times_than_most_are_named(
    job_of: tuple[int, ...], groups: list[tuple[int, ...]], apart: tuple[int, ...], hosts: str
) -> None:
    assert who_left_apart(calls(job_of, groups), topology(groups, hosts[: len(job_of)])) == apart


def test_a_member_whose_calls_are_of_another_group_is_apart() -> None:
    groups = [(0, 1, 2), (3,)]
    declared = topology([(0, 1, 2, 3), (3,)], OWN_HOSTS)
    assert who_left_apart(calls(ONE_JOB, groups), declared) == (3,)


def test_a_member_whose_file_names_no_group_left_none_at_another_time() -> None:
    table = calls(ONE_JOB, ALL)
    groups = [f"{OWN_GROUP_PREFIX}3:" if rank == 3 else one for rank, one in rows_of(table, "rank", "group")]
    of_kernels = with_columns(table, group=pa.array(groups).dictionary_encode())
    for hosts in (ONE_HOST, OWN_HOSTS):
        assert who_left_apart(of_kernels, topology(ALL, hosts)) == ()


@pytest.mark.parametrize("n", [1, 20])
def test_clocks_differ_between_hosts_and_not_within_one(n: int) -> None:
    later = calls(ONE_JOB, ALL, later_ms=(0, 0, 50, 50), n=n)
    assert who_left_apart(later, topology(ALL, "1122")) == ()
    assert who_left_apart(later, topology(ALL, OWN_HOSTS)) == ()
    assert who_left_apart(calls(ONE_JOB, ALL, later_ms=(0, 0, 50, 0), n=n), topology(ALL, ONE_HOST)) == (2,)


def test_those_who_left_together_are_found_behind_many_who_did_not() -> None:
    job_of = (*range(2, 22), *(1,) * 44)
    together = [tuple(range(len(job_of)))]
    table = calls(job_of, together, later_ms=(0.0,) * len(job_of))
    assert who_left_apart(table, topology(together, "".join(map(chr, range(200, 264))))) == tuple(range(20))


def test_of_single_calls_nothing_is_known_between_hosts() -> None:
    assert who_left_apart(calls((1, 1, 2, 1), ALL, n=1), topology(ALL, OWN_HOSTS)) == ()


def test_a_clock_that_was_set_within_a_step_is_named() -> None:
    assert who_left_apart(calls(ONE_JOB, ALL, set_back=1), topology(ALL, OWN_HOSTS)) == (1,)


def test_members_leave_a_broadcast_when_they_like() -> None:
    assert who_left_apart(calls((1, 1, 2, 1), ALL, kind="broadcast"), topology(ALL, OWN_HOSTS)) == ()


def test_calls_without_start_times_tell_nothing() -> None:
    table = calls((1, 1, 2, 1), ALL)
    at = table.schema.get_field_index("start_ns")
    table = table.set_column(at, table.schema.field(at), pa.nulls(table.num_rows, pa.int64()))
    assert who_left_apart(table, topology(ALL, OWN_HOSTS)) == ()


@pytest.mark.parametrize(
    ("computing_us", "copies"),
    [
        ((10.5, 11.25, 10.5), ((0, 2),)),
        ((10.5, 11.25, 11.0), ()),
        ((0.0, 0.0, 11.0), ()),
        # One rank is slow in a capture that a program wrote.
        ((10.5, 10.5, 10.5, 12.5), ()),
    ],
)
def test_captures_with_the_same_times_are_copies(
    computing_us: tuple[float, ...], copies: tuple[tuple[int, ...], ...]
) -> None:
    steps = [{"rank": rank, "step": 3, "computing_us": one} for rank, one in enumerate(computing_us)]
    found = of_same_times(pa.Table.from_pylist(steps, STEPS))
    assert found == tuple(fact("same_times", ranks=ranks) for ranks in copies)
