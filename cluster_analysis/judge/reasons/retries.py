"""Whether operators over a suspect part of the network were sent again, as the profiler counts it.

HCCL counts an operator in `retry` when it had to be repeated. A part that lost packets shows it; one that is
only slow does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from cluster_analysis.judge.reasons.counters import beside, by_rank
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.thresholds.common import CLEAR_SIGMAS, FEWEST_PEERS
from cluster_run.facts import fact
from cluster_run.findings import Evidence

_METRIC = "retry_operators_count"
_KINDS = ("retransmission", "slow_link", "slow_nic")


def with_retries(counters: pa.Table, suspects: Sequence[Suspect]) -> list[Suspect]:
    """Return the suspects; parts of the network between hosts with the retries that confirm lost packets.

    Args:
        counters: COUNTERS of all ranks, or an empty table.
        suspects: of any kind.
    """
    count = by_rank(counters, _METRIC)
    if not any(count.values()):
        return list(suspects)
    return [_confirmed(count, one) if _may_lose_packets(one) else one for one in suspects]


def _may_lose_packets(suspect: Suspect) -> bool:
    """HCCL repeats operators between hosts only: inside a host no counter can confirm anything."""
    return suspect.kind in _KINDS and (
        not suspect.links or any(link.transport.upper() == "RDMA" for link in suspect.links)
    )


def _confirmed(count: dict[int, float], suspect: Suspect) -> Suspect:
    ends = {rank for link in suspect.links for rank in (link.src, link.dst)} or set(suspect.ranks)
    own = {rank: count[rank] for rank in sorted(ends) if rank in count}
    others = sorted(set(count) - set(suspect.ranks) - ends)
    if not own:
        return suspect
    most = max(own, key=lambda rank: own[rank])
    retries = beside(count, own[most], others)
    if retries.n_others < FEWEST_PEERS or retries.own <= retries.others + CLEAR_SIGMAS * retries.scatter:
        return suspect
    row = Evidence(_METRIC, retries.own, retries.others, retries.scatter, retries.n_others)
    said = fact("sent_again", own_rank=most, n_retries=round(retries.own), others=retries.others)
    return replace(suspect, evidence=(*suspect.evidence, row), facts=(*suspect.facts, said))
