"""What is known of suspects beyond what made them suspect: kernels, clocks, retries.

A counter of a suspect is held against the same counter of others: a low clock explains why a device is slow,
and operators that HCCL had to repeat (`retry`) confirm that packets were lost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from cluster_analysis.judge.measures.counters import by_rank
from cluster_analysis.judge.reasons.kernels import with_kernels
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.stats import median, sigma
from cluster_analysis.replay.job_evidence import JobEvidence
from cluster_analysis.thresholds.common import CLEAR_SIGMAS, FEWEST_PEERS, HALFWAY
from cluster_analysis.thresholds.devices import LEAST_EXCESS
from cluster_run.facts import Fact, fact
from cluster_run.findings import Evidence

#: Ranks of a suspect, and those that they are held against.
_Sides = tuple[set[int], set[int]]


@dataclass(frozen=True)
class Counter:
    """One counter that says something of a suspect, beside the same counter of others.

    `said` is given the suspect, its rank with the most, and the row of evidence; None if that says nothing.
    """

    metric: str
    label: str
    concerns: Callable[[Suspect], bool]
    sides: Callable[[JobView, Suspect], _Sides]
    own: Callable[[list[float]], float]
    said: Callable[[Suspect, int, Evidence], Fact | None]


def with_reasons(evidence: JobEvidence, view: JobView, suspects: Sequence[Suspect]) -> list[Suspect]:
    """Return the suspects, each with the evidence and facts that explain or confirm it."""
    return with_counters(evidence.counters, view, with_kernels(evidence.operators, view, suspects))


def with_counters(counters: pa.Table, view: JobView, suspects: Sequence[Suspect]) -> list[Suspect]:
    """Return the suspects, those with evidence and a fact more that a counter explains or confirms.

    Args:
        counters: COUNTERS of all ranks, or an empty table.
        view: the job.
        suspects: of any kind.
    """
    explained = list(suspects)
    for reason in (CLOCK, RETRIES):
        values = by_rank(counters, reason.metric, reason.label)
        if any(values.values()):
            explained = [
                _explained(values, view, one, reason) if reason.concerns(one) else one for one in explained
            ]
    return explained


def _explained(values: Mapping[int, float], view: JobView, suspect: Suspect, reason: Counter) -> Suspect:
    ranks, others = (sorted(side & values.keys()) for side in reason.sides(view, suspect))
    if not ranks or len(others) < FEWEST_PEERS:
        return suspect
    beside = np.array([values[rank] for rank in others])
    own = reason.own([values[rank] for rank in ranks])
    row = Evidence(reason.metric, own, float(median(beside)), float(sigma(beside)), len(beside))
    said = reason.said(suspect, max(ranks, key=lambda rank: values[rank]), row)
    if said is None:
        return suspect
    return replace(suspect, evidence=(*suspect.evidence, row), facts=(*suspect.facts, said))


def _beside_peers(view: JobView, suspect: Suspect) -> _Sides:
    inside = np.isin(view.ranks, suspect.ranks)
    peers = view.ranks[np.isin(view.role, view.role[inside]) & ~inside]
    return set(suspect.ranks), set(peers.tolist())


def _lower_clock(suspect: Suspect, rank: int, row: Evidence) -> Fact | None:
    """At a lower clock the same work takes longer in proportion; a little lower is no reason."""
    time = suspect.evidence[0]
    needed = max(LEAST_EXCESS, HALFWAY * (time.value / time.peers_median - 1.0))
    below = row.peers_median - row.value
    if below < needed * row.value or below < CLEAR_SIGMAS * row.peers_mad:
        return None
    lower = 1.0 - row.value / row.peers_median
    return fact("clock_below_peers", own_mhz=row.value, peers_mhz=row.peers_median, lower_share=lower)


def _beside_all_others(view: JobView, suspect: Suspect) -> _Sides:
    """The ends of the suspect's links, or its ranks, beside all that have no part in it."""
    ends: set[int] = {rank for link in suspect.links for rank in (link.src, link.dst)} or set(suspect.ranks)
    return ends, set(view.ranks.tolist()) - set(suspect.ranks) - ends


def _sent_again(suspect: Suspect, rank: int, row: Evidence) -> Fact | None:
    if row.value <= row.peers_median + CLEAR_SIGMAS * row.peers_mad:
        return None
    return fact("sent_again", own_rank=rank, n_retries=round(row.value), others=row.peers_median)


def _may_lose_packets(suspect: Suspect) -> bool:
    """HCCL repeats operators between hosts only: inside a host no counter can confirm anything."""
    return suspect.kind in ("retransmission", "slow_link", "slow_nic") and (
        not suspect.links or any(link.transport.upper() == "RDMA" for link in suspect.links)
    )


CLOCK = Counter(
    metric="aicore_frequency_mhz",
    label="mean",
    concerns=lambda one: one.kind in ("slow_rank", "slow_host") and one.cause == "compute",
    sides=_beside_peers,
    own=lambda values: float(np.median(values)),
    said=_lower_clock,
)
RETRIES = Counter(
    metric="retry_operators_count",
    label="",
    concerns=_may_lose_packets,
    sides=_beside_all_others,
    own=max,
    said=_sent_again,
)
