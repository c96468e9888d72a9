"""Who sent what is voted over steps: all of them run one program."""

from __future__ import annotations

import numpy as np

from cluster_analysis.replay.voted import with_voted_messages
from cluster_analysis.trace.evidence import StepOperators
from tests.analysis.copies import replace

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
        ranks=np.array([0, 1]), step_us=np.full(2, 100.0), instance_rank=np.array([0, 0, 1, 1]),
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
