"""Two clocks have one shift, whichever way the messages go."""

from __future__ import annotations

import numpy as np

from cluster_analysis.trace.pairing.coincidences import Sample, explained, votes_of
from cluster_analysis.trace.pairing.slots import BATCH, RECEIVE, SEND, Family

_N = 12
_EVERY_US = 30_000.0
_LATE_US = 12_000.0


def test_the_shift_of_two_clocks_is_the_one_that_both_directions_show() -> None:
    sends = np.arange(_N) * _EVERY_US
    # Most messages from stage 0 are taken late, all by as much; those from stage 1 are waited for.
    taken = sends + np.where(np.arange(_N) < 3, 0.0, _LATE_US)
    answers = sends + 17_000.0 + np.random.default_rng(5).uniform(0.0, 5_000.0, _N)
    end = np.concatenate([sends, answers, taken, answers])[None]
    start = end - np.concatenate(
        [np.full(_N, 50.0), np.full(_N, 9_000.0), np.full(_N, 60.0), np.full(_N, 50.0)]
    )
    kind = np.repeat([SEND, RECEIVE, RECEIVE, SEND], _N)
    stage = np.repeat([0, 0, 1, 1], _N)
    family = Family(np.arange(4 * _N)[None], stage, kind, np.array([[0, 1]]))
    sample = Sample(family, start, end, np.array([False]))
    clocks = votes_of(sample, np.ones((4 * _N, 2), bool)).clocks
    for pair in ((0, 1), (1, 0)):
        ended = clocks[pair].ended
        assert ended is not None
        assert abs(ended[0][0]) < 100.0


def test_a_stage_whose_records_are_all_lost_says_nothing_of_its_messages() -> None:
    sends = np.arange(_N) * _EVERY_US
    end = np.concatenate([sends, np.full(_N, np.nan)])[None]
    family = Family(
        np.arange(2 * _N)[None], np.repeat([0, 1], _N), np.repeat([SEND, RECEIVE], _N), np.array([[0, 1]])
    )
    votes = votes_of(Sample(family, end - 50.0, end, np.array([False])), np.ones((2 * _N, 2), bool))
    assert len(votes.source) == 0


def test_of_two_shifts_the_one_that_collectives_show_is_believed() -> None:
    n, rng = 20, np.random.default_rng(5)
    sends = np.arange(n) * _EVERY_US
    # Nine end together; that eleven end 4 ms apart is an accident.
    near = sends + np.where(np.arange(n) < 9, rng.uniform(-20.0, 20.0, n), 4_000.0)
    end = np.concatenate([sends, near])[None]
    family = Family(np.arange(2 * n)[None], np.repeat([0, 1], n), np.full(2 * n, BATCH), np.array([[0, 1]]))
    clocks = votes_of(Sample(family, end - 9_000.0, end, np.array([True])), np.ones((2 * n, 2), bool)).clocks
    ended = clocks[0, 1].ended
    assert ended is not None
    assert abs(ended[0][0]) < 100.0


def test_what_a_batch_takes_to_send_is_no_waiting_that_a_hint_must_explain() -> None:
    begun = np.arange(_N) * _EVERY_US
    awaited = np.arange(_N) < 4  # the others find their message there, and end when they have sent
    taken = np.where(awaited, begun + 9_000.0, begun + 1_700.0)
    start = np.concatenate([np.where(awaited, begun + 7_300.0, begun - 20_000.0), begun])[None]
    end = np.concatenate([start[0, :_N] + 1_700.0, taken])[None]
    family = Family(
        np.arange(2 * _N)[None], np.repeat([0, 1], _N), np.full(2 * _N, BATCH), np.array([[0, 1]])
    )
    sample = Sample(family, start, end, np.array([True]))
    votes = votes_of(sample, np.ones((2 * _N, 2), bool))
    assert explained(sample, votes, (np.arange(_N), _N + np.arange(_N))) > 0.95
