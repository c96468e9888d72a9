"""Who waits for whom in a step of the replay."""

from __future__ import annotations

import numpy as np
import pytest

from cluster_analysis.judge.view import build_view
from cluster_analysis.replay.lanes import WAIT, lanes_of, span_of
from cluster_analysis.replay.waits import waits_of, waits_table
from tests.analysis.jobs import SMALL, Judged, judged


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
