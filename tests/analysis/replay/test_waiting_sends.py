"""Which sends wait for their receivers: what their times say, and what cannot have been."""

from __future__ import annotations

import numpy as np
import pytest

from cluster_analysis.replay.graph import build_graph
from cluster_analysis.replay.message_times import Messages, message_times
from cluster_analysis.replay.replay import Repair
from cluster_analysis.trace.evidence import StepOperators

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
    _, _, waits = message_times(messages, messages.rank, elapse, elapse.copy())
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
    transfer, own, _ = message_times(messages, messages.rank, elapse, shorter)
    assert transfer.tolist() == [100.0, 8000.0, 100.0, 8000.0]
    assert own[3] <= 100.0
