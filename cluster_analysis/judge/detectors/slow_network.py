"""From slow links, or groups where none was observed, to the part that is broken, and to what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.measures.cover import Part, PartName, cover
from cluster_analysis.judge.measures.links import judge_links
from cluster_analysis.judge.measures.operators import judge_operators, teams_of
from cluster_analysis.judge.measures.slow_units import Units
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.numeric.grouped import medians_of
from cluster_analysis.numeric.sorting import combined, first_positions
from cluster_analysis.numeric.stats import median, sigma
from cluster_analysis.replay.replay import Graph
from cluster_analysis.thresholds.common import FEWEST_PEERS, HALFWAY
from cluster_run.facts import Fact, FindingFact, fact
from cluster_run.findings import Evidence, FaultKind, Link
from cluster_run.ids import HostId, Rank

#: What a part is called, and what is said of it: where links were observed, and where only operators were.
_SAID: Mapping[PartName, tuple[FaultKind, FindingFact, FindingFact]] = {
    "link": ("slow_link", "link_both_ways", "operators_between_two"),
    "group": ("slow_link", "operators_of_group", "operators_of_group"),
    "port": ("slow_nic", "port", "operators_of_rank"),
    "port_tx": ("slow_nic", "port_sending", "operators_of_rank"),
    "port_rx": ("slow_nic", "port_receiving", "operators_of_rank"),
    "nic": ("slow_nic", "nic", "operators_of_rank"),
    "nic_tx": ("slow_nic", "nic_sending", "operators_of_rank"),
    "nic_rx": ("slow_nic", "nic_receiving", "operators_of_rank"),
    "host_pair": ("slow_host_pair", "host_pair", "operators_between_hosts"),
    "groups": ("slow_link", "operators_of_group", "operators_of_group"),
    "uplink": ("slow_uplink", "uplink", "operators_across_host"),
}


def detect(case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give the broken parts of the network: told from links, or where none was observed from operators."""
    view = case.view
    if case.links is not None:
        units = judge_links(case.links, case.limits)
    elif view.graph is not None:
        units = judge_operators(view.graph, view.topology.hosts, case.limits)
    else:
        return
    place = {host: number for number, host in enumerate(view.hosts)}
    host_of = {int(rank): place[host] for rank, host in view.topology.hosts.items()}
    for part in cover(units, host_of):
        yield _suspect(case, units, part)


def _suspect(case: Case, units: Units, part: Part) -> Suspect:
    """The suspect of a part that explains slow units."""
    view, slow = case.view, list(part.explained)
    transport = units.transport[min(part.claimed.intersection(slow))]
    kind, by_link, by_operators = _SAID[part.name]
    others = np.isfinite(units.level) & ~units.slow & (np.array(units.transport) == transport)
    n_others, spread = int(np.count_nonzero(others)), float(np.nan_to_num(sigma(units.level[others])))
    ratio = float(np.exp(median(units.level[slow])))
    ends = {(units.members[at], units.transport[at]) for at in slow if len(units.members[at]) == 2}
    ends |= {(units.members[at][::-1], units.transport[at]) for at in slow if units.is_group[at]}
    links = tuple(Link(Rank(pair[0]), Rank(pair[1]), by) for pair, by in sorted(ends) if len(pair) == 2)
    hosts = tuple(view.hosts[host] for host in part.hosts)
    doubt = _doubt(part, transport)
    is_one_way = part.name == "link" and len(links) == 1
    if case.links is not None:
        said, metric = "link_one_way" if is_one_way else by_link, "link_time_ratio"
        known = {"n_links": n_others, "n_seen": int(units.n[slow].sum())}
    else:
        said, metric, known = by_operators, "transfer_time_ratio", {"n_others": n_others}
    told = fact(said, slower_share=ratio - 1.0, transport=transport, ranks=part.ranks, **known)
    return Suspect(
        key=f"{kind}-{_name(part, links, hosts, transport)}",
        kind=kind,
        ranks=tuple(Rank(rank) for rank in part.ranks),
        hosts=hosts or view.hosts_of_ranks(part.ranks),
        cause="bandwidth",
        evidence=(Evidence(metric, ratio, 1.0, spread, n_others),),
        facts=(told, *doubt) if case.links is not None else (told, *doubt, fact("no_matrix")),
        confidence="low" if part.name in ("group", "groups") else "medium" if case.links is None else "high",
        separable=not doubt,
        links=links,
        p_value=min(1.0, len(units.members) * float(np.prod(units.chance[slow]))),
        link_factor=None if view.graph is None else _factors(view.graph, case, units, slow),
    )


def _name(part: Part, links: Sequence[Link], hosts: Sequence[HostId], transport: str) -> str:
    """A part's name in the finding's id."""
    if part.name in ("link", "group", "groups"):
        return f"{links[0].src}-{links[0].dst}" if len(links) == 1 else f"{part.ranks[0]}-{part.ranks[-1]}"
    if hosts:
        return "-".join(hosts)
    return f"{part.ranks[0]}-{transport.lower()}" if "port" in part.name else f"{part.ranks[0]}"


def _doubt(part: Part, transport: str) -> tuple[Fact, ...]:
    """What the job's traffic cannot tell apart; nothing where it can."""
    if part.may_be_of:
        kind: FindingFact = "may_be_nic" if transport.upper() == "RDMA" else "may_be_port"
        return (fact(kind, ranks=part.may_be_of),)
    is_one_unit = part.name in ("link", "group")
    return () if is_one_unit or len(part.claimed) >= FEWEST_PEERS else (fact("only_two_links"),)


def _factors(graph: Graph, case: Case, units: Units, slow: list[int]) -> FloatArray:
    """Transfer of each operator (O,) without the fault, relative to now.

    A message lasts as long as its own link, an operator of a group as long as its slowest one.
    """
    left = np.ones(len(units.members))
    left[slow] = np.exp(-units.level[slow])
    teams = teams_of(graph)
    seen = case.links
    if seen is None:  # units are teams
        return np.append(left, 1.0)[teams.of_operator]
    of_pair = {units.members[at]: float(left[at]) for at in slow}
    of_team = [of_pair.get(one, 1.0) if at >= teams.n_groups else 1.0 for at, one in enumerate(teams.members)]
    factor = np.array([*of_team, 1.0])[teams.of_operator]
    step = np.searchsorted(np.array(case.view.steps), seen.step)
    link = combined(seen.transport, seen.pair)[1]
    hit = np.isin(link, slow)
    for group, kind in sorted(set(zip(seen.group[hit].tolist(), seen.kind[hit].tolist(), strict=True))):
        is_of_group = np.array([name == seen.groups[group] for name in graph.groups])[graph.operator_group]
        is_of_kind = np.array([name == seen.kinds[kind] for name in graph.types])[graph.operator_type]
        operators = is_of_group & is_of_kind & ~graph.is_message
        if operators.any():
            at = np.flatnonzero((seen.group == group) & (seen.kind == kind))
            entries = (link[at], seen.transport[at], seen.time_us[at])
            took = float(median(graph.transfer_us[operators]))
            factor[operators] = remaining_share(entries, left, took)
            # A step's only one of its kind has entries of its own: what held up other links then.
            n_operators = np.bincount(graph.operator_step[operators], minlength=graph.n_steps)
            for own in np.flatnonzero(operators & (n_operators[graph.operator_step] == 1)).tolist():
                of_step = at[step[at] == graph.operator_step[own]]
                if hit[of_step].any():
                    entries = (link[of_step], seen.transport[of_step], seen.time_us[of_step])
                    factor[own] = remaining_share(entries, left, float(graph.transfer_us[own]))
    return factor


def remaining_share(
    entries: tuple[IntArray, IntArray, FloatArray], left: FloatArray, transfer_us: float
) -> float:
    """What is left of an operator's transfer without the fault, from the median times of its links.

    It lasts as long as its slowest link. Where it uses one transport after the other, inside the hosts and
    between them, it lasts as long as the slowest links of each together: so it does if it is nearer to that.

    Args:
        entries: links, their transports and times in µs.
        left: what would be left of the time of each link.
        transfer_us: how long it takes.
    """
    link, transport, time_us = entries
    number = combined(link)[1]
    first = first_positions(number)
    typical, by = medians_of(time_us, number), transport[first]
    before, after = (
        np.array([times[by == one].max() for one in np.unique(by)])
        for times in (typical, typical * left[link[first]])
    )
    if len(before) > 1 and transfer_us >= HALFWAY * (before.sum() + before.max()):
        return float(after.sum() / before.sum())
    return float(after.max() / before.max())
