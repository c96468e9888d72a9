"""A host that holds a whole stage idles or computes far longer: nobody does the same work elsewhere.

Whether it is the host or the stage cannot be told. That it happens, where, and what it costs can.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.measures.metrics import Metric
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import BoolArray, FloatArray
from cluster_analysis.numeric.stats import median, sigma
from cluster_run.facts import Fact, fact
from cluster_run.findings import Evidence, WorkloadKind


def detect(case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give hosts without peers that idle a multiple of everybody else, or all of whose kernels are slow."""
    view = case.view
    for host in _without_peers(view):
        inside = view.host == host
        if inside.all():
            continue
        for metric in case.metrics:
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
    level = float(median(slower[inside]))
    if not level >= np.log1p(metric.effect):
        return
    host = case.view.hosts_of(np.flatnonzero(inside))[0]
    peers_us = float(median(metric.time_us[inside]) * np.exp(-level))
    scatter_us = float(np.nan_to_num(sigma(slower[~inside]))) * peers_us
    excess_us = metric.removable(np.full(metric.time_us.shape, level), np.nan_to_num(metric.time_us))
    said = fact("host_alone_slow", host=host, slower_share=float(np.expm1(level)))
    one = _alone(case.view, metric, inside, "stage_imbalance", said, peers_us, scatter_us, excess_us)
    yield replace(one, is_alarm=False)  # uneven stages are no fault


def _idle(case: Case, metric: Metric, inside: BoolArray) -> Iterator[Suspect]:
    """Give the host, if it idles a multiple of all others, and that is costly."""
    limits = case.limits
    others_us, own_us = float(median(metric.time_us[~inside])), float(median(metric.time_us[inside]))
    # A moment on one rank lifts no median of the host.
    lasting = median(median(metric.time_us[inside], 0))
    is_multiple = lasting >= limits.single_step_idle_factor * max(others_us, metric.floor)
    if not is_multiple or not own_us - others_us >= limits.sure_cost_share * case.view.mean_step_us:
        return
    host = case.view.hosts_of(np.flatnonzero(inside))[0]
    is_head = metric.where == "head"
    said = fact(
        "host_alone_late" if is_head else "host_alone_idle", host=host, own_us=own_us, others_us=others_us
    )
    scatter_us = float(np.nan_to_num(sigma(median(metric.time_us[~inside], 1))))
    excess_us = np.maximum(np.nan_to_num(metric.time_us) - others_us, 0.0)
    kind: WorkloadKind = "input_bound" if is_head else "host_bound"
    yield _alone(case.view, metric, inside, kind, said, others_us, scatter_us, excess_us)


def _alone(
    view: JobView, metric: Metric, inside: BoolArray, kind: WorkloadKind, said: Fact,
    peers_us: float, scatter_us: float, excess_us: FloatArray,
) -> Suspect:  # fmt: skip
    """The suspect of a host (R,) that has more than others: `peers_us` is what it would have."""
    own = np.flatnonzero(inside)
    own_us = float(median(metric.time_us[inside]))
    row = Evidence(f"{metric.name}_us", own_us, peers_us, scatter_us, int((~inside).sum()))
    return Suspect(
        key=f"{kind}-host-{view.hosts_of(own)[0]}",
        kind=kind,
        metric=metric.name,
        ranks=view.rank_ids(own),
        hosts=view.hosts_of(own),
        cause=metric.cause,
        evidence=(row,),
        facts=(said,),
        confidence="low",
        excess_us=np.where(inside[:, None], excess_us, 0.0),
        where=metric.where,
        separable=False,
    )
