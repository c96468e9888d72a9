"""Operators that were sent again: found among few of their kind, without links, and at the end of a step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from cluster_analysis.judge.detection import detect
from cluster_analysis.replay.graph import job_graph
from cluster_analysis.tables.schema import LINKS
from cluster_run.findings import Finding
from cluster_run.ids import HostId, Rank
from cluster_simulate.api import Healthy, JobSpec
from tests.analysis.copies import replace
from tests.analysis.jobs import (
    NO_LINKS,
    SMALL,
    Call,
    collectives_table,
    evidence_of,
    judged,
    small_topology,
    steps_table,
)
from tests.analysis.said import next_check, summary

LOST_US = 4e6
STEP_US = 50_000.0
USUAL_US = 3_000.0


def sent_again(
    n_steps: int,
    lost_in: int,
    *,
    host_of: Callable[[int], int] = lambda rank: 1 + rank % 2,
    usual_us: float = USUAL_US,
    lost_us: float = LOST_US,
    stopped: tuple[str, ...] = ("left",),
) -> list[Finding]:
    """Eight ranks in two groups; one group's operator, the last of its step, lasts longer by so much once.

    The ranks of the other group meet those of the first in the next step, and lose the time there. Or those
    of both groups that `stopped` do.
    """
    groups = {"world": tuple(range(8)), "left": (0, 1, 2, 3), "right": (4, 5, 6, 7)}
    where = small_topology(groups, roles={"world": "world", "left": "dp", "right": "dp"})
    where = replace(where, hosts={Rank(rank): HostId(str(host_of(rank))) for rank in range(8)})
    calls, steps = list[Call](), list[pa.Table]()
    clock = np.zeros(8)
    for step in range(n_steps):
        begin = clock.copy()
        meet = float(clock.max()) + STEP_US
        calls += [Call(rank, "allReduce", clock[rank] + STEP_US - 100.0, meet - clock[rank] - STEP_US + 200.0,
                       "world", step, step=step) for rank in range(8)]  # fmt: skip
        clock[:] = meet + 100.0
        for rank in range(8):
            group = "left" if rank < 4 else "right"
            lasts = usual_us + (lost_us if step == lost_in and group in stopped else 0.0)
            calls.append(Call(rank, "allGather", clock[rank], lasts, group, step, step=step))
            clock[rank] += lasts
        steps.append(steps_table(dict(enumerate((clock - begin).tolist())), step=step))
    found = detect(evidence_of(where, pa.concat_tables(steps), collectives_table(calls)), where)
    return [one for one in found.findings if one.kind == "retransmission"]


@pytest.mark.parametrize("lost_in", [0, 1])
def test_of_four_operators_the_one_that_took_seconds_was_sent_again(lost_in: int) -> None:
    (finding,) = sent_again(2, lost_in)
    assert finding.severity == "critical"
    assert finding.ranks == (0, 1, 2, 3)


def test_without_link_entries_what_was_sent_again_is_named_by_its_group() -> None:
    (finding,) = sent_again(5, 2)
    assert finding.links == ()
    assert "among ranks 0-3" in summary(finding)


@pytest.mark.parametrize("usual_us", [20_000.0, 75_000.0])
def test_an_operator_that_took_a_quarter_of_a_second_more_stood_still_though_it_is_no_short_one(
    usual_us: float,
) -> None:
    assert [one.ranks for one in sent_again(5, 2, usual_us=usual_us, lost_us=250_000.0)] == [(0, 1, 2, 3)]


def test_what_is_sent_again_counts_by_its_share_of_the_step() -> None:
    (lost,) = sent_again(5, 2, lost_us=30_000.0)
    assert lost.severity == "critical"
    assert lost.cost_ms_per_step == pytest.approx(30.0 / 5, rel=0.01)
    assert sent_again(5, 2, usual_us=200.0, lost_us=240.0) == []


def test_a_quarter_of_a_second_more_is_contention_where_an_operator_lasts_as_long_anyway() -> None:
    assert sent_again(5, 2, usual_us=300_000.0, lost_us=250_000.0) == []


def test_inside_one_host_no_packets_are_lost_and_it_is_told_all_the_same() -> None:
    (finding,) = sent_again(5, 2, host_of=lambda rank: 1)
    assert finding.severity == "critical"
    assert "inside the host" in summary(finding)
    assert "packets" not in summary(finding) + next_check(finding)


@pytest.mark.parametrize("hosts_share", [True, False])
def test_groups_that_stood_still_in_one_step_are_one_event_mended_together(hosts_share: bool) -> None:
    stopped = ("left", "right")
    if hosts_share:
        (finding,) = sent_again(5, 2, stopped=stopped)
    else:
        (finding,) = sent_again(5, 2, stopped=stopped, host_of=lambda rank: 1 + rank // 4)
    assert finding.ranks == tuple(range(8))
    assert finding.cost_ms_per_step == pytest.approx(LOST_US / 5 / 1e3, rel=0.01)


@pytest.mark.parametrize(("in_steps", "is_event"), [((0, 1, 2, 3, 4), False), ((2,), True)])
def test_what_takes_long_at_one_place_of_every_step_is_how_the_job_runs(
    in_steps: tuple[int, ...], *, is_event: bool
) -> None:
    """The first gradients may always meet other transfers: nothing is sent again at one time of each step."""
    case = judged(replace(SMALL, pp=1, dp=8, dp_mode="overlap", dp_buckets=3))
    graph = job_graph(case.evidence)
    assert graph is not None
    is_first = (graph.operator_type == graph.types.index("reducescatter")) & (graph.operator_place == 0)
    is_long = is_first & (graph.operator_group == graph.operator_group[is_first][0])
    is_long &= np.isin(graph.operator_step, in_steps)
    slow = replace(graph, transfer_us=np.where(is_long, 5.0, 1.0) * graph.transfer_us)
    found = detect(replace(case.evidence, graph=slow), case.topology)
    assert {one.is_alarm for one in found.findings if one.kind == "retransmission"} == {is_event}


@pytest.mark.slow
def test_waits_in_many_groups_at_once_are_no_lost_packets() -> None:
    healthy = Healthy(gc_every=4, clock_sigma_ms=50.0, missing_ranks=(11, 27), uneven_counts=3)
    spec = JobSpec(tp=4, pp=4, dp=4, steps=8, p2p="rendezvous", healthy=healthy)
    assert judged(spec, "slow_uplink:2", seed=9050).of_kind("retransmission") == ()


def exchanged(
    batch: list[tuple[int, int, int]],
    *,
    lost: int,
    late: int | None = None,
    links_us: float | None = None,
    unread: int | None = None,
    kinds: tuple[str, str] = ("batchsendrecv", "batchsendrecv"),
) -> list[Finding]:
    """Four stages that exchange in turn, (number, one end, other end), work between each, and meet.

    One exchange is sent again; or one stage comes four seconds late to it. With `links_us` there are link
    entries, and that of the exchange lasts so long. The files of the stage `unread` are missing. `kinds` are
    those of the one end's and of the other's call.
    """
    where = small_topology(
        {"p": tuple(range(4)), "w": tuple(range(4))},
        roles={"p": "pp", "w": "world"},
        stages={rank: rank for rank in range(4)},
    )
    calls, steps, entries = list[Call](), list[pa.Table](), list[dict[str, object]]()
    clock = np.zeros(4)
    for step in range(5):
        begin = clock.copy()
        for number, one, other in batch:
            clock[[one, other]] += 1000.0
            if step == 2 and number == lost and late is not None:
                clock[late] += LOST_US
            ended = max(clock[one], clock[other]) + USUAL_US
            if step == 2 and number == lost and late is None:
                ended += LOST_US
            is_hit = step == 2 and number == lost
            for rank, kind in zip((one, other), kinds, strict=True):
                peer = one + other - rank
                entries.append({
                    "rank": rank, "step": step, "group": "p", "is_p2p": True, "op_type": "batchsendrecv",
                    "variant": "op", "op_name": f"{number}", "src_local": rank, "dst_local": peer,
                    "src_rank": rank, "dst_rank": peer, "transport": "RDMA", "size_bytes": 1e7,
                    "time_us": links_us if is_hit else USUAL_US,
                })  # fmt: skip
                calls.append(Call(rank, kind, clock[rank], ended - clock[rank], "p", number, step=step))
                clock[rank] = ended
        meet = float(clock.max()) + 100.0
        calls += [
            Call(rank, "allreduce", clock[rank], meet - clock[rank], "w", step, step=step)
            for rank in range(4)
        ]
        clock[:] = meet
        steps.append(steps_table(dict(enumerate((clock - begin).tolist())), step=step))
    links = NO_LINKS if links_us is None else pa.Table.from_pylist(entries, schema=LINKS)
    read = [call for call in calls if call.rank != unread]
    found = detect(evidence_of(where, pa.concat_tables(steps), collectives_table(read), links), where)
    return [one for one in found.findings if one.kind == "retransmission"]


#: Forwards through four stages and back: (number, one end, other end).
TURNS = [(1, 0, 1), (2, 1, 2), (3, 2, 3), (4, 2, 3), (5, 1, 2), (6, 0, 1)]


@pytest.mark.parametrize("lost", [1, 3, 5])
def test_an_exchange_that_took_seconds_was_sent_again(lost: int) -> None:
    (finding,) = exchanged(TURNS, lost=lost)
    _, one, other = TURNS[lost - 1]
    assert finding.ranks == (one, other)
    assert finding.cost_ms_per_step == pytest.approx(LOST_US / 5 / 1e3, rel=0.01)


@pytest.mark.parametrize(("links_us", "n_found"), [(LOST_US + USUAL_US, 1), (USUAL_US, 0)])
def test_an_exchange_was_sent_again_only_if_its_link_took_as_long(links_us: float, n_found: int) -> None:
    assert len(exchanged(TURNS, lost=3, links_us=links_us)) == n_found


@pytest.mark.parametrize("late", [1, 2])
def test_exchanges_with_a_stage_that_came_seconds_late_were_not_sent_again(late: int) -> None:
    assert exchanged(TURNS, lost=2, late=late) == []


def test_a_message_whose_sender_is_not_known_may_have_been_waited_for() -> None:
    assert exchanged(TURNS, lost=1, late=0, unread=0, kinds=("send", "receive")) == []


def test_a_group_whose_operators_all_last_long_has_slow_links_and_no_event() -> None:
    spec = JobSpec(tp=1, pp=1, dp=16, steps=5, microbatches=2)
    assert judged(spec, "slow_nic:40@3").of_kind("retransmission") == ()


@pytest.mark.slow
def test_of_a_job_that_lost_records_the_link_is_named_and_not_who_waited_for_it() -> None:
    spec = JobSpec(tp=4, pp=2, dp=4, steps=5, microbatches=4, healthy=Healthy(missing_records=0.01))
    case = judged(spec, "retransmission:4000")
    (true,) = case.job.faults
    (alarm,) = case.alarms
    assert alarm.kind == "retransmission"
    assert [(int(one.src), int(one.dst)) for one in alarm.links] == list(true.links)
