"""Who sent what is told from times: whatever the schedule, the clocks, and the records that are lost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from cluster_analysis.tables.model import Topology
from cluster_analysis.tables.schema import LINKS
from cluster_analysis.trace.alignment import clock_offsets
from cluster_analysis.trace.calls import calls_of
from cluster_analysis.trace.matching import match_calls
from cluster_analysis.trace.pairing.peers import Stated
from tests.analysis.copies import replace
from tests.analysis.jobs import Call, collectives_table
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


def test_a_slow_rank_changes_no_partner() -> None:
    played = play(PROGRAMS["zero bubble"], pace={2: 2.5})
    assert found_pairs(played.calls, played.topology) == played.pairs(played.calls)


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
