"""Which kernels of a slow device are slower than its peers': a hint at clock, power or memory.

Statistics of kernels sum over all steps of a capture, so that they explain a device and never accuse one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from cluster_analysis.judge.measures.steady import Kernels
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.stats import median, sigma
from cluster_analysis.thresholds.common import FEWEST_PEERS, HALFWAY, MOSTLY
from cluster_analysis.thresholds.devices import N_NAMED, SMALL_SHARE, STEADY_SIGMA
from cluster_run.facts import FindingFact, fact
from cluster_run.findings import Evidence

_MATRIX_CORES = ("AI_CORE", "AI_CUBE", "MIX_AIC", "AIC")


def with_kernels(kernels: Kernels | None, view: JobView, suspects: Sequence[Suspect]) -> list[Suspect]:
    """Return the suspects; slow devices with the kernels that are slower, where they were recorded."""
    return [
        one
        if kernels is None or (one.kind, one.cause) != ("slow_rank", "compute")
        else _explained(kernels, view, one)
        for one in suspects
    ]


def _explained(kernels: Kernels, view: JobView, suspect: Suspect) -> Suspect:
    """The suspect with the types that matter, and lose at least half as much as all of them do."""
    rank = view.position_of(suspect.ranks[0])
    own_us, peers_us = kernels.call_us[rank], kernels.call_us[view.peers_of(rank)]
    usual_us, n_peers = median(peers_us, 0), np.isfinite(peers_us).sum(axis=0)
    spent_us = kernels.spent_us[rank]
    matters = (spent_us >= SMALL_SHARE * spent_us.sum()) & (n_peers >= FEWEST_PEERS) & np.isfinite(own_us)
    with np.errstate(invalid="ignore"):
        expected_us = np.where(matters, spent_us * usual_us / own_us, 0.0)
    lost_us = np.where(matters, spent_us - expected_us, 0.0)
    expected, lost = float(expected_us.sum()), float(lost_us.sum())
    if not matters.any() or lost < HALFWAY * STEADY_SIGMA * expected:
        return suspect
    slow = np.flatnonzero(matters & (lost_us * expected >= HALFWAY * lost * expected_us))
    is_matrix = [kernels.types[one][1].upper().startswith(_MATRIX_CORES) for one in slow.tolist()]
    kind: FindingFact = "some_kernels"
    if expected_us[slow].sum() >= MOSTLY * expected:
        kind = "all_kernels"
    elif len(set(is_matrix)) == 1:
        kind = "matrix_kernels" if is_matrix[0] else "vector_kernels"
    named = slow[np.argsort(-lost_us[slow], kind="stable")][:N_NAMED].tolist()
    names = [kernels.types[one][0] for one in named]
    rows = [
        Evidence(
            f"kernel_{name}_us",
            float(own_us[one]), float(usual_us[one]), float(sigma(peers_us[:, one])), int(n_peers[one]),
        )
        for name, one in zip(names, named, strict=True)
    ]  # fmt: skip
    slower = tuple(
        (name, float(own_us[one] / usual_us[one] - 1.0)) for name, one in zip(names, named, strict=True)
    )
    return replace(
        suspect,
        evidence=(*suspect.evidence, *rows),
        facts=(*suspect.facts, fact(kind, kernels=slower)),
    )
