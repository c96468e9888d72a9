"""Retransmission: single operators that last many times as long as all others of their kind.

A lost packet makes an RDMA connection wait for its timer, seconds as configured by default. It is an
event, not a property of the link's bandwidth, which the other operators show to be in order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

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
from cluster_run.ids import Rank

#: What may have stopped operators: positions of the steps, and a host, or a rank whose host is not known.
_Cause = tuple[tuple[int, ...], "str | int"]


def detect(case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give operators that lasted far too long: by as few causes as explain all of them.

    What stood still in the same steps and shares a host is one event. Mended one by one they save nothing, as
    each waits for the other.
    """
    graph, limits = case.view.graph, case.limits
    if graph is None or not (graph.transfer_us > limits.retransmission_us).any():
        return
    seen, host_of = case.operators, case.view.topology.hosts
    assert seen is not None
    # A group of which all operators last long has slow links and no event.
    alike = seen.kind, half_octaves(seen.size_bytes), seen.unit
    own = beyond_class(np.arange(len(seen.unit)), alike, np.log(seen.time_us), limits.link_effect)
    seen = replace(seen, excess=np.fmin(seen.excess, own))
    hit = seen.are_events(limits)
    left: dict[int, set[_Cause]] = {}
    for team in np.unique(seen.unit[hit]).tolist():
        at = np.flatnonzero(hit & (seen.unit == team))
        # The shortest part of a collective is no wait, a message's may be: its link must show the event.
        if seen.is_group[team] or case.links is None or _links_of(case, seen, at):
            steps = tuple(np.unique(seen.step[at]).tolist())
            left[team] = {(steps, host_of.get(Rank(rank), rank)) for rank in seen.members[team]}
    while left:
        n_explained = Counter(one for causes in left.values() for one in causes)
        cause = max(n_explained, key=lambda one: (n_explained[one], str(one)))
        teams = [team for team, causes in left.items() if cause in causes]
        yield _suspect(case, seen, np.flatnonzero(hit & np.isin(seen.unit, teams)))
        left = {team: causes for team, causes in left.items() if team not in teams}


def _links_of(case: Case, seen: Observations, operators: IntArray) -> tuple[Link, ...]:
    """Of each group of some operators the slowest link whose entry shows the event."""
    links = case.links
    if links is None:
        return ()
    found, shows = [], links.are_events(case.limits) & np.isin(links.step, seen.step[operators])
    for group in np.unique(seen.group[operators]).tolist():
        at = np.flatnonzero(shows & (np.array(links.groups) == seen.groups[group])[links.group])
        if len(at):
            unit = int(links.unit[at[np.argmax(links.time_us[at])]])
            src, dst = links.members[unit]
            found.append(Link(Rank(src), Rank(dst), links.transport[unit]))
    return tuple(dict.fromkeys(found))


def _suspect(case: Case, seen: Observations, operators: IntArray) -> Suspect:
    """The suspect of operators that stood still together."""
    links, steps = _links_of(case, seen, operators), tuple(np.unique(seen.step[operators]).tolist())
    teams = [seen.members[team] for team in np.unique(seen.unit[operators]).tolist()]
    ranks = tuple(sorted({Rank(rank) for one in teams for rank in one}))
    worst = int(operators[np.argmax(seen.time_us[operators])])
    alike = seen.time_us[seen.kind == seen.kind[worst]]
    took, usual = float(seen.time_us[worst]), float(seen.time_us[worst] * np.exp(-seen.excess[worst]))
    kind = seen.kinds[seen.kind[worst]]
    long = {"n_operators": len(operators), "op_type": kind, "took_us": took, "usual_us": usual}
    if len(links) == 1:
        one, other = links[0].src, links[0].dst
        said = fact("operators_took_long_between", **long, src=one, dst=other)
    else:
        one, other = ranks[0], ranks[-1]
        said = fact("operators_took_long", **long, first=one, last=other)
    # Inside a host no network is between ranks.
    is_inside = all(len(case.view.hosts_of_ranks(team)) == 1 for team in teams)
    facts = [said, fact("host_link_stopped" if is_inside else "packets_lost")]
    if len(teams) > 1:
        facts.append(fact("stood_still_together", n_groups=len(teams)))
    factor = np.ones(len(seen.unit))
    factor[operators] = np.exp(-seen.excess[operators])
    return Suspect(
        key=f"retransmission-{one}-{other}",
        kind="retransmission",
        ranks=ranks,
        cause="bandwidth",
        pattern="transient" if len(steps) == 1 else "intermittent",
        step_positions=steps,
        evidence=(Evidence("transfer_us", took, usual, float(np.nan_to_num(sigma(alike))), len(alike) - 1),),
        facts=tuple(facts),
        links=links,
        link_factor=factor,
    )


def seen_in_its_steps(view: JobView, suspect: Suspect) -> float:
    """µs a step that a retransmission cost as measured: how much longer its ranks' own steps are than others.

    At most what its operator lost. Ranks that were not part of it show the delay a step later, if it came at
    the end of one. Zero for all other kinds, and where every step has one.
    """
    own = median(view.step_us[np.isin(view.ranks, suspect.ranks)], 0)
    is_hit = np.isin(np.arange(len(own)), suspect.positions(len(own)))
    if suspect.kind != "retransmission" or is_hit.all():
        return 0.0
    row = suspect.evidence[0]
    longer = float(own[is_hit].max()) - float(median(own[~is_hit]))
    return max(0.0, float(np.nan_to_num(min(longer, row.value - row.peers_median)))) / len(own)
