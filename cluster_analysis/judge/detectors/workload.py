"""Time that the work itself explains: stages, data and experts of unequal size. No hardware is blamed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.detectors.slow_host import is_slow_everywhere
from cluster_analysis.judge.measures.deviation import Deviation
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import BoolArray, FloatArray
from cluster_analysis.numeric.stats import group_medians, median, sigma
from cluster_analysis.thresholds.common import FEWEST_PEERS, HALFWAY, TWICE
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.facts import fact
from cluster_run.findings import Evidence


def detect(case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give what data, experts and stages of unequal size cost."""
    for metric in case.metrics:
        if metric.is_log:
            work = case.deviation(metric, case.in_slow_hosts(metric, found))
            yield from data_imbalance(case.view, work, case.limits)
            yield from expert_imbalance(case.view, work, case.limits)
    slow = case.ranks_of([one for one in found if one.cause == "compute"])
    yield from stage_imbalance(case.view, case.limits, slow)


def only_own(
    view: JobView, deviation: Deviation, suspects: list[Suspect], limits: Thresholds
) -> list[Suspect]:
    """Keep the devices: if TP/CP peers deviate with a rank it got more work, as does a holder of experts."""
    own = []
    for suspect in suspects:
        rank = int(np.searchsorted(view.ranks, suspect.ranks[0]))
        tp_cp_peers = np.flatnonzero(
            (view.tp_cp_peers == view.tp_cp_peers[rank]) & (np.arange(len(view.ranks)) != rank)
        )
        level = deviation.level
        if suspect.pattern != "persistent":  # in the steps in which it is slow
            level = median(deviation.series[:, list(suspect.step_positions)], 1)
        if view.tp_cp_peers[rank] >= 0 and len(tp_cp_peers):
            alone = level[rank] - float(np.nan_to_num(median(level[tp_cp_peers])))
            if alone >= HALFWAY * level[rank]:
                own.append(suspect)
        elif not view.has_experts or is_slow_everywhere(
            view, np.array([rank]), deviation.raw - deviation.series, limits
        ):
            own.append(suspect)
    return own


def expert_imbalance(view: JobView, deviation: Deviation, limits: Thresholds) -> list[Suspect]:
    """One finding when holders of experts differ in every step: some experts get more tokens."""
    if not view.has_experts or (view.tp_cp_peers < 0).any():
        return []
    level = median(deviation.raw, 1)
    codes = np.unique(view.tp_cp_peers)
    by_group = np.array([float(median(level[view.tp_cp_peers == code])) for code in codes])
    spread = float(np.nan_to_num(sigma(by_group)))
    noise = float(np.nan_to_num(median(deviation.step_sigma))) / np.sqrt(max(len(view.steps), 1))
    if len(codes) <= FEWEST_PEERS or spread < max(limits.device_effect, TWICE * noise):
        return []
    shared = by_group[np.searchsorted(codes, view.tp_cp_peers)]
    excess: FloatArray = np.nan_to_num(view.computing_us) * -np.expm1(-np.nan_to_num(shared))[:, None]
    worst = int(np.argmax(by_group))
    typical = float(median(view.computing_us))
    holders = view.rank_ids(list(np.flatnonzero(view.tp_cp_peers == codes[worst])))
    return [
        Suspect(
            key="expert_imbalance",
            kind="expert_imbalance",
            ranks=holders,
            step_positions=tuple(range(len(view.steps))),
            evidence=(
                Evidence("computing_us", typical * float(np.exp(by_group[worst])), typical, typical * spread,
                         len(codes) - 1),
            ),
            facts=(
                fact(
                    "experts_uneven",
                    spread_share=spread,
                    ranks=holders,
                    more_share=float(np.expm1(by_group[worst])),
                ),
            ),
            excess_us=excess,
            is_alarm=False,
        )
    ]  # fmt: skip


def stage_imbalance(view: JobView, limits: Thresholds, faulty: BoolArray) -> list[Suspect]:
    """One finding when stages differ in computing by a few percent, `faulty` ranks (R,) left out."""
    roles = np.unique(view.stage[view.stage >= 0])
    if len(roles) < 2:
        return []
    by_rank = np.where(faulty, np.nan, median(view.computing_us, 1))
    typical = np.array([float(median(by_rank[view.stage == role])) for role in roles])
    if not np.isfinite(typical).all() or typical.min() <= 0:
        return []
    high, low = int(np.argmax(typical)), int(np.argmin(typical))
    # Each stage counts once: how many of its ranks were read says nothing about the job.
    mean = float(typical.mean())
    if typical[high] / mean - 1.0 < limits.stage_effect:
        return []
    excess = np.zeros(view.computing_us.shape)
    for role, value in zip(roles, typical, strict=True):
        inside = view.stage == role
        excess[inside] = np.nan_to_num(view.computing_us[inside]) * (1.0 - mean / value)
    spread = float(np.nan_to_num(sigma(by_rank[view.stage == roles[high]])))
    others = len(roles) - 1
    return [
        Suspect(
            key="stage_imbalance",
            kind="stage_imbalance",
            ranks=view.rank_ids(list(np.flatnonzero(view.stage == roles[high]))),
            step_positions=tuple(range(len(view.steps))),
            evidence=(Evidence("computing_us", float(typical[high]), float(typical[low]), spread, others),),
            facts=(
                fact(
                    "stages_uneven",
                    stage=int(roles[high]),
                    computing_us=float(typical[high]),
                    other_stage=int(roles[low]),
                    other_us=float(typical[low]),
                    above_mean_share=float(typical[high] / mean - 1),
                    n_stages=len(roles),
                ),
            ),
            excess_us=excess,
            is_alarm=False,
        )
    ]


def data_imbalance(view: JobView, deviation: Deviation, limits: Thresholds) -> list[Suspect]:
    """One finding when replicas differ from step to step: their samples differ in length."""
    if not (view.replica >= 0).all() or len(np.unique(view.replica)) < 3 or not view.computing_us.size:
        return []
    shared = group_medians(deviation.raw, view.replica)
    if len(view.steps) >= limits.min_steps_confident:  # what stays from step to step is not the data's
        shared = shared - median(shared, 1)[:, None]
    elif view.has_experts:
        return []
    spread = float(np.nan_to_num(sigma(shared)))
    if spread < limits.device_effect:
        return []
    time = np.nan_to_num(view.computing_us)
    excess: FloatArray = time * -np.expm1(-np.nan_to_num(shared))
    n_replicas = len(np.unique(view.replica))
    typical = float(median(view.computing_us))
    return [
        Suspect(
            key="data_imbalance",
            kind="data_imbalance",
            pattern="intermittent",
            step_positions=tuple(range(len(view.steps))),
            evidence=(
                Evidence("computing_us", typical * (1 + spread), typical, typical * spread, n_replicas),
            ),
            facts=(fact("replicas_uneven", n_replicas=n_replicas, spread_share=spread),),
            excess_us=excess,
            is_alarm=False,
        )
    ]
