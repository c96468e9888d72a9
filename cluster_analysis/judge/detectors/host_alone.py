"""A host that holds a whole stage idles or computes far longer: nobody does the same work elsewhere.

Whether it is the host or the stage cannot be told. That it happens, where, and what it costs can.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.measures.metrics import Metric, late
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import BoolArray, FloatArray
from cluster_analysis.numeric.stats import median, sigma
from cluster_run.facts import FindingFact, fact
from cluster_run.findings import WorkloadKind


def detect(case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give hosts without peers that idle a multiple of everybody else, or all of whose kernels are slow."""
    for host in _without_peers(case.view):
        inside = case.view.host == host
        for metric in () if inside.all() else case.metrics:
            yield from _slow(case, metric, inside) if metric.is_log else _idle(case, metric, inside)


def _without_peers(view: JobView) -> list[int]:
    """Hosts none of whose ranks does the same work as one elsewhere."""
    role, _ = np.unique(np.stack([view.role, view.host]), axis=1)
    of_role, n_hosts = np.unique(role, return_counts=True)
    is_shared = np.isin(view.role, of_role[n_hosts > 1])
    return sorted(set(view.host[view.host >= 0].tolist()) - set(view.host[is_shared].tolist()))


def _slow(case: Case, metric: Metric, inside: BoolArray) -> Iterator[Suspect]:
    """Give the host, if every type of kernel takes longer on it than elsewhere by so much."""
    if case.common is None:
        return
    slower = case.common.values[:, 0]
    level = median(slower[inside])
    if level >= np.log1p(metric.effect):
        scatter = float(np.nan_to_num(sigma(slower[~inside])))
        said = {"slower_share": float(np.expm1(level))}
        one = _alone(case, metric, inside, "stage_imbalance", "host_alone_slow", said, level, scatter)
        yield replace(one, is_alarm=False)  # uneven stages are no fault


def _idle(case: Case, metric: Metric, inside: BoolArray) -> Iterator[Suspect]:
    """Give the host, if it idles a multiple of all others, and that is costly."""
    limits, time_us = case.limits, metric.time_us
    others_us, own_us = float(median(time_us[~inside])), float(median(time_us[inside]))
    # A moment on one rank lifts no median of the host.
    lasting = median(median(time_us[inside], 0))
    is_multiple = lasting >= limits.single_step_idle_factor * max(others_us, metric.floor)
    if is_multiple and own_us - others_us >= limits.sure_cost_share * case.view.mean_step_us:
        is_head = metric.where == "head"
        kind: WorkloadKind = "input_bound" if is_head else "host_bound"
        told: FindingFact = "host_alone_late" if is_head else "host_alone_idle"
        scatter_us = float(np.nan_to_num(sigma(median(time_us[~inside], 1))))
        course = np.nan_to_num(time_us[inside] - others_us)
        said = {"own_us": own_us, "others_us": others_us}
        yield _alone(case, metric, inside, kind, told, said, course, scatter_us)


def _alone(
    case: Case, metric: Metric, inside: BoolArray, kind: WorkloadKind, told: FindingFact,
    said: Mapping[str, float], course: FloatArray, scale: float,
) -> Suspect:  # fmt: skip
    """The suspect of a host (R,) that has more than others by the `course` (S,), or by its ranks (N, S)."""
    own = np.flatnonzero(inside)
    one = late(case.view, metric, own, course, scale=scale, n_others=int((~inside).sum()))
    host = case.view.hosts_of(own)[0]
    key, facts = f"{kind}-host-{host}", (fact(told, host=host, **said),)
    return replace(one, key=key, kind=kind, facts=facts, confidence="low", separable=False)
