"""Who sent what is told from times: whatever the schedule, the clocks, and the records that are lost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from cluster_analysis.tables.model import Topology
from cluster_analysis.tables.operations import OPERATIONS, record_of
from cluster_analysis.tables.schema import LINKS
from cluster_analysis.trace.alignment import clock_offsets
from cluster_analysis.trace.calls import Calls, calls_of
from cluster_analysis.trace.matching import match_calls
from cluster_analysis.trace.pairing.ends import Ends
from cluster_analysis.trace.pairing.hints import Stated
from cluster_run.ids import Rank
from tests.analysis.copies import replace
from tests.analysis.jobs import Call, collectives_table, small_topology
from tests.analysis.trace.paired import paired_ends
from tests.analysis.trace.pipelines import (
    Played,
    Program,
    bidirectional,
    interleaved,
    one_f_one_b,
    play,
    rings,
    zero_bubble,
)
from tests.layers import modules

Pairs = set[frozenset[tuple[int, int]]]
PROGRAMS: dict[str, Program] = {
    "1F1B": one_f_one_b(4, 8),
    "1F1B, single and merged calls": one_f_one_b(4, 8, merged=True),
    "1F1B of 8 stages": one_f_one_b(8, 16),
    "zero bubble": zero_bubble(4, 8),
    "zero bubble, single and merged calls": zero_bubble(4, 8, merged=True),
    "interleaved": interleaved(4, 8, 2),
    "bidirectional": bidirectional(4, 6),
}
#: Two pipelines through one set of stages in which nobody waits: no time tells who sent what.
WITHOUT_WAITING = "bidirectional"


def found_pairs(
    calls_made: Sequence[Call], where: Topology, *, skew_ms: float = 0.0, links: pa.Table | None = None
) -> Pairs:
    rng = np.random.default_rng(7)
    skew = {rank: float(rng.normal(0.0, 1e3 * skew_ms)) for rank in where.ranks}
    table = collectives_table(calls_made, clock_offset_us=skew)
    calls = calls_of(table)
    operator, _ = match_calls(calls)
    peers = None if links is None else Stated(table["op_name"], links)
    ends = paired_ends(calls, clock_offsets(calls, operator), where, peers)
    name = [
        (int(calls.ranks[rank]), int(number)) for rank, number in zip(calls.rank, calls.number, strict=True)
    ]
    return {
        frozenset((name[call], name[other]))
        for side in (ends.sender, ends.receiver)
        for call, other in enumerate(side.tolist())
        if other >= 0
    }


def without_some(played: Played, share: float) -> list[Call]:
    rng = np.random.default_rng(11)
    return [one for one in played.calls if one.op_type == "allreduce" or rng.random() >= share]


@pytest.mark.parametrize("eager", [False, True], ids=["sends wait", "eager sends"])
@pytest.mark.parametrize("name", list(PROGRAMS))
def test_every_message_of_any_schedule_is_found(name: str, eager: bool) -> None:
    played = play(PROGRAMS[name], eager=eager)
    found = found_pairs(played.calls, played.topology, skew_ms=5.0)
    assert not found - played.pairs(played.calls)
    if not (eager and name == WITHOUT_WAITING):
        assert found == played.pairs(played.calls)


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_lost_records_lose_hardly_more_than_their_own_messages(name: str) -> None:
    played = play(PROGRAMS[name], n_replicas=4)
    kept = without_some(played, 0.02)
    found, wanted = found_pairs(kept, played.topology, skew_ms=5.0), played.pairs(kept)
    assert len(found - wanted) <= 0.01 * len(wanted)
    assert len(found & wanted) >= 0.98 * len(wanted)


def test_numbers_without_holes_hide_few_messages() -> None:
    played = play(PROGRAMS["1F1B, single and merged calls"], n_replicas=4)
    kept = without_some(played, 0.02)
    count: dict[tuple[int, str], int] = {}
    again = []
    for one in sorted(kept, key=lambda call: (call.rank, call.number)):
        at = count.setdefault((one.rank, one.group), 0)
        count[one.rank, one.group] += 1
        again.append((one, replace(one, number=at)))
    old = {(new.rank, new.group, new.number): was.number for was, new in again}
    found = {
        frozenset((rank, old[rank, f"p{rank % 4}", number]) for rank, number in pair)
        for pair in found_pairs([new for _, new in again], played.topology)
    }
    wanted = played.pairs(kept)
    assert len(found - wanted) <= 0.15 * len(wanted)
    assert len(found & wanted) >= 0.85 * len(wanted)


def test_stages_that_no_collective_connects_may_have_any_clocks() -> None:
    played = play(PROGRAMS["1F1B"])
    calls = [one for one in played.calls if one.op_type != "allreduce"]
    assert found_pairs(calls, played.topology, skew_ms=50_000.0) == played.pairs(calls)


@pytest.mark.parametrize(
    ("name", "eager"),
    [("1F1B, single and merged calls", False), ("zero bubble, single and merged calls", True)],
)
def test_calls_that_all_exchange_are_paired_whatever_they_do(name: str, eager: bool) -> None:
    played = play(PROGRAMS[name], as_batches=True, eager=eager)
    assert found_pairs(played.calls, played.topology) == played.pairs(played.calls)


def test_a_call_of_two_stages_may_send_to_one_call_and_receive_from_another() -> None:
    played = play(interleaved(2, 4, 2, merged=True), as_batches=True, eager=True)
    assert found_pairs(played.calls, played.topology) == played.pairs(played.calls)


def test_whom_files_name_is_believed_where_nobody_waits() -> None:
    played = play(PROGRAMS[WITHOUT_WAITING], eager=True)
    ends = {frozenset(pair) for pair in played.pairs(played.calls)}
    name = {
        (one.rank, one.number): f"hcom_{one.op_type}__1_{one.number}_1"
        for one in played.calls
        if one.op_type != "allreduce"
    }
    rows = [
        {
            "rank": one[0], "step": 1, "group": "p", "is_p2p": True, "op_type": "send", "variant": "op",
            "op_name": name[one], "src_rank": one[0], "dst_rank": other[0], "transport": "HCCS",
            "size_bytes": 1e6, "time_us": 1.0,
        }
        for pair in ends
        for one, other in (tuple(pair), tuple(pair)[::-1])
    ]  # fmt: skip
    links = pa.Table.from_pylist(rows, schema=LINKS)
    found = found_pairs(played.calls, played.topology, links=links)
    assert found == ends


@pytest.mark.parametrize("eager", [False, True], ids=["sends wait", "eager sends"])
@pytest.mark.parametrize(("length", "apart"), [(4, 1), (4, 4), (8, 1), (16, 1)])
def test_rings_of_any_length_are_paired_also_where_one_group_holds_several(
    length: int, apart: int, eager: bool
) -> None:
    program = rings(16, 8, length=length, apart=apart)
    played = play(program, n_replicas=1, as_batches=True, eager=eager, scatter=0.3, pace={5: 1.3})
    assert found_pairs(played.calls, played.topology, skew_ms=5.0) == played.pairs(played.calls)


# How the messages of a known schedule lie on calls that may send and receive at once.


# Calls whose partner has no files are taken to have met their mate's partner.
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


# What a kind of operator does is told from its name, in one place.
@pytest.mark.parametrize(
    ("op_type", "moves", "is_message"),
    [
        ("allreduce", "gradients", False),
        ("reducescatter", "gradients", False),
        ("allgather", "weights", False),
        ("allgatherv", "weights", False),
        ("alltoallv", "tokens", False),
        ("alltoallvc", "tokens", False),
        ("unknown", None, False),
        ("batchsendrecv", None, True),
        ("send", None, True),
        ("broadcast", None, False),
    ],
)
def test_each_kind_of_operator_moves_one_sort_of_data(
    op_type: str, moves: str | None, is_message: bool
) -> None:
    assert (record_of(op_type).moves, record_of(op_type).is_message) == (moves, is_message)


def test_one_module_names_the_operations() -> None:
    words = [f'"{one}"' for one in OPERATIONS if one.startswith(("all", "reducescatter", "batch"))]
    naming = {
        name
        for name, path in modules().items()
        if name.startswith("cluster_analysis.") and any(one in path.read_text("utf-8") for one in words)
    }
    assert naming == {"cluster_analysis.tables.operations"}
