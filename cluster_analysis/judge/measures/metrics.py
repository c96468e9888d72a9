"""The local times that make a rank late, and what is said of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from cluster_analysis.judge.suspects import Where
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.facts import Fact, FindingFact, Value, fact
from cluster_run.findings import Cause

_FACTS: Mapping[tuple[str, Cause], FindingFact] = {
    ("rank", "compute"): "rank_computing",
    ("rank", "dispatch"): "rank_free",
    ("rank", "input"): "rank_preparing",
    ("host", "compute"): "host_computing",
    ("host", "dispatch"): "host_free",
    ("host", "input"): "host_preparing",
}


@dataclass(frozen=True)
class Metric:
    """One part of a rank's local time. `values` is what is compared: ln of µs, or µs.

    `follows_work`: what a rank was given to do may lengthen it, samples or experts' tokens.
    """

    name: str
    cause: Cause
    where: Where
    values: FloatArray
    time_us: FloatArray
    floor: float
    effect: float
    is_log: bool
    follows_work: bool = False

    def removable(self, deviation: FloatArray, time_us: FloatArray) -> FloatArray:
        """µs that vanish when the deviation does; never more than there are."""
        if self.is_log:
            return np.maximum(time_us * -np.expm1(-deviation), 0.0)
        return np.clip(deviation, 0.0, time_us)


def metrics(view: JobView, limits: Thresholds) -> tuple[Metric, ...]:
    """Computing, idle time between operators (free), and idle time before the first one (preparing)."""
    step_us = view.mean_step_us
    with np.errstate(divide="ignore", invalid="ignore"):
        log_computing = np.where(view.computing_us > 0, np.log(view.computing_us), np.nan)
    short = len(view.steps) < limits.min_steps_confident
    computing_floor = limits.floor_single if short else limits.floor
    local = limits.local_effect_share_of_step * step_us
    return (
        Metric("preparing", "input", "head", view.preparing_us, view.preparing_us,
               limits.floor * step_us, local, False),
        Metric("free", "dispatch", "spread", view.idled_us, view.idled_us,
               limits.floor * step_us, local, False),
        Metric("computing", "compute", "spread", log_computing, view.computing_us,
               computing_floor, limits.device_effect, True, follows_work=True),
    )  # fmt: skip


def by_steady_kernels(metric: Metric, longer: FloatArray) -> Metric:
    """Computing, compared by kernels that know no samples: `longer` (R,) than the peers', in all steps."""
    values = np.where(np.isfinite(metric.time_us), longer[:, None], np.nan)
    return replace(metric, values=values, follows_work=False)


def local_fact(
    subject: Literal["rank", "host"], metric: Metric, own_us: float, peers_us: float, **values: Value
) -> Fact:
    """Return by how much a rank or host is later than its peers: a share of computing, else µs."""
    kind = _FACTS[subject, metric.cause]
    if metric.is_log:
        return fact(kind, slower_share=own_us / peers_us - 1.0, **values)
    return fact(kind, more_us=own_us - peers_us, **values)


def outside_experts(metric: Metric, view: JobView) -> Metric:
    """Computing without that of experts, whose load is nobody's fault; the metric itself if unknown."""
    if not metric.is_log or view.dense is None:
        return metric
    return replace(metric, values=np.log(view.dense.computing_us))
