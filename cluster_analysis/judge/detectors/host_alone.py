"""A host that holds a whole stage idles or computes far longer: nobody does the same work elsewhere.

Whether it is the host or the stage cannot be told. That it happens, where, and what it costs can.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.measures.metrics import Metric
from cluster_analysis.judge.measures.steady import common_to_all_kernels
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import BoolArray, FloatArray
from cluster_analysis.numeric.stats import median, sigma
from cluster_run.facts import FindingFact, fact
from cluster_run.findings import Evidence, WorkloadKind

_KINDS: Mapping[str, tuple[WorkloadKind, FindingFact]] = {
    "preparing": ("input_bound", "host_alone_late"),
    "free": ("host_bound", "host_alone_idle"),
}


def detect(case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give hosts without peers that idle a multiple of everybody else, or all of whose kernels are slow."""
    view = case.view
    alone = [host for host in np.unique(view.host[view.host >= 0]) if _is_alone(view, int(host))]
    if not alone:
        return
    slower = common_to_all_kernels(case.evidence.operators, view)
    for metric in case.metrics:
        for host in alone:
            inside = view.host == host
            if metric.name in _KINDS:
                suspect = _suspect(case, metric, int(host), inside)
            else:
                suspect = None if slower is None else _by_kernels(case, metric, inside, slower)
            if suspect is not None:
                yield suspect


def _is_alone(view: JobView, host: int) -> bool:
    inside = view.host == host
    return not inside.all() and not (np.isin(view.role, view.role[inside]) & ~inside).any()


def _by_kernels(case: Case, metric: Metric, inside: BoolArray, slower: FloatArray) -> Suspect | None:
    """The host, if every type of kernel takes longer on it than elsewhere by so much: `slower` (R,)."""
    view = case.view
    level = float(median(slower[inside]))
    if not level >= np.log1p(metric.effect):
        return None
    deviation = np.where(inside[:, None], level, np.zeros(metric.time_us.shape))
    excess = metric.removable(deviation, np.nan_to_num(metric.time_us))
    own = float(median(metric.time_us[inside]))
    peers_us = own * float(np.exp(-level))
    host = view.hosts[int(view.host[inside][0])]
    scatter = float(np.nan_to_num(sigma(slower[~inside]))) * peers_us
    return Suspect(
        key=f"stage_imbalance-host-{host}",
        kind="stage_imbalance",
        metric=metric.name,
        ranks=view.rank_ids(list(np.flatnonzero(inside))),
        hosts=(host,),
        cause=metric.cause,
        pattern="persistent",
        step_positions=tuple(range(len(view.steps))),
        evidence=(Evidence(f"{metric.name}_us", own, peers_us, scatter, int((~inside).sum())),),
        facts=(fact("host_alone_slow", host=host, slower_share=float(np.expm1(level))),),
        confidence="low",
        excess_us=excess,
        is_alarm=False,
        separable=False,
    )


def _suspect(case: Case, metric: Metric, host: int, inside: BoolArray) -> Suspect | None:
    view, limits = case.view, case.limits
    of_others = float(median(metric.time_us[~inside]))
    own = float(median(metric.time_us[inside]))
    # A moment on one rank lifts no median of the host.
    lasting = median(median(metric.time_us[inside], 0))
    excess_us = own - of_others
    is_multiple = lasting >= limits.single_step_host_idle_factor * max(of_others, metric.floor)
    if not is_multiple or not excess_us >= limits.sure_cost_share * view.mean_step_us:
        return None
    kind, said = _KINDS[metric.name]
    excess = np.zeros(metric.time_us.shape)
    excess[inside] = np.maximum(np.nan_to_num(metric.time_us[inside]) - of_others, 0.0)
    return Suspect(
        key=f"{kind}-host-{view.hosts[host]}",
        kind=kind,
        metric=metric.name,
        ranks=view.rank_ids(list(np.flatnonzero(inside))),
        hosts=(view.hosts[host],),
        cause=metric.cause,
        pattern="persistent",
        step_positions=tuple(range(len(view.steps))),
        evidence=(
            Evidence(
                f"{metric.name}_us",
                own,
                of_others,
                float(np.nan_to_num(sigma(median(metric.time_us[~inside], 1)))),
                int((~inside).sum()),
            ),
        ),
        facts=(fact(said, host=view.hosts[host], own_us=own, others_us=of_others),),
        confidence="low",
        excess_us=excess,
        where=metric.where,
        separable=False,
    )
