"""Calls whose partner has no files are taken to have met their mate's partner."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from cluster_analysis.tables.model import Topology
from cluster_analysis.trace.calls import Calls, calls_of
from cluster_analysis.trace.pairing.ends import Ends
from cluster_run.ids import Rank
from tests.analysis.copies import replace
from tests.analysis.jobs import Call, collectives_table, small_topology
from tests.analysis.trace.paired import paired_ends

#: Two pipelines of two stages side by side: ranks 0 and 1 are TP/CP peers, and so are 2 and 3.
PIPELINES: dict[str, tuple[int, ...]] = {"left": (0, 2), "right": (1, 3)}
GROUP_OF = {0: "left", 2: "left", 1: "right", 3: "right"}
ABSENT = 3


def job(n_replicas: int = 1) -> Topology:
    where = small_topology(PIPELINES, stages={0: 0, 1: 0, 2: 1, 3: 1})
    return replace(where, dp_index={Rank(rank): rank % n_replicas for rank in range(4)})


def of_ranks(kinds: dict[int, Sequence[str]]) -> list[Call]:
    """These kinds of calls of each rank, one a millisecond; of the absent rank none."""
    return [
        Call(rank, kind, 1000.0 * number, 100.0, group=GROUP_OF[rank], number=number)
        for rank, own in kinds.items()
        for number, kind in enumerate(own, 1)
        if rank != ABSENT
    ]


def paired(made: Sequence[Call], where: Topology) -> tuple[Calls, Ends]:
    calls = calls_of(collectives_table(made))
    ends = paired_ends(calls, np.zeros(len(calls.ranks)), where)
    return calls, ends


def partners(calls: Calls, ends: Ends, rank: int) -> list[tuple[int, int]]:
    """(rank, number) of the other end of each call of a rank."""
    other = np.maximum(ends.sender, ends.receiver)[calls.rank == rank]
    assert (other >= 0).all()
    return [(int(calls.ranks[calls.rank[one]]), int(calls.number[one])) for one in other]


FIRST = ("send", "receive", "send", "receive")
SECOND = ("receive", "send", "receive", "send")
BATCHES = ("batchsendrecv",) * 3


def test_sends_and_receives_to_an_absent_rank_get_their_mates_partners() -> None:
    calls, ends = paired(of_ranks({0: FIRST, 1: FIRST, 2: SECOND}), job())
    assert ends.n_unpaired == 0
    assert partners(calls, ends, 1) == partners(calls, ends, 0) == [(2, 1), (2, 2), (2, 3), (2, 4)]


def test_a_borrowed_partner_keeps_who_sends_and_who_receives() -> None:
    calls, ends = paired(of_ranks({0: FIRST, 1: FIRST, 2: SECOND}), job())
    own = calls.rank == 1
    assert (ends.receiver[own] >= 0).tolist() == [True, False, True, False]
    assert (ends.sender[own] >= 0).tolist() == [False, True, False, True]


def test_batches_with_an_absent_rank_get_their_mates_partners() -> None:
    calls, ends = paired(of_ranks({0: BATCHES, 1: BATCHES, 2: BATCHES}), job())
    assert ends.n_unpaired == 0
    assert partners(calls, ends, 1) == [(2, 1), (2, 2), (2, 3)]
    assert (ends.sender[calls.rank == 1] == ends.receiver[calls.rank == 1]).all()


def test_the_partner_itself_stays_with_whom_it_really_met() -> None:
    calls, ends = paired(of_ranks({0: FIRST, 1: FIRST, 2: SECOND}), job())
    assert partners(calls, ends, 2) == [(0, 1), (0, 2), (0, 3), (0, 4)]


@pytest.mark.parametrize(
    ("kinds", "n_replicas"),
    [
        pytest.param({0: FIRST, 1: FIRST[:2], 2: SECOND}, 1, id="other calls"),
        pytest.param({0: FIRST, 1: FIRST, 2: SECOND}, 2, id="another replica"),
        pytest.param({1: FIRST}, 1, id="no mate with files"),
    ],
)
def test_whoever_is_no_mate_lends_nothing(kinds: dict[int, Sequence[str]], n_replicas: int) -> None:
    calls, ends = paired(of_ranks(kinds), job(n_replicas))
    assert ends.n_unpaired == int((calls.ranks[calls.rank] == 1).sum())
