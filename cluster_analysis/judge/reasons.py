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

from cluster_analysis.judge.measures.counters import by_rank, over_labels
from cluster_analysis.judge.measures.steady import Kernels
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.numeric.stats import median, sigma
from cluster_analysis.thresholds.common import CLEAR_SIGMAS, FEWEST_PEERS, HALFWAY, MOSTLY
from cluster_analysis.thresholds.devices import N_NAMED, SMALL_SHARE, STEADY_SIGMA
from cluster_run.facts import Fact, FindingFact, fact
from cluster_run.findings import Evidence

_CLOCK = "aicore_frequency_mhz"
_RETRIES = "retry_operators_count"
#: Counters of network cards. The first that stands out is reported: lost packets before congestion.
_OF_CARDS = (
    "roce_resent_packets_count",
    "roce_bad_packets_count",
    "nic_errors_count",
    "nic_dropped_count",
    "mac_pause_frames_count",
    "roce_congestion_packets_count",
)
#: The counter of ports for each transport.
_OF_PORTS = {
    "HCCS": "hccs_peak_bytes_per_s",
    "UB": "ub_peak_bytes_per_s",
    "UBOE": "ub_peak_bytes_per_s",
    "SIO": "sio_peak_bytes_per_s",
}


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
    known = set(counters["metric"].unique().to_pylist())
    of_cards = {one: over_labels(counters, one, operator.add) for one in _OF_CARDS if one in known}
    if of_cards:
        explained = [_with_cards(of_cards, view, one) for one in explained]
    of_ports = {one: over_labels(counters, one, min) for one in set(_OF_PORTS.values()) & known}
    if of_ports:
        explained = [_with_ports(of_ports, view, one) for one in explained]
    return explained


def _with_clock(clocks_mhz: Mapping[int, float], view: JobView, suspect: Suspect) -> Suspect:
    """At a lower clock the same work takes longer in proportion; a little lower is no reason."""
    if suspect.record.part != "slow_devices" or suspect.cause != "compute":
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
    """The end of the suspect's links, or its rank, with most retries, against all that have no part in it."""
    if not _may_lose_packets(suspect):
        return suspect
    ends, others = _ends(view, suspect)
    rank = max(sorted(ends & n_retries.keys()), key=lambda one: n_retries[one], default=-1)
    row = _row(_RETRIES, n_retries.get(rank, np.nan), _known(n_retries, others))
    if row is None or row.value <= row.peers_median + CLEAR_SIGMAS * row.peers_mad:
        return suspect
    said = fact("sent_again", own_rank=rank, n_retries=round(row.value), others=row.peers_median)
    return _explained(suspect, row, said)


def _ends(view: JobView, suspect: Suspect) -> tuple[set[int], set[int]]:
    """Return the ranks at the suspect's links, else its own; and those that have no part in it."""
    ends: set[int] = {rank for link in suspect.links for rank in (link.src, link.dst)} or set(suspect.ranks)
    return ends, set(view.ranks.tolist()) - set(suspect.ranks) - ends


def _with_cards(of_cards: Mapping[str, Mapping[int, float]], view: JobView, suspect: Suspect) -> Suspect:
    """The first counter of cards that one end of the suspect has more of than those without a part."""
    if not _may_lose_packets(suspect):
        return suspect
    ends, others = _ends(view, suspect)
    for metric, counted in of_cards.items():
        rank = max(sorted(ends & counted.keys()), key=lambda one: counted[one], default=-1)
        row = _row(metric, counted.get(rank, np.nan), _known(counted, others))
        if row is not None and row.value > row.peers_median + CLEAR_SIGMAS * row.peers_mad:
            n_counted = round(row.value)
            said = fact(
                "card_counted", metric=metric, own_rank=rank, n_counted=n_counted, others=row.peers_median
            )
            return _explained(suspect, row, said)
    return suspect


def _with_ports(of_ports: Mapping[str, Mapping[int, float]], view: JobView, suspect: Suspect) -> Suspect:
    """The end of the suspect's links whose slowest port was, at its best, clearly below those of others."""
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
    return _explained(
        suspect, row, fact("port_below_peers", transport=transport, own_rank=rank, lower_share=lower)
    )


def _may_lose_packets(suspect: Suspect) -> bool:
    """HCCL repeats operators between hosts only: inside a host no counter can confirm anything."""
    return suspect.record.subject in ("link", "nic") and (
        not suspect.links or any(link.transport.upper() == "RDMA" for link in suspect.links)
    )


def _known(values: Mapping[int, float], ranks: Iterable[int]) -> FloatArray:
    return np.array([values[rank] for rank in sorted(ranks) if rank in values])


def _row(metric: str, own: float, others: FloatArray) -> Evidence | None:
    """A suspect's counter compared with that of others; None where either is not known."""
    if not np.isfinite(own) or len(others) < FEWEST_PEERS:
        return None
    return Evidence(metric, own, float(median(others)), float(sigma(others)), len(others))


def _explained(suspect: Suspect, row: Evidence, said: Fact) -> Suspect:
    return replace(suspect, evidence=(*suspect.evidence, row), facts=(*suspect.facts, said))


_MATRIX_CORES = ("AI_CORE", "AI_CUBE", "MIX_AIC", "AIC")


def with_kernels(kernels: Kernels | None, view: JobView, suspects: Sequence[Suspect]) -> list[Suspect]:
    """Return the suspects; slow devices with the kernels that are slower, where they were recorded."""
    return list(suspects) if kernels is None else [_with_slow_kernels(kernels, view, one) for one in suspects]


def _with_slow_kernels(kernels: Kernels, view: JobView, suspect: Suspect) -> Suspect:
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
