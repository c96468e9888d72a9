"""Retransmission: single operators that last many times as long as all others of their kind.

A lost packet makes an RDMA connection wait for its timer, seconds as configured by default. It is an
event, not a property of the link's bandwidth, which the other operators show to be in order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.measures.slow_units import Observations, beyond_class
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import IntArray
from cluster_analysis.numeric.sorting import half_octaves
from cluster_analysis.numeric.stats import median, sigma
from cluster_run.facts import fact
from cluster_run.findings import Evidence, Link
from cluster_run.ids import HostId, Rank


@dataclass(frozen=True)
class _Stalled:
    """Ranks whose operators (positions) are events, and the link whose entry shows that, if one does."""

    ranks: tuple[int, ...]
    operators: IntArray
    links: tuple[Link, ...]


def detect(case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give operators that lasted far too long.

    Groups that stood still in the same steps, and have a host in common, are one event: mended one by one
    they save nothing, as each waits for the other.
    """
    graph, limits = case.view.graph, case.limits
    if graph is None or not (graph.transfer_us > limits.retransmission_us).any():
        return
    seen = case.operators
    assert seen is not None
    # A group of which all operators last long has slow links and no event.
    alike = seen.kind, half_octaves(seen.size_bytes), seen.unit
    own = beyond_class(np.arange(len(seen.unit)), alike, np.log(seen.time_us), limits.link_effect)
    seen = replace(seen, excess=np.fmin(seen.excess, own))
    hit = seen.are_events(limits)
    by_steps: dict[tuple[int, ...], list[_Stalled]] = {}
    for team in np.unique(seen.unit[hit]).tolist():
        operators = np.flatnonzero(hit & (seen.unit == team))
        steps = tuple(np.unique(seen.step[operators]).tolist())
        links = _links_of(case, graph.groups[graph.operator_group[operators[0]]], steps)
        # The shortest part of a collective is no wait, a message's may be: its link must show the event.
        if seen.is_group[team] or links or case.links is None:
            by_steps.setdefault(steps, []).append(_Stalled(seen.members[team], operators, links))
    for steps, stalled in by_steps.items():
        for together in _of_one_cause(stalled, case.view.topology.hosts):
            yield _suspect(case.view, seen, together, steps)


def _links_of(case: Case, group: str, steps: Sequence[int]) -> tuple[Link, ...]:
    """The slowest link of a group's operators in these steps, if its entry shows the event."""
    if case.links is None:
        return ()
    seen = case.links
    is_own = (np.array(seen.groups) == group)[seen.group] & np.isin(seen.step, steps)
    at = np.flatnonzero(is_own & seen.are_events(case.limits))
    if not len(at):
        return ()
    unit = int(seen.unit[at[np.argmax(seen.time_us[at])]])
    src, dst = seen.members[unit]
    return (Link(Rank(src), Rank(dst), seen.transport[unit]),)


def _of_one_cause(stalled: Iterable[_Stalled], host_of: Mapping[Rank, HostId]) -> Iterator[list[_Stalled]]:
    """Those that share a host, or a rank whose host is not known: the most first."""
    left = {one.ranks: one for one in stalled}
    while left:
        where = {ranks: {host_of.get(Rank(rank), rank) for rank in ranks} for ranks in left}
        shared = Counter(place for places in where.values() for place in places).most_common(1)[0][0]
        yield [left.pop(ranks) for ranks, places in where.items() if shared in places]


def _suspect(view: JobView, seen: Observations, stalled: list[_Stalled], steps: tuple[int, ...]) -> Suspect:
    """The suspect of what stood still together in some steps."""
    operators = np.concatenate([one.operators for one in stalled])
    links = tuple(dict.fromkeys(link for one in stalled for link in one.links))
    ranks = tuple(sorted({Rank(rank) for one in stalled for rank in one.ranks}))
    factor = np.ones(len(seen.unit))
    factor[operators] = np.exp(-seen.excess[operators])
    worst = int(operators[np.argmax(seen.time_us[operators])])
    alike = seen.kind == seen.kind[worst]
    took = float(seen.time_us[worst])
    usual, kind = took * float(factor[worst]), seen.kinds[seen.kind[worst]]
    long = {"n_operators": len(operators), "op_type": kind, "took_us": took, "usual_us": usual}
    if len(links) == 1:
        one, other = links[0].src, links[0].dst
        said = fact("operators_took_long_between", **long, src=one, dst=other)
    else:
        one, other = ranks[0], ranks[-1]
        said = fact("operators_took_long", **long, first=one, last=other)
    # Inside a host no network is between ranks.
    is_inside = all(len(view.hosts_of_ranks(one.ranks)) == 1 for one in stalled)
    facts = [said, fact("host_link_stopped" if is_inside else "packets_lost")]
    if len(stalled) > 1:
        facts.append(fact("stood_still_together", n_groups=len(stalled)))
    spread = float(np.nan_to_num(sigma(seen.time_us[alike])))
    return Suspect(
        key=f"retransmission-{one}-{other}",
        kind="retransmission",
        ranks=ranks,
        cause="bandwidth",
        pattern="transient" if len(steps) == 1 else "intermittent",
        step_positions=steps,
        evidence=(Evidence("transfer_us", took, usual, spread, int(alike.sum()) - 1),),
        facts=tuple(facts),
        links=links,
        link_factor=factor,
    )


def seen_in_its_steps(view: JobView, suspect: Suspect) -> float:
    """µs a step that a retransmission cost as measured: how much longer its ranks' own steps are than others.

    At most what its operator lost, and less what those ranks have caught up in the step after it. Ranks that
    were not part of it show the delay a step later, if it came at the end of one. Zero for all other kinds,
    if in doubt, and where every step has one.
    """
    at = np.array(suspect.positions(len(view.steps)), np.int64)
    own = median(view.step_us[np.isin(view.ranks, suspect.ranks)], 0)
    others = np.delete(own, at)
    if suspect.kind != "retransmission" or suspect.confidence != "high" or not len(at) or not len(others):
        return 0.0
    usual = float(median(others))
    after = np.r_[own, usual][at + 1]
    longer = own[at] - usual + np.minimum(np.nan_to_num(after - usual), 0.0)
    row = suspect.evidence[0]
    return max(0.0, float(np.nan_to_num(min(longer.max(), row.value - row.peers_median)))) / len(view.steps)
