"""A host that holds a whole stage idles or computes far longer: nobody does the same work elsewhere.

It is compared with all other hosts by measures that do not depend on the stage. The finding reports where and
how much, not whether the host or the stage is to blame.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.detectors.slow_host import host_suspects
from cluster_analysis.judge.suspects import Suspect
from cluster_run.facts import FindingFact, fact
from cluster_run.kinds import WorkloadKind


def detect(case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give hosts without peers that idle a multiple of everybody else, or all of whose kernels are slow."""
    view = case.view
    role, _ = np.unique(np.stack([view.role, view.host]), axis=1)
    of_role, n_hosts = np.unique(role, return_counts=True)
    shared = view.hosts_of_ranks(view.ranks[np.isin(view.role, of_role[n_hosts > 1])])
    if set(view.hosts) <= set(shared):
        return
    for metric in case.metrics:
        for comparison in case.comparisons(metric, of_all=True):
            hosts = [one for one in host_suspects(case, comparison) if one.hosts[0] not in shared]
            yield from (_of_work(one) for one in hosts if _is_far(case, one))


def _is_far(case: Case, one: Suspect) -> bool:
    """Whether it idles a multiple of all others, and that is costly: stages may differ by less.

    All types of kernels are slow on no stage that only has more work.
    """
    row, limits = one.evidence[0], case.limits
    is_costly = row.value - row.peers_median >= limits.sure_cost_share * case.view.mean_step_us
    is_multiple = row.value >= limits.single_step_idle_factor * row.peers_median
    return one.cause == "compute" or (is_costly and is_multiple)


def _of_work(one: Suspect) -> Suspect:
    """Return the suspect as a workload finding: it blames no host for computing longer, as stages differ."""
    row, host, is_alarm = one.evidence[0], one.hosts[0], one.cause != "compute"
    kind: WorkloadKind = "stage_imbalance"
    if is_alarm:  # others may idle for no time at all
        is_head = one.where == "head"
        kind = "input_bound" if is_head else "host_bound"
        fact_kind: FindingFact = "host_alone_late" if is_head else "host_alone_idle"
        said = fact(fact_kind, host=host, own_us=row.value, others_us=row.peers_median)
    else:
        said = fact("host_alone_slow", host=host, slower_share=row.value / row.peers_median - 1.0)
    key = f"{kind}-host-{host}"
    return replace(
        one, key=key, kind=kind, facts=(said,), confidence="low", separable=False, is_alarm=is_alarm
    )
