"""Three rules that tools and guides of the field use to name a slow rank, for comparison.

- 5 % spread: of computing, and of idle time, over all ranks; where (max - min) / mean step is above 5 %, the
  highest rank is named.
- Dixon vote: in each collective the shortest duration is tested as an outlier (Dixon, 99.5 %); the rank with
  most votes is named.
- Lowest wait: the rank that waits least over all its tensor-parallel (else all) groups is named.

Re-implemented here from their descriptions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from cluster_analysis.replay.job_evidence import JobEvidence
from cluster_analysis.tables.model import Topology
from cluster_analysis.trace.evidence import StepOperators

_SPREAD = 0.05
#: Critical values of Dixon's ratio at 99.5 % by number of values (r10 to 7, r11 to 10, r21 to 13, r22 above).
_DIXON = {3: 0.994, 4: 0.926, 5: 0.821, 6: 0.740, 7: 0.680, 8: 0.725, 9: 0.677, 10: 0.639, 11: 0.713,
          12: 0.675, 13: 0.649, 14: 0.674, 15: 0.647, 16: 0.624, 20: 0.562, 25: 0.512, 30: 0.473}  # fmt: skip


@dataclass(frozen=True)
class Named:
    """The ranks that a rule names, the first one most of all."""

    ranks: tuple[int, ...]


def five_percent_spread(evidence: JobEvidence, _: Topology) -> Named:
    """Name the highest rank of each part of the step whose spread is above 5 % of the mean step."""
    table = evidence.step_table.to_pandas()
    table["total"] = table["computing_us"] + table["communication_not_overlapped_us"] + table["free_us"]
    means = table.groupby("rank", observed=True)[["computing_us", "free_us", "total"]].mean()
    named = []
    for part in ("computing_us", "free_us"):
        if (means[part].max() - means[part].min()) / means["total"].mean() > _SPREAD:
            named.append(int(means[part].idxmax()))
    return Named(tuple(dict.fromkeys(named)))


def dixon_vote(evidence: JobEvidence, _: Topology) -> Named:
    """Name the rank that most collectives single out as the last to come."""
    votes: dict[int, int] = {}
    for step in evidence.step_operators:
        if step is None:
            continue
        for ranks, elapse in _collectives(step):
            if len(elapse) >= 3 and _is_outlier(np.sort(elapse)):
                rank = int(ranks[np.argmin(elapse)])
                votes[rank] = votes.get(rank, 0) + 1
    return Named((max(sorted(votes), key=votes.__getitem__),) if votes else ())


def lowest_wait(evidence: JobEvidence, topology: Topology) -> Named:
    """Name the rank that waits least in its tensor-parallel groups."""
    waits: dict[int, float] = {}
    roles = {group.role for group in topology.groups.values() if len(group.ranks) > 1}
    for step in evidence.step_operators:
        if step is None:
            continue
        wanted = {
            number
            for number, name in enumerate(step.groups)
            if "tp" not in roles or (name in topology.groups and topology.groups[name].role == "tp")
        }
        inside = np.isin(step.operator_group[step.instance_operator], sorted(wanted)) & ~step.instance_is_p2p
        wait = step.instance_elapse_us - step.operator_transfer_us[step.instance_operator]
        sums = np.bincount(step.instance_rank[inside], wait[inside], len(step.ranks))
        for rank, total in zip(step.ranks.tolist(), sums.tolist(), strict=True):
            waits[rank] = waits.get(rank, 0.0) + total
    return Named((min(sorted(waits), key=waits.__getitem__),) if waits else ())


RULES: Mapping[str, Callable[[JobEvidence, Topology], Named]] = {
    "5 % spread": five_percent_spread,
    "Dixon vote": dixon_vote,
    "lowest wait": lowest_wait,
}


def _collectives(step: StepOperators) -> list[tuple[np.ndarray, np.ndarray]]:
    instances = np.flatnonzero(~step.instance_is_p2p)
    order = instances[np.argsort(step.instance_operator[instances], kind="stable")]
    cuts = np.flatnonzero(np.diff(step.instance_operator[order])) + 1
    return [
        (step.ranks[step.instance_rank[one]], step.instance_elapse_us[one]) for one in np.split(order, cuts)
    ]


def _is_outlier(x: np.ndarray) -> bool:
    n = len(x)
    low, high = (1, -1) if n <= 7 else (1, -2) if n <= 10 else (2, -2) if n <= 13 else (2, -3)
    span = x[high] - x[0]
    critical = _DIXON[max(size for size in _DIXON if size <= n)]
    return bool(span > 0 and (x[low] - x[0]) / span > critical)
