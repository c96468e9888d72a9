"""What a fault costs when the files of some rank are missing, cut or full of holes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from cluster_analysis.judge.detection import Detection, detect
from cluster_analysis.tables.rank_tables import RankTables
from cluster_run.ids import Rank
from cluster_simulate.api import Healthy, JobSpec, parse_scenario, simulate, tables, topology
from tests.analysis.copies import replace
from tests.analysis.jobs import evidence_of_tables, judged

SMALL = JobSpec(tp=2, pp=2, dp=4, ranks_per_host=4, steps=5)
SLOW = "slow_rank:1.3@4"


def without_operators(one: RankTables) -> RankTables:
    """The rank as if its communication files could not be read."""

    def emptied(table: pa.Table) -> pa.Table:
        return table.slice(0, 0)

    return replace(
        one, collectives=emptied(one.collectives), links=emptied(one.links), packets=emptied(one.packets)
    )


def judged_without_operators_of(rank: int) -> Detection:
    job = simulate(SMALL, [parse_scenario(SLOW)], seed=5)
    where = topology(job)
    ranks = {**tables(job)}
    ranks[Rank(rank)] = without_operators(ranks[Rank(rank)])
    return detect(evidence_of_tables(ranks.values(), where), where)


@pytest.mark.parametrize("cut", [5, 12], ids=["its mate", "the next stage"])
def test_a_cost_stands_when_the_operators_of_another_rank_are_missing(cut: int) -> None:
    whole = judged(SMALL, SLOW, seed=5)
    (finding,) = (one for one in judged_without_operators_of(cut).findings if one.is_alarm)
    assert finding.id == "slow_rank-4"
    assert finding.cost_ms_per_step == pytest.approx(whole.true_cost_ms, rel=0.02)


def test_no_cost_is_quoted_when_the_operators_of_the_slow_rank_itself_are_missing() -> None:
    (finding,) = (one for one in judged_without_operators_of(4).findings if one.is_alarm)
    assert finding.id == "slow_rank-4"
    assert finding.cost_ms_per_step is None


def test_ranks_without_any_files_do_not_hide_what_a_fault_costs() -> None:
    spec = replace(SMALL, tp=4, p2p="rendezvous", healthy=Healthy(missing_ranks=(6, 19)))
    result = judged(spec, SLOW)
    (finding,) = result.alarms
    assert finding.cost_ms_per_step == pytest.approx(result.true_cost_ms, rel=0.05)


@pytest.mark.parametrize("share", [0.01, 0.05])
def test_lost_records_do_not_hide_what_a_fault_costs(share: float) -> None:
    spec = replace(SMALL, steps=8, healthy=Healthy(missing_records=share))
    result = judged(spec, SLOW)
    (finding,) = result.alarms
    assert finding.cost_ms_per_step == pytest.approx(result.true_cost_ms, rel=0.1)


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_a_slow_link_of_a_group_that_lacks_a_member_is_not_taken_for_waiting(seed: int) -> None:
    spec = JobSpec(tp=4, pp=2, dp=4, cp=2, steps=5, microbatches=4, healthy=Healthy(missing_ranks=(7, 46)))
    case = judged(spec, "slow_nic:3@3", seed=seed)
    (alarm,) = case.alarms
    assert (alarm.kind, alarm.ranks) == ("slow_nic", (3,))
    assert alarm.cost_ms_per_step == pytest.approx(case.true_cost_ms, rel=0.2)


def test_a_cost_is_the_least_one_where_a_rank_of_a_pipeline_waits_for_one_without_files() -> None:
    spec = JobSpec(tp=1, pp=4, dp=2, steps=5, healthy=Healthy(stage_work=(1.0, 1.0, 1.0, 1.5)))
    alone = replace(spec, healthy=replace(spec.healthy, missing_ranks=(3,)))
    (whole,), (least,) = (
        [one for one in judged(one).detection.findings if one.kind == "stage_imbalance"]
        for one in (spec, alone)
    )
    assert (whole.confidence, least.confidence) == ("high", "low")
    assert [one.kind for one in least.facts][-1] == "cost_at_least"
    assert "cost_at_least" not in [one.kind for one in whole.facts]
