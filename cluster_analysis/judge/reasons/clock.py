"""Whether a slow device ran at a lower clock than its peers, and whether that is why it is slow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from cluster_analysis.judge.reasons.counters import beside, by_rank
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.thresholds.common import CLEAR_SIGMAS, FEWEST_PEERS, HALFWAY
from cluster_analysis.thresholds.devices import LEAST_EXCESS
from cluster_run.facts import fact
from cluster_run.findings import Evidence

_METRIC = "aicore_frequency_mhz"


def with_clocks(counters: pa.Table, view: JobView, suspects: Sequence[Suspect]) -> list[Suspect]:
    """Return the suspects; devices and hosts that compute slowly with their clock, where it explains them.

    Args:
        counters: COUNTERS of all ranks, or an empty table.
        view: the job.
        suspects: of any kind.
    """
    mean_mhz = by_rank(counters, _METRIC, "mean")
    if not mean_mhz:
        return list(suspects)
    return [_explained(mean_mhz, view, one) if _is_slow_device(one) else one for one in suspects]


def _is_slow_device(suspect: Suspect) -> bool:
    return suspect.kind in ("slow_rank", "slow_host") and suspect.cause == "compute"


def _explained(mean_mhz: dict[int, float], view: JobView, suspect: Suspect) -> Suspect:
    own = [mean_mhz[rank] for rank in suspect.ranks if rank in mean_mhz]
    if not own:
        return suspect
    roles = view.role[np.isin(view.ranks, suspect.ranks)]
    peers = view.ranks[np.isin(view.role, roles) & ~np.isin(view.ranks, suspect.ranks)]
    clock = beside(mean_mhz, float(np.median(own)), peers.tolist())
    if clock.n_others < FEWEST_PEERS:
        return suspect
    # At a lower clock the same work takes longer in proportion; a clock that is a little lower is no reason.
    time = suspect.evidence[0]
    slower = time.value / time.peers_median - 1.0
    needed = max(LEAST_EXCESS, HALFWAY * slower)
    if clock.others / clock.own - 1.0 < needed or clock.others - clock.own < CLEAR_SIGMAS * clock.scatter:
        return suspect
    row = Evidence(_METRIC, clock.own, clock.others, clock.scatter, clock.n_others)
    said = fact(
        "clock_below_peers",
        own_mhz=clock.own,
        peers_mhz=clock.others,
        lower_share=1.0 - clock.own / clock.others,
    )
    return replace(suspect, evidence=(*suspect.evidence, row), facts=(*suspect.facts, said))
