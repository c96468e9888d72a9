"""Changes between two runs of the same job, by rank, link, operator, part of the step, and finding.

Runs are compared place by place: the parts of the step by step, ranks within their role and operators by
kind. A rank's change is compared with that of its peers: a new version of the software changes all of
them, and must make no rank look worse. Noise bands come from the steps of both runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeGuard, get_args

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from cluster_analysis.judge.measures.deviation import longer_than_peers
from cluster_analysis.judge.measures.links import observe
from cluster_analysis.judge.measures.slow_units import Observations
from cluster_analysis.judge.view import JobView, build_view
from cluster_analysis.numeric.arrays import FloatArray, numbers
from cluster_analysis.numeric.stats import MEDIAN_SE, median, sigma
from cluster_analysis.replay.job_evidence import JobEvidence
from cluster_analysis.tables.model import Topology
from cluster_analysis.thresholds.common import FEWEST_PEERS
from cluster_analysis.thresholds.judging import BAND_SIGMAS, LEAST_CHANGE, RUN_TO_RUN_SHARE
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.facts import Fact, fact
from cluster_run.findings import Finding

Subject = Literal["step", "component", "rank", "link", "operator"]


class Change(Struct, frozen=True):
    """One quantity before and after, with the band that noise leaves around the change.

    `ranks` are the rank, or the sender and the receiver of the link of `transport`. `more_ms_per_step` is
    what a kind of kernel adds to the step of the mean rank, however often it is called.
    """

    what: Subject
    name: str
    metric: str
    before: float
    after: float
    change_share: float
    low_share: float
    high_share: float
    is_certain: bool
    ranks: tuple[int, ...] = ()
    transport: str = ""
    more_ms_per_step: float | None = None


class Matched(Struct, frozen=True):
    """A finding of the older run, of the newer one, or of both; never of neither."""

    before: Finding | None
    after: Finding | None

    @property
    def state(self) -> Literal["fixed", "still", "new"]:
        """Its state in the newer run."""
        return "fixed" if self.after is None else "still" if self.before is not None else "new"

    @property
    def finding(self) -> Finding:
        """The finding as it is now, or was."""
        found = self.after or self.before
        assert found is not None
        return found


class Comparison(Struct, frozen=True):
    """All changes, certain and large ones first. `refusals` are why nothing can be compared."""

    changes: tuple[Change, ...]
    refusals: tuple[Fact, ...]
    findings: tuple[Matched, ...] = ()


def compare(
    before: JobEvidence, before_topology: Topology, after: JobEvidence, after_topology: Topology
) -> Comparison:
    """Compare two runs; what cannot be compared is refused with a reason, not guessed."""
    refusals = _refusals(before, before_topology, after, after_topology)
    if refusals:
        return Comparison((), tuple(refusals))
    limits = Thresholds()
    old, new = build_view(before, before_topology), build_view(after, after_topology)
    seen = observe(before, before_topology, limits), observe(after, after_topology, limits)
    changes = [
        *_parts_of_step(old, new),
        *_ranks(old, new, limits),
        *_links(*seen, limits),
        *_operators(before, after),
    ]
    changes.sort(
        key=lambda one: (not one.is_certain, _ORDER.index(one.what), -abs(one.change_share), one.name)
    )
    return Comparison(tuple(changes), tuple(refusals))


_ORDER: tuple[Subject, ...] = get_args(Subject)


def _refusals(
    before: JobEvidence, before_topology: Topology, after: JobEvidence, after_topology: Topology
) -> list[Fact]:
    found = []
    if before_topology.parallel != after_topology.parallel:
        before_sizes, after_sizes = _sizes(before_topology), _sizes(after_topology)
        found.append(fact("laid_out_differently", before=before_sizes, after=after_sizes))
    elif len(before_topology.ranks) != (n_ranks := len(after_topology.ranks)):
        found.append(fact("other_number_of_ranks", before=len(before_topology.ranks), after=n_ranks))
    if not before.step_table.num_rows:
        found.append(fact("first_without_steps"))
    if not after.step_table.num_rows:
        found.append(fact("second_without_steps"))
    return found


def _sizes(topology: Topology) -> str:
    """The degrees of parallelism as the field writes them: TP 4 × PP 2 × DP 8."""
    sizes = {name.upper(): size for name, size in topology.parallel._asdict().items() if size}
    return " × ".join(f"{name} {size}" for name, size in sizes.items()) or "-"


def _parts_of_step(old: JobView, new: JobView) -> Iterable[Change]:
    pairs = (
        ("step", "step", old.step_us, new.step_us),
        ("component", "computing", old.computing_us, new.computing_us),
        ("component", "free", old.free_us, new.free_us),
        ("component", "preparing", old.preparing_us, new.preparing_us),
        ("component", "communication", old.communication_us, new.communication_us),
    )
    for what, name, first, second in pairs:
        one, other = median(first, 0), median(second, 0)
        change = _change(what, name, f"{name}_us", one, other)  # type: ignore[arg-type]
        if change is not None:
            yield _of_means(change, first, second)


def _of_means(change: Change, old: FloatArray, new: FloatArray) -> Change:
    """Give the means over the steps, which all reports tell, with the band that the steps' medians have."""
    before, after = (float(np.nanmean(median(one, 0))) for one in (old, new))
    if before <= 0:
        return change
    share = after / before - 1.0
    low, high = (one + share - change.change_share for one in (change.low_share, change.high_share))
    return replace(
        change,
        before=before,
        after=after,
        change_share=share,
        low_share=low,
        high_share=high,
        is_certain=change.is_certain and low * high > 0 and low * change.low_share > 0,
    )


def _ranks(old: JobView, new: JobView, limits: Thresholds) -> Iterable[Change]:
    """Ranks whose computing changed relative to their peers: differences of logarithms, role by role."""
    shared, rows_old, rows_new = np.intersect1d(old.ranks, new.ranks, return_indices=True)
    first, second = (longer_than_peers(one.computing_us, one) for one in (old, new))
    first, second = first[rows_old], second[rows_new]
    # Another run may be on other devices, and healthy ones differ: that scatter is no change of one rank.
    scatter = float(np.nan_to_num(sigma(median(second, 1) - median(first, 1))))
    for rank, before, after in zip(shared.tolist(), np.exp(first), np.exp(second), strict=True):
        change = _change("rank", f"rank {rank}", "computing_beside_peers_ratio", before, after, scatter)
        if _is_sure(change, limits.device_effect):
            yield replace(change, ranks=(rank,))


def _links(before: Observations | None, after: Observations | None, limits: Thresholds) -> Iterable[Change]:
    """Links whose time relative to their class changed, of those with enough observations in both runs."""
    if before is None or after is None:
        return
    first, second = _by_link(before), _by_link(after)
    for link in sorted(first.keys() & second.keys()):
        one, other = np.array(first[link]), np.array(second[link])
        if min(len(one), len(other)) < FEWEST_PEERS:
            continue
        src, dst, transport = link
        change = _change("link", f"{transport} {src} to {dst}", "time_beside_class_ratio", one, other)
        if _is_sure(change, limits.link_effect):
            yield replace(change, ranks=(src, dst), transport=transport)


def _by_link(seen: Observations) -> dict[tuple[int, int, str], list[float]]:
    """Time of each observation of a link, as a multiple of its class's."""
    found: dict[tuple[int, int, str], list[float]] = {}
    for unit, ratio in zip(seen.unit.tolist(), np.exp(seen.excess).tolist(), strict=True):
        if np.isfinite(ratio):
            src, dst = seen.members[unit]
            found.setdefault((src, dst, seen.transport[unit]), []).append(ratio)
    return found


def _operators(before: JobEvidence, after: JobEvidence) -> Iterable[Change]:
    """Kinds of kernels whose mean call changed, over the ranks that have them in both runs."""
    first, second = _by_kind(before.operators), _by_kind(after.operators)
    for kind in sorted(first.keys() & second.keys()):
        one, other = np.array(first[kind]), np.array(second[kind])
        change = _change("operator", kind, "mean_call_us", one, other)
        if _is_sure(change):
            more_us = _a_step(after, kind) - _a_step(before, kind)
            yield replace(change, more_ms_per_step=round(more_us / 1e3, 3))


def _a_step(evidence: JobEvidence, kind: str) -> float:
    """Time of a kind of kernel in the step of the mean rank, in µs."""
    operators = evidence.operators
    total_us = numbers(operators["total_us"])[np.asarray(operators["op_type"].cast("string")) == kind]
    n_ranks = len(np.unique(operators["rank"].to_numpy()))
    return float(total_us.sum()) / max(n_ranks * len(evidence.steps), 1)


def _by_kind(operators: pa.Table) -> dict[str, list[float]]:
    """The mean call of each kind of kernel on each rank, in µs."""
    mean_us = numbers(operators["total_us"]) / np.maximum(numbers(operators["n_calls"]), 1.0)
    found: dict[str, list[float]] = {}
    for kind, us in zip(operators["op_type"].cast("string").to_pylist(), mean_us.tolist(), strict=True):
        found.setdefault(kind or "", []).append(us)
    return found


def _is_sure(change: Change | None, least_share: float = 0.0) -> TypeGuard[Change]:
    """Whether it is certain, and large enough to matter there."""
    return change is not None and change.is_certain and abs(change.change_share) >= least_share


def _change(
    what: Subject, name: str, metric: str, before: FloatArray, after: FloatArray, scatter: float = 0.0
) -> Change | None:
    """Relative change of the medians; the band from the scatter of both samples, and what else is given."""
    one, other = float(median(before)), float(median(after))
    if not (np.isfinite(one) and np.isfinite(other)) or one <= 0:
        return None
    share = other / one - 1.0
    errors = [
        MEDIAN_SE
        * float(np.nan_to_num(sigma(sample)))
        / middle
        / np.sqrt(max(int(np.isfinite(sample).sum()), 1))
        for sample, middle in ((before, one), (after, other))
        if middle > 0
    ]
    width = BAND_SIGMAS * float(np.linalg.norm([*errors, RUN_TO_RUN_SHARE, scatter]))
    is_seen_twice = min(int(np.isfinite(sample).sum()) for sample in (before, after)) > 1
    certain = abs(share) > width and abs(share) >= LEAST_CHANGE and is_seen_twice
    return Change(what, name, metric, one, other, share, share - width, share + width, certain)


def match_findings(before: Iterable[Finding], after: Iterable[Finding]) -> tuple[Matched, ...]:
    """Match the alarms of either run: new and remaining ones by their cost now, then those that are gone.

    A finding is the same by its id, or by its kind where it names some of the same ranks: a link may be named
    from one end or the other. Information in one run matches an alarm in the other.
    """
    old, new = list(before), list(after)
    pairs = []
    for finding in new:
        partner = _partner(finding, old)
        if partner is not None:
            old.remove(partner)
        if finding.is_alarm or (partner is not None and partner.is_alarm):
            pairs.append(Matched(partner, finding))
    gone = [Matched(finding, None) for finding in old if finding.is_alarm]
    return (*pairs, *gone)


def _partner(finding: Finding, candidates: Sequence[Finding]) -> Finding | None:
    alike = [one for one in candidates if one.kind == finding.kind]
    by_id = [one for one in alike if one.id == finding.id]
    by_place = [
        one for one in alike if set(one.ranks) & set(finding.ranks) and set(one.hosts) == set(finding.hosts)
    ]
    # The workload's own findings name the whole job: there is one of a kind.
    is_whole = not finding.record.is_fault
    return next(iter((*by_id, *by_place, *(alike if is_whole else ()))), None)
