"""What one host may cost at most: what its devices idle longer than others', of its role or of all."""

from __future__ import annotations

import numpy as np
import pytest

from cluster_analysis.judge.cost.one_host import idle_hosts
from cluster_analysis.judge.view import JobView, build_view
from cluster_run.ids import Rank
from tests.analysis.copies import replace
from tests.analysis.totals import STEP_US, evidence_of_computing, on_hosts, peers_agree

LATE_US = 0.1 * STEP_US
#: Two hosts of four.
WHERE = on_hosts(8, 4)
OF_SECOND = tuple(Rank(rank) for rank in range(4, 8))


def view_of(*, is_stage: bool, idle_us: dict[int, float]) -> JobView:
    where = replace(WHERE, stages={rank: int(rank) // 4 for rank in WHERE.ranks}) if is_stage else WHERE
    view = build_view(evidence_of_computing(peers_agree(8, 5), where), where)
    free_us = np.full(view.free_us.shape, 0.02 * STEP_US)
    for rank, more_us in idle_us.items():
        free_us[rank] += more_us
    return replace(view, free_us=free_us, preparing_us=np.zeros_like(free_us))


@pytest.mark.parametrize("is_stage", [False, True], ids=["beside its role", "a whole stage"])
def test_a_host_may_cost_what_its_latest_rank_idles_longer_than_other_hosts(*, is_stage: bool) -> None:
    view = view_of(is_stage=is_stage, idle_us={4: LATE_US, 5: LATE_US / 2})
    (late,) = idle_hosts(view).late(LATE_US / 4, n_most=4)
    assert late.ranks == OF_SECOND
    assert late.most_us(None) == pytest.approx(LATE_US)
    assert late.separable != is_stage


def test_no_host_may_cost_more_than_chance_where_all_idle_alike() -> None:
    idle = dict.fromkeys(range(8), LATE_US)
    assert idle_hosts(view_of(is_stage=True, idle_us=idle)).late(LATE_US / 100, n_most=4) == []


def test_a_host_is_known_by_its_ranks_and_some_of_them_are_none() -> None:
    hosts = idle_hosts(view_of(is_stage=False, idle_us={4: LATE_US}))
    found = hosts.of(OF_SECOND)
    assert found is not None
    assert found.ranks == OF_SECOND
    assert hosts.of(OF_SECOND[:2]) is None
    assert hosts.of(()) is None
