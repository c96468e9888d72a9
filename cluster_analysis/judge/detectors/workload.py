"""Time that the work itself explains: stages, data and experts of unequal size. No hardware is blamed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.measures.deviation import deviation_of, longer_than_peers, relative_to_peers
from cluster_analysis.judge.measures.stage_calls import left_of_transfers, more_calls
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import BoolArray, FloatArray
from cluster_analysis.numeric.sorting import rows_at
from cluster_analysis.numeric.stats import group_medians, median, medians_by, sigma
from cluster_analysis.thresholds.common import FEWEST_PEERS, HALFWAY, TWICE
from cluster_analysis.thresholds.judging import HEALTHY_SIGMA
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.facts import Fact, fact
from cluster_run.findings import Evidence
from cluster_run.kinds import WorkloadKind


def detect(case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give what data, experts and stages of unequal size cost."""
    slow = [one for one in found if one.cause == "compute"]
    in_slow_hosts = case.ranks_of([one for one in slow if one.is_slow_host])
    view, dense_us = case.view, case.view.dense_us
    longer_us = 0.0 if dense_us is None else np.nan_to_num(relative_to_peers(dense_us, view))
    work, of_experts = (
        longer_than_peers(np.where(in_slow_hosts[:, None], np.nan, one), view)
        for one in (view.computing_us, view.computing_us - longer_us)
    )
    yield from _data_imbalance(view, work, case.limits)
    yield from _expert_imbalance(view, of_experts, case.limits)
    yield from _stage_imbalance(case, case.limits, case.ranks_of(slow))


def _uneven(kind: WorkloadKind, view: JobView, more: FloatArray, row: Evidence, said: Fact) -> Suspect:
    """The suspect of work that is uneven: each rank computes `more` than if it were even, as logarithms.

    `more` is (R, S) or (R, 1); what is unknown costs nothing. Uneven work is no fault.
    """
    excess: FloatArray = np.nan_to_num(view.computing_us) * -np.expm1(-np.nan_to_num(more))
    return Suspect(kind, kind, (row,), facts=(said,), excess_us=excess, is_alarm=False)


def _expert_imbalance(view: JobView, work: FloatArray, limits: Thresholds) -> Iterator[Suspect]:
    """One finding when holders of experts differ in every step: some experts get more tokens.

    `work` (R, S) is how much longer ranks compute than peers, where these compute alike outside of experts.
    """
    if not view.has_experts or (view.replica < 0).any():
        return
    codes, group = np.unique(view.sample, return_inverse=True)
    by_group = medians_by(median(work, 1), group)
    spread = float(np.nan_to_num(sigma(by_group)))
    noise = float(np.nan_to_num(sigma(work - median(work, 1)[:, None]))) / np.sqrt(len(view.steps))
    if len(codes) <= FEWEST_PEERS or not np.isfinite(by_group).any():
        return
    worst = int(np.nanargmax(by_group))  # a host that is slow by itself, and its experts, have no level here
    # A robust spread does not see a single hot expert.
    least = np.full(len(codes), limits.floor)
    deviation = deviation_of(
        medians_by(work, group), np.zeros(len(codes), np.int32), least, healthy=HEALTHY_SIGMA
    )
    is_hot = len(codes) * deviation.tail[worst] <= limits.listed_p_value
    if not (is_hot and deviation.level[worst] >= limits.device_effect) and spread < max(
        limits.device_effect, TWICE * noise
    ):
        return
    typical, most = float(median(view.computing_us)), float(by_group[worst])
    holders = view.rank_ids(np.flatnonzero(group == worst))
    row = Evidence("computing_us", typical * float(np.exp(most)), typical, typical * spread, len(codes) - 1)
    said = fact("experts_uneven", spread_share=spread, ranks=holders, more_share=float(np.expm1(most)))
    yield replace(_uneven("expert_imbalance", view, by_group[group][:, None], row, said), ranks=holders)


def _stage_imbalance(case: Case, limits: Thresholds, faulty: BoolArray) -> Iterator[Suspect]:
    """One finding when stages differ in computing by a few percent, `faulty` ranks (R,) left out."""
    view, kernels = case.view, case.kernels_of_all
    is_known, by_rank = view.stage >= 0, np.where(faulty, np.nan, median(view.computing_us, 1))
    # Each stage counts once: how many of its ranks were read says nothing about the job.
    stages, typical = np.unique(view.stage[is_known]), medians_by(by_rank[is_known], view.stage[is_known])
    if len(stages) < 2 or not typical.min() > 0:
        return
    high, low, mean = int(np.argmax(typical)), int(np.argmin(typical)), float(typical.mean())
    slowest = np.flatnonzero(view.stage == stages[high])
    most, least, spread = float(typical[high]), float(typical[low]), float(sigma(by_rank[slowest]))
    if most / mean - 1.0 < limits.stage_effect:
        return
    # If a stage is one host, kernels or calls tell which is slow. If it is the host, all calls of kernels
    # take longer, also the shortest, and the stage itself is as the others; more calls are more work.
    half = HALFWAY * np.log(most / mean)
    if kernels is None:
        is_slow = np.log(more_calls(view, stages)[high]) < half
    else:
        is_slow = median(kernels.at_equal_calls()[slowest]) >= half
    is_host = (
        len({*view.host[slowest].tolist()}) == 1
        and not np.isin(view.host, view.host[slowest])[view.stage != stages[high]].any()
        and is_slow
    )
    usual = float(np.median(np.delete(typical, high))) if is_host else mean
    more = np.log(typical / usual)
    more = rows_at(view.stage, stages, (np.maximum(more, 0.0) if is_host else more)[:, None], np.nan)
    said = fact(
        "stages_uneven", stage=int(stages[high]), computing_us=most, other_stage=int(stages[low]),
        other_us=least, above_mean_share=most / mean - 1.0, n_stages=len(stages),
    )  # fmt: skip
    row = Evidence("computing_us", most, least, float(np.nan_to_num(spread)), len(stages) - 1)
    one = replace(_uneven("stage_imbalance", view, more, row, said), ranks=view.rank_ids(slowest))
    if is_host or one.excess_us is None:
        yield replace(one, confidence="low")
        return
    # Kernels come with idle time between them: as much as in the stage that has least of it.
    idle_share = medians_by(median(view.free_us / view.computing_us, 1)[is_known], view.stage[is_known]).min()
    excess_us = one.excess_us * (1.0 + np.nan_to_num(idle_share))
    yield replace(one, excess_us=excess_us, link_factor=left_of_transfers(view, stages))


def _data_imbalance(view: JobView, work: FloatArray, limits: Thresholds) -> Iterator[Suspect]:
    """One finding when replicas differ from step to step: their samples differ in length."""
    n_replicas = len(np.unique(view.replica))
    if not (view.replica >= 0).all() or n_replicas < FEWEST_PEERS or not view.computing_us.size:
        return
    shared = group_medians(work, view.replica)
    shared = shared - median(shared, 1)[:, None]  # what stays is not the data's
    spread, by_places = float(np.nan_to_num(sigma(shared))), _spread_of_places(view)
    if spread < limits.device_effect and by_places < limits.stage_effect:
        return
    spread = max(spread, by_places)
    typical = float(median(view.computing_us))
    said = fact("replicas_uneven", n_replicas=n_replicas, spread_share=spread)
    row = Evidence("computing_us", typical * (1 + spread), typical, typical * spread, n_replicas)
    yield replace(_uneven("data_imbalance", view, shared, row, said), pattern="intermittent")


def _spread_of_places(view: JobView) -> float:
    """Share by which gaps are longer or shorter for their samples; 0 where nothing is known.

    Micro-batches of unequal length may fill steps of equal length. TP/CP peers tell them from chance, but for
    pauses of one of them, so that it takes more than from step to step. Where a rank has its samples alone
    the middle of the long gaps does: pauses are in few of them.
    """
    if view.graph is None or view.gaps is None:
        return 0.0
    more = np.abs(view.gaps.of_work_us(view.role, view.sample, view.paused_us, lasts=False))
    is_measured = np.isfinite(more) & ~view.graph.is_side
    more, gap = more[is_measured], view.graph.gap_us[is_measured]
    if len(np.unique(view.sample)) * 2 > len(view.ranks):
        is_long = gap * len(gap) >= max(float(gap.sum()), 1.0)
        return float(np.nan_to_num(median(more[is_long] / gap[is_long])))
    return float(more.sum() / max(float(gap.sum()), 1.0))
