"""Evidence on suspects beyond the measure that found them: kernels, clocks, retries.

A counter of a suspect is compared with the same counter of others: a low clock explains why a device is slow,
operators that HCCL had to repeat (`retry`) and what network cards count confirm that packets were lost, and
the best bandwidth of a port confirms that it is slow. Which kernels of a device are slower hints at clock,
power or memory. Statistics of kernels sum over all steps, so that they explain a device and accuse none.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from cluster_analysis.judge.measures.counters import by_rank
from cluster_analysis.judge.measures.steady import Kernels
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.numeric.stats import median, sigma
from cluster_analysis.tables.schema import CARD_COUNTERS
from cluster_analysis.thresholds.common import CLEAR_SIGMAS, FEWEST_PEERS, HALFWAY, MOSTLY
from cluster_analysis.thresholds.judging import N_NAMED, SMALL_SHARE, STEADY_SIGMA
from cluster_run.facts import Fact, fact
from cluster_run.findings import Evidence

_CLOCK = "aicore_frequency_mhz"
_RETRIES = "retry_operators_count"
#: The first that stands out is reported: lost packets before congestion.
_OF_CARDS = sorted(CARD_COUNTERS, key=lambda name: "congestion" in name)
#: The counter of ports for each transport.
_OF_PORTS = {
    "HCCS": "hccs_peak_bytes_per_s",
    "UB": "ub_peak_bytes_per_s",
    "UBOE": "ub_peak_bytes_per_s",
    "SIO": "sio_peak_bytes_per_s",
}


def with_counters(counters: pa.Table, view: JobView, suspects: Sequence[Suspect]) -> list[Suspect]:
    """Return the suspects; those that a counter explains or confirms get that evidence and a fact.

    Args:
        counters: COUNTERS of all ranks, or an empty table.
        suspects: of any kind.
    """
    clocks_mhz = by_rank(counters, _CLOCK, "mean")
    known = set(counters["metric"].unique().to_pylist())
    n_retries = {_RETRIES: by_rank(counters, _RETRIES)}
    of_cards = {one: by_rank(counters, one, None, operator.add) for one in _OF_CARDS if one in known}
    of_ports = {one: by_rank(counters, one, None, min) for one in set(_OF_PORTS.values()) & known}
    explained = []
    for one in suspects:
        clocked = _with_clock(clocks_mhz, view, one)
        counted = _with_counts(of_cards, view, _with_counts(n_retries, view, clocked))
        explained.append(_with_ports(of_ports, view, counted))
    return explained


def _with_clock(clocks_mhz: Mapping[int, float], view: JobView, suspect: Suspect) -> Suspect:
    """At a lower clock the same work takes longer in proportion; a little lower is no reason."""
    if suspect.record.part != "slow_devices" or suspect.cause != "compute":
        return suspect
    inside = np.isin(view.ranks, suspect.ranks)
    peers = view.ranks[np.isin(view.role, view.role[inside]) & ~inside]
    own = _known(clocks_mhz, suspect.ranks)
    row = _row(_CLOCK, float(np.median(own)) if len(own) else np.nan, _known(clocks_mhz, peers.tolist()))
    if row is None or not row.peers_median > 0:
        return suspect
    needed = HALFWAY * max(STEADY_SIGMA, suspect.evidence[0].beyond_share)
    below = row.peers_median - row.value
    if below < needed * row.value or below < CLEAR_SIGMAS * row.peers_mad:
        return suspect
    lower = 1.0 - row.value / row.peers_median
    said = fact("clock_below_peers", own_mhz=row.value, peers_mhz=row.peers_median, lower_share=lower)
    return _explained(suspect, [row], said)


def _ends(view: JobView, suspect: Suspect) -> tuple[set[int], set[int]]:
    """Return the ranks at the suspect's links, else its own; and those that have no part in it."""
    ends: set[int] = {rank for link in suspect.links for rank in (link.src, link.dst)} or set(suspect.ranks)
    return ends, set(view.ranks.tolist()) - set(suspect.ranks) - ends


def _with_counts(counted: Mapping[str, Mapping[int, float]], view: JobView, suspect: Suspect) -> Suspect:
    """The first counter that is higher on one end of the suspect than on ranks without a part in it.

    HCCL repeats operators between hosts only: inside a host no counter can confirm anything.
    """
    reaches_others = any(link.transport.upper() == "RDMA" for link in suspect.links) or not suspect.links
    if suspect.record.subject not in ("link", "nic") or not reaches_others:
        return suspect
    ends, others = _ends(view, suspect)
    for metric, values in counted.items():
        rank = max(sorted(ends & values.keys()), key=lambda one: values[one], default=-1)
        row = _row(metric, values.get(rank, np.nan), _known(values, others))
        if row is not None and row.value > row.peers_median + CLEAR_SIGMAS * row.peers_mad:
            count, usual = round(row.value), row.peers_median
            said = fact("card_counted", metric=metric, own_rank=rank, n_counted=count, others=usual)
            if metric == _RETRIES:
                said = fact("sent_again", own_rank=rank, n_retries=count, others=usual)
            return _explained(suspect, [row], said)
    return suspect


def _with_ports(of_ports: Mapping[str, Mapping[int, float]], view: JobView, suspect: Suspect) -> Suspect:
    """The end of the suspect's links whose slowest port had a peak bandwidth clearly below that of others."""
    transport = suspect.links[0].transport if suspect.links else ""
    peaks = of_ports.get(_OF_PORTS.get(transport.upper(), ""))
    if not suspect.record.is_fault or not peaks:
        return suspect
    ends, others = _ends(view, suspect)
    rank = min(sorted(ends & peaks.keys()), key=lambda one: peaks[one], default=-1)
    row = _row(_OF_PORTS[transport.upper()], peaks.get(rank, np.nan), _known(peaks, others))
    if row is None:
        return suspect
    below = row.peers_median - row.value
    if below <= CLEAR_SIGMAS * max(row.peers_mad, STEADY_SIGMA * row.peers_median):
        return suspect
    lower = below / row.peers_median
    said = fact("port_below_peers", transport=transport, own_rank=rank, lower_share=lower)
    return _explained(suspect, [row], said)


def _known(values: Mapping[int, float], ranks: Iterable[int]) -> FloatArray:
    return np.array([values[rank] for rank in sorted(ranks) if rank in values])


def _row(metric: str, own: float, others: FloatArray) -> Evidence | None:
    """A suspect's counter compared with that of others; None where either is not known."""
    if not np.isfinite(own) or len(others) < FEWEST_PEERS:
        return None
    return Evidence(metric, own, float(median(others)), float(sigma(others)), len(others))


def _explained(suspect: Suspect, rows: Sequence[Evidence], said: Fact) -> Suspect:
    return replace(suspect, evidence=(*suspect.evidence, *rows), facts=(*suspect.facts, said))


_MATRIX_CORES = ("AI_CORE", "AI_CUBE", "MIX_AIC", "AIC")


def with_kernels(kernels: Kernels | None, view: JobView, suspects: Sequence[Suspect]) -> list[Suspect]:
    """Return the suspects; slow devices with the kernels that are slower, where they were recorded."""
    return list(suspects) if kernels is None else [_with_slow_kernels(kernels, view, one) for one in suspects]


def _with_slow_kernels(kernels: Kernels, view: JobView, suspect: Suspect) -> Suspect:
    """A slow device with the types that matter, and lose at least half as much as all of them do."""
    if (suspect.record.subject, suspect.record.part, suspect.cause) != ("rank", "slow_devices", "compute"):
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
    kind = "some_kernels"
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
    return _explained(suspect, rows, said)
