"""Healthy peers to open for comparison with a finding's ranks: those that are nearest in number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cluster_analysis.judge.view import JobView
from cluster_analysis.thresholds.cost import N_PEERS_NAMED
from cluster_run.findings import Finding
from cluster_run.ids import Rank


def with_peers(findings: Sequence[Finding], view: JobView) -> list[Finding]:
    """Give each finding that names ranks or links some peers of the first rank, which no alarm names."""
    accused = {rank for one in findings if one.is_alarm for rank in _named(one)}
    return [replace(one, peers=_peers(one, view, accused)) for one in findings]


def _named(finding: Finding) -> tuple[Rank, ...]:
    ends = (end for link in finding.links for end in (link.src, link.dst))
    return finding.ranks or tuple(dict.fromkeys(ends))


def _peers(finding: Finding, view: JobView, accused: set[Rank]) -> tuple[Rank, ...]:
    named = _named(finding)
    places = np.flatnonzero(view.ranks == named[0]) if named else np.empty(0, np.int64)
    if not len(places):
        return ()
    others = [
        rank
        for rank in view.rank_ids(view.peers_of(int(places[0])))
        if rank not in accused and rank not in named
    ]
    nearest = sorted(others, key=lambda rank: (abs(rank - named[0]), rank))
    return tuple(sorted(nearest[:N_PEERS_NAMED]))
