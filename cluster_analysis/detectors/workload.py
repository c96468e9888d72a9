"""Time that the work itself explains: stages, data and experts of unequal size. No hardware is blamed."""

from __future__ import annotations

import numpy as np

from cluster_analysis.detectors.deviation import Deviation
from cluster_analysis.detectors.suspects import Suspect
from cluster_analysis.detectors.view import JobView
from cluster_analysis.detectors.wording import percent
from cluster_analysis.evidence import FloatArray
from cluster_analysis.findings import Evidence
from cluster_analysis.stats import group_medians, median, sigma
from cluster_analysis.thresholds import Thresholds


def split_by_mates(
    view: JobView, deviation: Deviation, suspects: list[Suspect], limits: Thresholds
) -> tuple[list[Suspect], list[Suspect]]:
    """Tell devices from work: (device, work). A rank whose mates deviate with it got more work."""
    own, shared = [], []
    level = deviation.level
    for suspect in suspects:
        rank = int(np.searchsorted(view.ranks, suspect.ranks[0]))
        mates = np.flatnonzero((view.mates == view.mates[rank]) & (np.arange(len(level)) != rank))
        if view.mates[rank] < 0 or not len(mates) or suspect.pattern != "persistent":
            own.append(suspect)
            continue
        alone = level[rank] - float(median(level[mates]))
        (own if alone >= limits.own_share * level[rank] else shared).append(suspect)
    return own, shared


def stage_imbalance(view: JobView, limits: Thresholds) -> list[Suspect]:
    """One finding when stages differ in computing by more than a few percent."""
    roles = np.unique(view.stage[view.stage >= 0])
    if len(roles) < 2:
        return []
    by_rank = np.nanmean(view.computing_us, axis=1)
    typical = np.array([float(median(by_rank[view.stage == role])) for role in roles])
    if not np.isfinite(typical).all() or typical.min() <= 0:
        return []
    high, low = int(np.argmax(typical)), int(np.argmin(typical))
    mean = float(np.average(typical, weights=[int((view.stage == role).sum()) for role in roles]))
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
            hosts=(),
            cause="unknown",
            pattern="persistent",
            step_positions=tuple(range(len(view.steps))),
            evidence=(Evidence("computing_us", float(typical[high]), float(typical[low]), spread, others),),
            summary=(
                f"Stage {roles[high]} computes {typical[high] / 1e3:.0f} ms a step against "
                f"{typical[low] / 1e3:.0f} ms in stage {roles[low]}: the work is split unevenly, "
                f"{percent(typical[high] / mean - 1)} above the mean of the {len(roles)} stages."
            ),
            next_check="Move layers from the longest stage to the others, or the loss and embedding to a stage of their own.",
            excess_us=excess,
            is_alarm=False,
        )
    ]


def data_imbalance(view: JobView, deviation: Deviation, limits: Thresholds) -> list[Suspect]:
    """One finding when replicas differ from step to step: their samples differ in length."""
    if not (view.replica >= 0).all() or len(np.unique(view.replica)) < 3 or not view.computing_us.size:
        return []
    shared = group_medians(deviation.raw, view.replica)
    spread = float(np.nan_to_num(sigma(shared)))
    if spread < limits.data_effect:
        return []
    time = np.nan_to_num(view.computing_us)
    excess: FloatArray = time * -np.expm1(-np.nan_to_num(shared))
    n_replicas = len(np.unique(view.replica))
    typical = float(median(view.computing_us))
    return [
        Suspect(
            key="data_imbalance",
            kind="data_imbalance",
            ranks=(),
            hosts=(),
            cause="unknown",
            pattern="intermittent",
            step_positions=tuple(range(len(view.steps))),
            evidence=(
                Evidence("computing_us", typical * (1 + spread), typical, typical * spread, n_replicas),
            ),
            summary=(
                f"The {n_replicas} data-parallel replicas differ by {percent(spread)} in computing, another one "
                "each step: their samples differ in length."
            ),
            next_check="Balance the tokens of the replicas in each step (sort by length, or pack the sequences).",
            excess_us=excess,
            is_alarm=False,
        )
    ]
