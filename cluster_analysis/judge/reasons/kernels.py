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
    return list(suspects) if kernels is None else [_explained(kernels, view, one) for one in suspects]


def _explained(kernels: Kernels, view: JobView, suspect: Suspect) -> Suspect:
    """A slow device with the types that matter, and lose at least half as much as all of them do."""
    if not suspect.is_slow_device:
        return suspect
    rank = view.position_of(suspect.ranks[0])
    own_us, peers_us = kernels.call_us[rank], kernels.call_us[view.peers_of(rank)]
    usual_us, n_peers = median(peers_us, 0), np.isfinite(peers_us).sum(axis=0)
    spent_us = kernels.spent_us[rank]
    matters = (spent_us >= SMALL_SHARE * spent_us.sum()) & (n_peers >= FEWEST_PEERS) & np.isfinite(own_us)
    longer = np.where(matters, own_us / usual_us - 1.0, 0.0)
    expected_us = np.where(matters, spent_us / (1.0 + longer), 0.0)
    of_all = float(longer @ expected_us) / max(float(expected_us.sum()), 1e-9)
    if of_all < HALFWAY * STEADY_SIGMA:
        return suspect
    slow = np.flatnonzero(matters & (longer >= HALFWAY * of_all))
    is_matrix = [kernels.types[one][1].upper().startswith(_MATRIX_CORES) for one in slow.tolist()]
    kind: FindingFact = "some_kernels"
    if expected_us[slow].sum() >= MOSTLY * expected_us.sum():
        kind = "all_kernels"
    elif len(set(is_matrix)) == 1:
        kind = "matrix_kernels" if is_matrix[0] else "vector_kernels"
    named = slow[np.argsort(-(longer * expected_us)[slow], kind="stable")][:N_NAMED].tolist()
    rows = [
        Evidence(
            f"kernel_{kernels.types[one][0]}_us",
            float(own_us[one]), float(usual_us[one]), float(sigma(peers_us[:, one])), int(n_peers[one]),
        )
        for one in named
    ]  # fmt: skip
    said = fact(kind, kernels=tuple((kernels.types[one][0], float(longer[one])) for one in named))
    return replace(suspect, evidence=(*suspect.evidence, *rows), facts=(*suspect.facts, said))
