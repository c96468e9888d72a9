"""Which kernels of a slow device are slower than its peers': a hint at clock, power or memory.

Statistics of kernels sum over all steps of a capture, so that they explain a device and never accuse one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.stats import median, sigma
from cluster_analysis.thresholds.common import FEWEST_PEERS, HALFWAY, MOSTLY, TOLERANCE_SHARE
from cluster_analysis.thresholds.devices import (
    N_NAMED,
    SMALL_SHARE,
    STEADY_SIGMA,
)
from cluster_analysis.trace.calls import codes, numbers
from cluster_run.facts import Fact, FindingFact, fact
from cluster_run.findings import Evidence

_MATRIX_CORES = ("AI_CORE", "AI_CUBE", "MIX_AIC", "AIC")


class _Kind(Struct, frozen=True):
    """One kind of kernel on the suspect and its peers: mean time of a call, calls."""

    name: str
    is_matrix: bool
    own_us: float
    peers_us: float
    scatter_us: float
    n_calls: int
    n_peers: int

    @property
    def excess(self) -> float:
        """Relative to the peers."""
        return self.own_us / self.peers_us - 1.0


def with_kernels(operators: pa.Table, view: JobView, suspects: Sequence[Suspect]) -> list[Suspect]:
    """Return the suspects; slow devices with the kernels that are slower, where they were recorded.

    Args:
        operators: OPERATORS of all ranks, or an empty table.
        view: the job.
        suspects: of any kind.
    """
    if not operators.num_rows:
        return list(suspects)
    return [
        _explained(operators, view, one) if (one.kind, one.cause) == ("slow_rank", "compute") else one
        for one in suspects
    ]


def _explained(operators: pa.Table, view: JobView, suspect: Suspect) -> Suspect:
    rank = int(suspect.ranks[0])
    peers = view.ranks[view.peers_of(view.position_of(rank))]
    kinds = _kinds(operators, rank, peers)
    expected = sum(kind.n_calls * kind.peers_us for kind in kinds)
    lost = sum(kind.n_calls * (kind.own_us - kind.peers_us) for kind in kinds)
    if not kinds or lost < HALFWAY * STEADY_SIGMA * expected:
        return suspect
    slow = [kind for kind in kinds if kind.excess >= HALFWAY * lost / expected]
    slow.sort(key=lambda kind: (-kind.n_calls * (kind.own_us - kind.peers_us), kind.name))
    rows = tuple(
        Evidence(f"kernel_{kind.name}_us", kind.own_us, kind.peers_us, kind.scatter_us, kind.n_peers)
        for kind in slow[:N_NAMED]
    )
    share = sum(kind.n_calls * kind.peers_us for kind in slow) / expected
    return replace(
        suspect,
        evidence=(*suspect.evidence, *rows),
        facts=(*suspect.facts, _hint(slow, is_all=share >= MOSTLY)),
    )


def _hint(slow: list[_Kind], *, is_all: bool) -> Fact:
    kind: FindingFact = "some_kernels"
    if is_all:
        kind = "all_kernels"
    elif all(one.is_matrix for one in slow):
        kind = "matrix_kernels"
    elif not any(one.is_matrix for one in slow):
        kind = "vector_kernels"
    return fact(kind, kernels=tuple((one.name, one.excess) for one in slow[:N_NAMED]))


def _kinds(operators: pa.Table, rank: int, peers: IntArray) -> list[_Kind]:
    """Return the kinds that matter, with at least three peers that call them as often."""
    ranks = operators["rank"].to_numpy()
    keep = (ranks == rank) | np.isin(ranks, peers)
    table = operators.filter(pa.array(keep))
    ranks = ranks[keep]
    names, kind = codes(table["op_type"])
    cores, core = codes(table["core_type"])
    n_calls, total = numbers(table["n_calls"]), numbers(table["total_us"])
    mine = np.flatnonzero((ranks == rank) & (n_calls > 0))
    found = []
    for row in mine[total[mine] >= SMALL_SHARE * np.nansum(total[mine])].tolist():
        others = (kind == kind[row]) & (core == core[row]) & (ranks != rank) & _as_often(n_calls, row)
        if int(others.sum()) < FEWEST_PEERS:
            continue
        times: FloatArray = total[others] / n_calls[others]
        found.append(
            _Kind(
                names[kind[row]],
                cores[core[row]].upper().startswith(_MATRIX_CORES),
                float(total[row] / n_calls[row]),
                float(median(times)),
                float(sigma(times)),
                int(n_calls[row]),
                len(times),
            )
        )
    return [one for one in found if one.peers_us > 0]


def _as_often(n_calls: FloatArray, row: int) -> BoolArray:
    """Other numbers of calls are other work, or other shapes."""
    return np.asarray(np.abs(n_calls - n_calls[row]) <= TOLERANCE_SHARE * n_calls[row])
