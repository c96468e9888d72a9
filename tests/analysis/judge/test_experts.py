"""What ranks compute outside of experts tells a slow device or host from one that got busy experts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cluster_analysis.judge.computing import dense_us, exchanges_of
from cluster_analysis.judge.detectors.workload import _expert_imbalance
from cluster_analysis.judge.view import JobView, build_view
from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.replay.replay import Graph
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.ids import Rank
from cluster_simulate.api import Healthy, JobSpec
from tests.analysis.copies import replace
from tests.analysis.jobs import judged, small_topology
from tests.analysis.totals import judged_by_computing, peers_agree

#: Two stages of four hosts, busy experts everywhere.
BUSY = JobSpec(tp=4, pp=2, dp=8, ep=4, steps=5, microbatches=2, healthy=Healthy(expert_sigma=0.1))
SLOW = 21


def dense_of(view: JobView, graph: Graph | None = None) -> FloatArray | None:
    graph = graph or view.graph
    assert graph is not None
    experts = [name for name, group in view.topology.groups.items() if group.role == "ep"]
    return dense_us(
        graph, experts, view.ranks, view.role, computing_us=view.computing_us, free_us=view.free_us,
        preparing_us=view.preparing_us,
    )  # fmt: skip


def view_of(*scenarios: str, spec: JobSpec = BUSY) -> JobView:
    case = judged(spec, *scenarios)
    return build_view(case.evidence, case.topology)


@pytest.mark.slow
def test_a_slow_host_is_named_among_busy_experts() -> None:
    case = judged(BUSY, "slow_host:1.1,cause=compute", seed=11)
    assert [(one.kind, one.cause) for one in case.alarms] == [("slow_host", "compute")]
    assert case.alarms[0].cost_ms_per_step == pytest.approx(case.true_cost_ms, rel=0.25)


def test_gaps_that_exceed_what_a_rank_did_hold_waiting_and_say_nothing_on_its_computing() -> None:
    view = view_of()
    assert view.graph is not None
    waits = (view.graph.rank == SLOW) & (view.graph.step == 2)
    dense = dense_of(view)
    waiting = dense_of(view, replace(view.graph, gap_us=np.where(waits, 1.5, 1.0) * view.graph.gap_us))
    assert dense is not None
    assert waiting is not None
    lost = np.isnan(waiting) & np.isfinite(dense)
    assert np.argwhere(lost).tolist() == [[SLOW, 2]]


def test_busy_experts_alone_blame_nobody() -> None:
    assert judged(BUSY).alarms == ()


def test_a_slow_rank_does_not_make_its_host_slow_where_experts_hide_the_difference() -> None:
    case = judged(BUSY, f"slow_rank:1.5@{SLOW}")
    assert [(one.kind, one.ranks) for one in case.alarms] == [("slow_rank", (SLOW,))]


def test_outside_of_experts_ranks_compute_alike_whatever_their_experts_get() -> None:
    view = view_of()
    dense = dense_of(view)
    assert dense is not None

    def spread(computing_us: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
        level = np.log(np.nanmedian(computing_us, axis=1))
        return float(np.std(level[view.role == 0]))

    assert spread(dense) < 0.01
    assert spread(view.computing_us) > 3 * spread(dense)


def test_where_all_to_alls_do_not_come_in_pairs_nothing_is_said_of_that_step() -> None:
    view = view_of()
    assert view.graph is not None
    exchange = np.array(["alltoall" in name.lower() for name in view.graph.types])
    at = np.flatnonzero(exchange[view.graph.operator_type[view.graph.operator]] & (view.graph.rank == 3))
    is_side = view.graph.is_side.copy()
    is_side[at[0]] = True
    before, after = dense_of(view), dense_of(view, replace(view.graph, is_side=is_side))
    assert before is not None
    assert after is not None
    changed = np.isnan(after) & ~np.isnan(before)
    assert np.argwhere(changed).tolist() == [[3, int(view.graph.step[at[0]])]]


def test_tokens_that_go_to_a_host_and_then_to_its_ranks_come_back_in_turn() -> None:
    """Exchanges of one group lie between those of another: experts work between the inner ones."""
    graph = view_of().graph
    assert graph is not None
    names = [name for name, group in judged(BUSY).topology.groups.items() if group.role == "ep"]
    is_exchange, _ = exchanges_of(graph, names)
    first = graph.cell_begin[graph.step * len(graph.ranks) + graph.rank]
    before = np.cumsum(is_exchange) - is_exchange
    before -= before[first]
    inner = np.zeros(len(graph.transfer_us), bool)
    inner[graph.operator[is_exchange & np.isin(before % 4, (1, 2))]] = True
    group = np.where(inner, len(graph.groups), graph.operator_group)
    nested = replace(graph, operator_group=group, groups=(*graph.groups, "of a host"))
    is_inside = exchanges_of(nested, [*names, "of a host"])[1]
    assert (is_inside == (before % 4 > 0)).all()
    assert (exchanges_of(graph, names)[1] == (before % 2 > 0)).all()


@pytest.mark.slow
def test_a_pause_is_not_taken_for_computing_outside_of_experts() -> None:
    case = judged(replace(BUSY, steps=8), f"periodic_pause:200@{SLOW},every=2")
    assert [one.kind for one in case.alarms] == ["periodic_pause"]


def test_without_experts_all_computing_counts() -> None:
    view = view_of(spec=replace(BUSY, ep=1, healthy=Healthy()))
    assert view.dense_us is None
    assert dense_of(view) is None


def test_the_busiest_experts_are_named_though_those_of_a_slow_host_have_no_level() -> None:
    """A host that is slow by itself is left out of what its experts are compared by."""
    raw = np.repeat(np.linspace(-0.2, 0.2, 16)[:, None], 5, axis=1)
    raw[4:6] = np.nan
    view: Any = SimpleNamespace(
        has_experts=True, sample=np.arange(16) // 2, replica=np.arange(16) // 2, steps=tuple(range(5)),
        computing_us=np.full((16, 5), 1e5), rank_ids=lambda rows: tuple(rows.tolist()),
    )  # fmt: skip
    (found,) = _expert_imbalance(view, raw, Thresholds())
    assert found.ranks == (14, 15)
    assert np.isfinite(found.evidence[0].value)


@pytest.mark.parametrize(("hotter", "is_named"), [(1.27, True), (1.01, False)])
def test_one_hot_expert_among_even_ones_is_listed_with_its_holder_and_cost(
    hotter: float, *, is_named: bool
) -> None:
    """A spread that sees through outliers is blind to a single one; no device is blamed for its experts.

    Nothing here shows that its device is not slow: the job is not called healthy.
    """
    ranks = tuple(range(16))
    groups = {"a": ranks[:8], "b": ranks[8:]}
    where = small_topology(groups, dict.fromkeys(groups, "ep"), dict.fromkeys(ranks, 0))
    where = replace(where, dp_index={Rank(rank): rank for rank in ranks})
    computing = peers_agree(16, 6, share=0.6)
    computing[5] *= hotter
    found = judged_by_computing(computing, where)
    assert not any(one.is_alarm for one in found.findings)
    assert any(one.kind == "costly_unexplained" for one in found.notes) == is_named
    hot = [one for one in found.findings if one.kind == "expert_imbalance"]
    assert [one.ranks for one in hot] == ([(5,)] if is_named else [])
    assert all(one.cost_share == pytest.approx(0.6 * 0.27, rel=0.1) for one in hot)
