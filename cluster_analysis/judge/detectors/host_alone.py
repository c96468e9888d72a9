"""A host that holds a whole stage idles or computes far longer: nobody does the same work elsewhere.

Whether it is the host or the stage cannot be told. That it happens, where, and what it costs can.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.measures.metrics import Metric
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import BoolArray, FloatArray
from cluster_analysis.numeric.stats import median, sigma
from cluster_run.facts import FindingFact, Value, fact
from cluster_run.findings import Evidence, WorkloadKind


@dataclass(frozen=True)
class _Told:
    """What a host has more of than others: `peers_us` is what it would have, `excess_us` (R, S) would go."""

    kind: WorkloadKind
    fact: FindingFact
    values: Mapping[str, Value]
    peers_us: float
    scatter_us: float
    excess_us: FloatArray


def detect(case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give hosts without peers that idle a multiple of everybody else, or all of whose kernels are slow."""
    view = case.view
    for host in _without_peers(view):
        inside = view.host == host
        if inside.all():
            continue
        for metric in case.metrics:
            told = _slow(case, metric, inside) if metric.is_log else _idle(case, metric, inside)
            if told is not None:
                yield _suspect(view, metric, host, inside, told)


def _without_peers(view: JobView) -> list[int]:
    """Hosts none of whose ranks does the same work as one elsewhere."""
    role = np.unique(view.role, return_inverse=True)[1]
    first = np.full(role.max(initial=-1) + 1, len(view.hosts))
    last = np.full(len(first), -1)
    np.minimum.at(first, role, view.host)
    np.maximum.at(last, role, view.host)
    is_shared = (first < last)[role]
    return sorted(set(view.host[view.host >= 0].tolist()) - set(view.host[is_shared].tolist()))


def _slow(case: Case, metric: Metric, inside: BoolArray) -> _Told | None:
    """The host, if every type of kernel takes longer on it than elsewhere by so much."""
    if case.common is None:
        return None
    slower = case.common.values[:, 0]
    level = float(median(slower[inside]))
    if not level >= np.log1p(metric.effect):
        return None
    peers_us = float(median(metric.time_us[inside]) * np.exp(-level))
    return _Told(
        "stage_imbalance",
        "host_alone_slow",
        {"slower_share": float(np.expm1(level))},
        peers_us=peers_us,
        scatter_us=float(np.nan_to_num(sigma(slower[~inside]))) * peers_us,
        excess_us=metric.removable(np.full(metric.time_us.shape, level), np.nan_to_num(metric.time_us)),
    )


def _idle(case: Case, metric: Metric, inside: BoolArray) -> _Told | None:
    """The host, if it idles a multiple of all others, and that is costly."""
    limits = case.limits
    of_others, own = float(median(metric.time_us[~inside])), float(median(metric.time_us[inside]))
    # A moment on one rank lifts no median of the host.
    lasting = median(median(metric.time_us[inside], 0))
    is_multiple = lasting >= limits.single_step_idle_factor * max(of_others, metric.floor)
    if not is_multiple or not own - of_others >= limits.sure_cost_share * case.view.mean_step_us:
        return None
    is_head = metric.where == "head"
    return _Told(
        "input_bound" if is_head else "host_bound",
        "host_alone_late" if is_head else "host_alone_idle",
        {"own_us": own, "others_us": of_others},
        peers_us=of_others,
        scatter_us=float(np.nan_to_num(sigma(median(metric.time_us[~inside], 1)))),
        excess_us=np.maximum(np.nan_to_num(metric.time_us) - of_others, 0.0),
    )


def _suspect(view: JobView, metric: Metric, host: int, inside: BoolArray, told: _Told) -> Suspect:
    own_us = float(median(metric.time_us[inside]))
    row = Evidence(f"{metric.name}_us", own_us, told.peers_us, told.scatter_us, int((~inside).sum()))
    return Suspect(
        key=f"{told.kind}-host-{view.hosts[host]}",
        kind=told.kind,
        metric=metric.name,
        ranks=view.rank_ids(np.flatnonzero(inside)),
        hosts=(view.hosts[host],),
        cause=metric.cause,
        evidence=(row,),
        facts=(fact(told.fact, host=view.hosts[host], **told.values),),
        confidence="low",
        excess_us=np.where(inside[:, None], told.excess_us, 0.0),
        where=metric.where,
        is_alarm=told.kind != "stage_imbalance",  # uneven stages are no fault
        separable=False,
    )
