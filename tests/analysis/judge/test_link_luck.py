"""How often a healthy link is slow for a moment decides how much three slow observations say."""

from __future__ import annotations

import numpy as np
import pytest

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.detectors import slow_network
from cluster_analysis.judge.measures.slow_units import Observations, judged
from cluster_analysis.judge.view import build_view
from cluster_analysis.numeric.tails import binomial_tail
from cluster_analysis.thresholds.limits import Thresholds
from tests.analysis.totals import evidence_of_computing, on_hosts, peers_agree

N_LINKS = 40
SLOW = 17
RATIO = 1.5


def seen(n_slow: int, n_healthy: int = 30, *, busy_share: float = 0.0, ratio: float = RATIO) -> Observations:
    """Links 0→100, 1→101 … of which one is always slow, and the others in a share of their observations."""
    rng = np.random.default_rng(3)
    count = np.full(N_LINKS, n_healthy)
    count[SLOW] = n_slow
    link = np.repeat(np.arange(N_LINKS), count)
    n = len(link)
    is_slow = (link == SLOW) | (rng.random(n) < busy_share)
    zeros, size_bytes = np.zeros(n, np.int32), np.full(n, 1e7)
    excess = np.where(is_slow, np.log(ratio), 0.0) + rng.normal(0.0, 0.003, n)
    return Observations(
        link, zeros, zeros, zeros, size_bytes, np.ones(n), excess, ("allreduce",), ("g",),
        tuple((src, src + 100) for src in range(N_LINKS)), np.zeros(N_LINKS, bool), ("RDMA",) * N_LINKS,
    )  # fmt: skip


def test_a_links_chance_is_that_of_being_slow_so_often_at_the_healthy_links_rate() -> None:
    table = judged(seen(4, busy_share=0.2), Thresholds())
    assert np.flatnonzero(table.slow).tolist() == [SLOW]
    assert table.chance[SLOW] == pytest.approx(binomial_tail(4, 4, 0.2), rel=0.3)


def test_of_healthy_links_that_are_never_slow_half_an_observation_is() -> None:
    half = 0.5 / ((N_LINKS - 1) * 30 + 1)
    assert judged(seen(4), Thresholds()).chance[SLOW] == pytest.approx(half**4)


def test_links_that_are_not_slow_have_nothing_to_explain_by_chance() -> None:
    table = judged(seen(4, busy_share=0.2), Thresholds())
    assert set(table.chance[~table.slow]) == {1.0}


@pytest.mark.parametrize(
    ("busy_share", "n_seen", "is_sure"), [(0.05, 3, False), (0.05, 8, True), (0.0, 1, False), (0.0, 3, True)]
)
def test_a_link_seen_slow_a_few_times_among_many_links_may_be_chance(
    busy_share: float, n_seen: int, is_sure: bool
) -> None:
    where = on_hosts(8, 4)
    evidence = evidence_of_computing(peers_agree(8, 3), where)
    limits = Thresholds()
    links = seen(n_seen, busy_share=busy_share)
    found = slow_network.detect(Case(evidence, build_view(evidence, where), links, limits), ())
    assert [one.p_value <= limits.alarm_p_value for one in found] == [is_sure]


def test_links_that_chance_makes_slow_in_a_job_of_so_many_are_no_alarm() -> None:
    where = on_hosts(8, 4)
    evidence, limits = evidence_of_computing(peers_agree(8, 3), where), Thresholds()
    case = Case(evidence, build_view(evidence, where), seen(2, 2, busy_share=0.3), limits)
    found = list(slow_network.detect(case, ()))
    assert found
    assert min(one.p_value for one in found) > limits.costly_p_value
