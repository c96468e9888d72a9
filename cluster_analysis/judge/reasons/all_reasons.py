"""What is known of suspects beyond what made them suspect: kernels, clocks, retries.

A counter of a suspect is held against the same counter of others: a low clock explains why a device is slow,
and operators that HCCL had to repeat (`retry`) confirm that packets were lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from cluster_analysis.judge.measures.counters import by_rank
from cluster_analysis.judge.measures.steady import Kernels
from cluster_analysis.judge.reasons.kernels import with_kernels
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.numeric.stats import median, sigma
from cluster_analysis.thresholds.common import CLEAR_SIGMAS, FEWEST_PEERS, HALFWAY
from cluster_analysis.thresholds.devices import STEADY_SIGMA
from cluster_run.facts import Fact, fact
from cluster_run.findings import Evidence

_CLOCK = "aicore_frequency_mhz"
_RETRIES = "retry_operators_count"


def with_reasons(
    counters: pa.Table, kernels: Kernels | None, view: JobView, suspects: Sequence[Suspect]
) -> list[Suspect]:
    """Return the suspects, each with the evidence and facts that explain or confirm it."""
    return with_counters(counters, view, with_kernels(kernels, view, suspects))


def with_counters(counters: pa.Table, view: JobView, suspects: Sequence[Suspect]) -> list[Suspect]:
    """Return the suspects, those with evidence and a fact more that a counter explains or confirms.

    Args:
        counters: COUNTERS of all ranks, or an empty table.
        view: the job.
        suspects: of any kind.
    """
    clocks_mhz = by_rank(counters, _CLOCK, "mean")
    n_retries = by_rank(counters, _RETRIES)
    explained = list(suspects)
    if any(clocks_mhz.values()):
        explained = [_with_clock(clocks_mhz, view, one) for one in explained]
    if any(n_retries.values()):
        explained = [_with_retries(n_retries, view, one) for one in explained]
    return explained


def _with_clock(clocks_mhz: Mapping[int, float], view: JobView, suspect: Suspect) -> Suspect:
    """At a lower clock the same work takes longer in proportion; a little lower is no reason."""
    if suspect.kind not in ("slow_rank", "slow_host") or suspect.cause != "compute":
        return suspect
    inside = np.isin(view.ranks, suspect.ranks)
    peers = view.ranks[np.isin(view.role, view.role[inside]) & ~inside]
    own = _known(clocks_mhz, suspect.ranks)
    row = _row(_CLOCK, float(np.median(own)) if len(own) else np.nan, _known(clocks_mhz, peers.tolist()))
    if row is None:
        return suspect
    time = suspect.evidence[0]
    needed = HALFWAY * max(STEADY_SIGMA, time.value / time.peers_median - 1.0)
    below = row.peers_median - row.value
    if below < needed * row.value or below < CLEAR_SIGMAS * row.peers_mad:
        return suspect
    lower = 1.0 - row.value / row.peers_median
    said = fact("clock_below_peers", own_mhz=row.value, peers_mhz=row.peers_median, lower_share=lower)
    return _explained(suspect, row, said)


def _with_retries(n_retries: Mapping[int, float], view: JobView, suspect: Suspect) -> Suspect:
    """The end of the suspect's links, or its rank, with most retries, beside all that have no part in it."""
    if not _may_lose_packets(suspect):
        return suspect
    ends: set[int] = {rank for link in suspect.links for rank in (link.src, link.dst)} or set(suspect.ranks)
    others = set(view.ranks.tolist()) - set(suspect.ranks) - ends
    rank = max(sorted(ends & n_retries.keys()), key=lambda one: n_retries[one], default=-1)
    row = _row(_RETRIES, n_retries.get(rank, np.nan), _known(n_retries, others))
    if row is None or row.value <= row.peers_median + CLEAR_SIGMAS * row.peers_mad:
        return suspect
    said = fact("sent_again", own_rank=rank, n_retries=round(row.value), others=row.peers_median)
    return _explained(suspect, row, said)


def _may_lose_packets(suspect: Suspect) -> bool:
    """HCCL repeats operators between hosts only: inside a host no counter can confirm anything."""
    return suspect.kind in ("retransmission", "slow_link", "slow_nic") and (
        not suspect.links or any(link.transport.upper() == "RDMA" for link in suspect.links)
    )


def _known(values: Mapping[int, float], ranks: Iterable[int]) -> FloatArray:
    return np.array([values[rank] for rank in sorted(ranks) if rank in values])


def _row(metric: str, own: float, others: FloatArray) -> Evidence | None:
    """A suspect's counter beside that of others; None where either is not known."""
    if not np.isfinite(own) or len(others) < FEWEST_PEERS:
        return None
    return Evidence(metric, own, float(median(others)), float(sigma(others)), len(others))


def _explained(suspect: Suspect, row: Evidence, said: Fact) -> Suspect:
    return replace(suspect, evidence=(*suspect.evidence, row), facts=(*suspect.facts, said))
