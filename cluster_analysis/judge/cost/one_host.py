"""Hosts that no pattern names: a host costs no more than what its devices idle longer than others."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from cluster_analysis.judge.measures.deviation import relative_to_other_hosts
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import BoolArray, FloatArray
from cluster_run.ids import Rank


class IdleHosts(Struct, frozen=True):
    """How much longer than others each rank idles, µs (R, S), and whether any does the same work (R,).

    In a job of one host each rank of `view` is a host of its own.
    """

    view: JobView
    longer_us: FloatArray
    has_peers: BoolArray

    def late(self, least_us: float, n_most: int) -> list[Suspect]:
        """Return at most `n_most` hosts: those with a rank that idles `least_us` longer in the mean step."""
        host = self.view.host
        most_us = {
            one: float(self.longer_us[host == one].max(axis=0).mean())
            for one in np.unique(host[host >= 0]).tolist()
        }
        chosen = sorted(most_us, key=lambda one: -most_us[one])[:n_most]
        return [self._suspect(host == one) for one in chosen if most_us[one] >= least_us]

    def of(self, ranks: tuple[Rank, ...]) -> Suspect | None:
        """Return the host that has these ranks and no others, if there is one."""
        own = np.isin(self.view.ranks, ranks)
        inside = np.isin(self.view.host, np.unique(self.view.host[own]))
        return self._suspect(own) if own.any() and (own == inside).all() else None

    def _suspect(self, own: BoolArray) -> Suspect:
        return Suspect(
            "idle", "slow_host", (), ranks=self.view.rank_ids(np.flatnonzero(own)), cause="dispatch",
            excess_us=np.where(own[:, None], self.longer_us, 0.0),
            separable=bool(self.has_peers[own].all()),
        )  # fmt: skip


def idle_hosts(view: JobView) -> IdleHosts:
    """Compare each rank with those of its role on other hosts.

    Idle time follows neither stages nor samples, so where a host holds a whole role it is compared with all
    ranks of other hosts; then no peer shows in which gaps it idles.
    """
    if len(view.hosts) < 2:
        view = replace(view, host=np.arange(len(view.ranks), dtype=np.int32))
    idle_us = np.nan_to_num(view.likely_idle_us)
    of_role = relative_to_other_hosts(idle_us, view)
    of_all = relative_to_other_hosts(idle_us, replace(view, role=np.zeros_like(view.role)))
    has_peers = np.asarray(np.isfinite(of_role).any(axis=1))
    longer_us = np.maximum(np.nan_to_num(np.where(has_peers[:, None], of_role, of_all)), 0.0)
    return IdleHosts(view, longer_us, has_peers)
