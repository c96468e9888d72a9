"""Gaps that hold waiting do not hide costs; a lost record leaves it known where a host is slow."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_analysis.judge.view import build_view
from cluster_analysis.numeric.arrays import BoolArray
from cluster_analysis.numeric.rhythm import rhythm_of
from cluster_analysis.replay.graph import build_graph
from cluster_analysis.replay.lanes import WAIT, lanes_of, span_of, waits_of, waits_table
from cluster_analysis.replay.message_times import Messages, message_times
from cluster_analysis.replay.replay import Repair
from cluster_analysis.replay.role_gaps import RoleGaps
from cluster_analysis.replay.voted import with_voted_messages
from cluster_analysis.trace.evidence import StepOperators
from cluster_simulate.api import Healthy, JobSpec, truth
from tests.analysis.copies import replace
from tests.analysis.jobs import SMALL, Judged, judged


@pytest.mark.slow
def test_late_start_is_dear_though_its_data_group_waits_for_it_on_another_stream() -> None:
    spec = replace(SMALL, microbatches=8, dp_mode="zero3")
    case = judged(spec, "slow_rank:1.1,cause=input", seed=4)
    assert [one.kind for one in case.alarms] == ["slow_rank"]
    cost = case.alarms[0].cost_ms_per_step
    assert cost == pytest.approx(case.true_cost_ms, rel=0.2)


@pytest.mark.slow
def test_late_rank_is_dear_where_computing_begins_with_weights_that_others_gather() -> None:
    spec = JobSpec(tp=2, pp=2, dp=4, ranks_per_host=4, steps=5, dp_mode="zero3")
    case = judged(spec, "slow_rank:1.1@5,cause=input", seed=11)
    (alarm,) = case.alarms
    assert (alarm.kind, alarm.ranks, alarm.cause) == ("slow_rank", (5,), "input")
    assert alarm.cost_ms_per_step == pytest.approx(case.true_cost_ms, rel=0.1)


@pytest.mark.slow
def test_late_host_is_dear_where_its_first_operator_gathers_weights_on_another_stream() -> None:
    spec = replace(SMALL, microbatches=4, cp=2, dp_mode="zero3")
    case = judged(spec, "slow_host:1.05@2,cause=input", seed=11)
    (alarm,) = case.alarms
    assert (alarm.kind, alarm.hosts) == ("slow_host", ("2",))
    assert alarm.cost_ms_per_step == pytest.approx(case.true_cost_ms, rel=0.1)


@pytest.mark.slow
def test_idle_host_has_a_cost_though_communication_on_another_stream_hides_half_of_it() -> None:
    case = judged(replace(SMALL, microbatches=4, dp=8, dp_mode="zero3"), "slow_host:1.15@2", seed=11)
    (alarm,) = case.alarms
    assert (alarm.kind, alarm.hosts) == ("slow_host", ("2",))
    assert alarm.cost_ms_per_step is not None
    assert 0.4 * case.true_cost_ms < alarm.cost_ms_per_step < 1.1 * case.true_cost_ms


@pytest.mark.parametrize(
    ("healthy", "seed", "off"),
    [
        pytest.param(Healthy(inner_halves=True), 4, 0.2, id="no two calls show it"),
        pytest.param(Healthy(sequence_sigma=0.2), 2, 0.25, id="all other replicas wait"),
    ],
)
def test_pause_is_dear_though_no_call_shows_that_parameters_move_on_another_stream(
    healthy: Healthy, seed: int, off: float
) -> None:
    spec = replace(SMALL, tp=8, pp=1, dp=4, microbatches=8, dp_mode="zero3", healthy=healthy)
    case = judged(spec, "periodic_pause:200,every=2", seed=seed)
    assert [one.kind for one in case.alarms] == ["periodic_pause"]
    assert case.alarms[0].cost_ms_per_step == pytest.approx(case.true_cost_ms, rel=off)


def test_lost_record_of_another_rank_does_not_hide_what_a_slow_rank_costs() -> None:
    spec = replace(SMALL, microbatches=8, dp_mode="overlap", healthy=Healthy(missing_records=0.01))
    case = judged(spec, "slow_rank:1.4,pattern=intermittent,duty=0.4", seed=3)
    (finding,) = case.of_kind("slow_rank")
    assert finding.cost_ms_per_step == pytest.approx(case.true_cost_ms, rel=0.1)


class BesidePeers:
    """Gaps of a slow host's ranks beside those of ranks that do the same work on other hosts."""

    def __init__(self) -> None:
        case = judged(SMALL, "slow_host:1.2,cause=compute", seed=3)
        view = build_view(case.evidence, case.topology)
        assert view.graph is not None
        (slow_host,) = case.of_kind("slow_host")
        self.graph, self.ranks = view.graph, view.ranks
        self.own = np.flatnonzero(view.host == view.hosts.index(slow_host.hosts[0]))
        self.peers = np.flatnonzero(
            (view.role == view.role[self.own[0]]) & (view.host != view.host[self.own[0]])
        )
        self.lost_us = self.lost_where(self.graph.is_side)

    def lost_where(self, is_side: BoolArray) -> float:
        """What the host's gaps are longer than its peers', with these calls on a second stream."""
        main = RoleGaps(self.ranks, replace(self.graph, is_side=is_side))
        return sum(
            float(np.nansum(own - np.median(others, axis=1)[:, None]))
            for stream in (main, main.of_side)
            for _, own, others, _ in stream.beside_peers(self.own, self.peers)
        )


@pytest.fixture(scope="module")
def beside_peers() -> BesidePeers:
    return BesidePeers()


def test_one_step_without_all_calls_leaves_it_known_where_a_host_is_slow(beside_peers: BesidePeers) -> None:
    graph = beside_peers.graph
    is_side = graph.is_side.copy()
    lost = np.flatnonzero((graph.rank == beside_peers.own[0]) & ~is_side)[5]
    is_side[lost] = True  # the main stream lacks it, as if its record were lost
    assert beside_peers.lost_where(is_side) == pytest.approx(beside_peers.lost_us, rel=0.05)


@given(data=st.data())
@settings(max_examples=15)
def test_steps_that_show_a_call_on_another_stream_than_others_hide_no_loss(
    beside_peers: BesidePeers, data: st.DataObject
) -> None:
    graph = beside_peers.graph
    steps = data.draw(st.sets(st.integers(0, graph.n_steps - 1)))
    place = RoleGaps(beside_peers.ranks, graph).place[:-1]
    n_places = int(place.max()) + 1
    moved = data.draw(st.sets(st.integers(0, n_places - 1), min_size=1, max_size=n_places - 1))
    is_side = graph.is_side | (np.isin(graph.step, list(steps)) & np.isin(place, list(moved)))
    assert beside_peers.lost_where(is_side) == pytest.approx(beside_peers.lost_us, rel=1e-6)


def test_two_pauses_at_both_ends_of_the_profile_are_no_rhythm() -> None:
    assert rhythm_of(np.isin(np.arange(5), [1, 3])) == 2
    assert rhythm_of(np.isin(np.arange(12), [0, 6])) == 6
    assert rhythm_of(np.isin(np.arange(12), [0, 11])) == 0


@pytest.mark.slow
def test_message_sent_again_is_found_and_dear_though_sends_wait_for_their_receivers() -> None:
    spec = replace(SMALL, tp=2, pp=4, dp=2, microbatches=8, p2p="rendezvous")
    case = judged(spec, "retransmission:4000", seed=2)
    (finding,) = case.alarms
    assert finding.kind == "retransmission"
    assert {finding.links[0].src, finding.links[0].dst} == set(truth(case.job).faults[0].links[0])
    assert finding.cost_ms_per_step == pytest.approx(case.true_cost_ms, rel=0.05)


# Who waits for whom in a step of the replay.
@pytest.fixture(scope="module")
def slow() -> Judged:
    return judged(SMALL, "slow_rank:1.4@5")


def found(job: Judged, step: int = 1):
    graph = build_view(job.evidence, job.topology).graph
    assert graph is not None
    span = span_of(graph, step)
    return lanes_of(span, step), span


def test_each_moment_of_waiting_is_for_one_rank_or_the_network(slow: Judged) -> None:
    lanes, span = found(slow)
    waiting, whom, wait_us = waits_of(lanes, span)
    by_rank = np.bincount(waiting, wait_us, len(lanes.ranks))
    np.testing.assert_allclose(by_rank, (lanes.cells == WAIT).sum(axis=1) * lanes.cell_us)
    assert not (waiting == whom).any()


def test_most_waiting_is_for_the_slow_rank_whoever_stands_between(slow: Judged) -> None:
    lanes, span = found(slow)
    _, whom, wait_us = waits_of(lanes, span)
    by_cause = np.bincount(whom + 1, wait_us, len(lanes.ranks) + 1)
    assert int(np.argmax(by_cause)) == list(lanes.ranks).index(5) + 1
    assert (
        by_cause.max() > 3 * np.sort(by_cause[1:])[-2]
    )  # the network is first, and pipelines wait by design


def test_the_slow_rank_is_waited_for_longer_than_it_waits(slow: Judged) -> None:
    table = waits_table(*found(slow)).to_pandas()
    waits_us = table[table["rank"] == 5]["wait_us"].sum()
    assert table[table["for_rank"] == 5]["wait_us"].sum() > 3 * waits_us


def test_of_ranks_that_one_operator_releases_whoever_came_last_to_it_is_waited_for(slow: Judged) -> None:
    given = build_view(slow.evidence, slow.topology).graph
    assert given is not None
    gap_us = given.gap_us.copy()
    gap_us[given.cell_begin[1:] - 1] = 0.0  # nobody works between the last two calls of a step
    span = span_of(given.with_gaps(gap_us), 1)
    last, released = span.last_to_come, 0
    operator, after = (all_of[span.begin : span.end] for all_of in (given.operator, given.after - span.begin))
    for one in np.unique(operator):
        members = np.flatnonzero(operator == one)
        tied = members[span.arrive_us[members] == span.arrive_us[members].max()]
        before = after[tied]
        if len(tied) > 1 and before.min() >= 0 and len(np.unique(operator[before])) == 1:
            latest = tied[np.argmax(span.arrive_us[before])]
            assert set(last[members]) == {latest}
            released += latest != tied[0]
    assert released


# Who sent what is voted over steps: all of them run one program.
_RIGHT = (0, 1)
_CROSSED = (1, 0)
_NONE = (-1, -1)


def _step(received: tuple[int, int]) -> StepOperators:
    """Rank 0 sends twice (instances 0, 1), rank 1 receives twice (2, 3): which sends, -1 for unknown."""
    sender, receiver = np.full(4, -1), np.full(4, -1)
    for number, source in enumerate(received):
        if source >= 0:
            sender[2 + number], receiver[source] = source, 2 + number
    is_send = np.array([True, True, False, False])
    none, nothing = np.full(4, -1), np.zeros(4)
    elapse = np.array([5.0, 6.0, 50.0, 60.0])
    all_of_them, none_of_them, zeros = np.ones(4, bool), np.zeros(4, bool), np.zeros(4, int)
    return StepOperators(
        ranks=np.array([0, 1]), step_us=np.full(2, 100.0), left_late_us=np.zeros(2),
        instance_rank=np.array([0, 0, 1, 1]),
        instance_operator=np.arange(4), instance_by_operator=np.arange(4), instance_after=none,
        instance_join=none, instance_gap_us=nothing, instance_elapse_us=elapse, instance_sender=sender,
        instance_receiver=receiver, instance_is_send=is_send, instance_is_receive=~is_send,
        instance_is_p2p=all_of_them, instance_is_side=none_of_them, instance_waits_last=none_of_them,
        operator_group=zeros, operator_type=zeros, operator_place=np.arange(4), operator_bytes=nothing,
        operator_transfer_us=elapse, groups=("pp",), types=("send",),
    )  # fmt: skip


def test_a_step_that_could_not_pair_its_messages_takes_what_the_others_say() -> None:
    *_, last = with_voted_messages([_step(_RIGHT), _step(_RIGHT), _step(_NONE)])
    assert last.instance_sender[2:].tolist() == list(_RIGHT)
    assert last.operator_transfer_us.tolist() == [5.0, 6.0, 5.0, 6.0]


def test_one_step_that_pairs_otherwise_is_outvoted() -> None:
    for step in with_voted_messages([_step(_RIGHT), _step(_CROSSED), _step(_RIGHT)]):
        assert step.instance_sender[2:].tolist() == list(_RIGHT)
        assert step.instance_receiver[:2].tolist() == [2, 3]


def test_steps_that_do_not_agree_keep_what_they_have() -> None:
    given = [_step(_RIGHT), _step(_CROSSED), _step(_NONE)]
    for before, after in zip(given, with_voted_messages(given), strict=True):
        assert after.instance_sender.tolist() == before.instance_sender.tolist()


def test_a_step_with_other_calls_keeps_its_own_messages() -> None:
    odd = replace(_step(_CROSSED), instance_is_p2p=np.array([True, True, False, True]))
    *_, after = with_voted_messages([_step(_RIGHT), _step(_RIGHT), odd])
    assert after.instance_sender.tolist() == odd.instance_sender.tolist()


# Which sends wait for their receivers: what their times say, and what cannot have been.
NONE = -1


def crossing(first_sends_us: tuple[float, float]) -> StepOperators:
    """Two ranks that each send to the other's second call: for ever, if sends wait for their receivers."""
    rank = np.array([0, 0, 1, 1])
    number = np.arange(4)
    is_send = np.array([True, False, True, False])
    elapse = np.array([first_sends_us[0], 100.0, first_sends_us[1], 100.0])
    return StepOperators(
        ranks=np.array([0, 1]),
        step_us=np.array([1000.0, 1000.0]),
        left_late_us=np.zeros(2),
        instance_rank=rank,
        instance_operator=number,
        instance_by_operator=number,
        instance_after=np.array([NONE, 0, NONE, 2]),
        instance_join=np.full(4, NONE),
        instance_sender=np.array([NONE, 2, NONE, 0]),
        instance_receiver=np.array([3, NONE, 1, NONE]),
        instance_gap_us=np.full(4, 400.0),
        instance_elapse_us=elapse,
        instance_is_send=is_send,
        instance_is_receive=~is_send,
        instance_is_p2p=np.ones(4, bool),
        instance_is_side=np.zeros(4, bool),
        instance_waits_last=np.zeros(4, bool),
        operator_group=np.zeros(4, np.int64),
        operator_type=np.zeros(4, np.int64),
        operator_place=number,
        operator_bytes=np.full(4, 1e6),
        operator_transfer_us=elapse,
        groups=("pp",),
        types=("send",),
    )


def test_sends_that_would_wait_for_each_other_did_not_wait() -> None:
    # A long send whose receiver takes as long as others looks as if it waited.
    graph = build_graph([crossing((100.0, 200.0))])
    assert graph is not None
    assert not graph.order.has_circle
    assert not graph.waits_for_receiver.any()
    assert graph.replay([Repair()])[0] >= 900.0


@pytest.mark.parametrize(("sends_us", "they_wait"), [((100.0, 100.0), False), ((100.0, 200.0), True)])
def test_exchanges_wait_as_the_single_sends_beside_them_do(
    sends_us: tuple[float, float], they_wait: bool
) -> None:
    # Calls 0 and 1 are sent to 2 and 3; 4 and 5 exchange with each other.
    none = 6
    is_send = np.array([True, True, False, False, False, False])
    messages = Messages(
        np.arange(6), none, np.arange(6), np.array([0, 0, 1, 1, 0, 1]),
        np.array([none, none, 0, 1, 5, 4]), np.array([2, 3, none, none, 5, 4]),
        is_send, np.array([False, False, True, True, False, False]),
    )  # fmt: skip
    elapse = np.array([*sends_us, 100.0, 100.0, 100.0, 100.0])
    _, _, waits = message_times(messages, messages.rank, elapse, elapse.copy(), may_wait=True)
    assert waits[[4, 5]].all() == waits[[4, 5]].any() == they_wait


@pytest.mark.parametrize("as_batches", [False, True], ids=["single", "in batches"])
def test_a_message_of_a_slow_card_takes_as_long_as_its_send_where_the_receiver_comes_late(
    as_batches: bool,
) -> None:
    none = 4
    is_send = np.array([True, True, False, False]) & (not as_batches)
    is_receive = np.array([False, False, True, True]) & (not as_batches)
    messages = Messages(
        np.arange(4), none, np.arange(4), np.array([0, 1, 2, 3]),
        np.array([none, none, 0, 1]), np.array([2, 3, none, none]), is_send, is_receive,
    )  # fmt: skip
    elapse = np.array([100.0, 8000.0, 100.0, 2.0])
    shorter = np.array([100.0, 2.0, 100.0, 2.0])
    transfer, own, _ = message_times(messages, messages.rank, elapse, shorter, may_wait=True)
    assert transfer.tolist() == [100.0, 8000.0, 100.0, 8000.0]
    assert own[3] <= 100.0
