"""Find the broken part of the network from links, or from operators where no link was observed.

A single operator that lasts many times as long as similar ones is an event: after a lost packet RDMA waits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.measures.cover import Part, PartName, cover
from cluster_analysis.judge.measures.slow_units import (
    Observations,
    Units,
    beyond_class,
    units_by_step,
    units_of,
)
from cluster_analysis.judge.measures.transfers import Mended
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.numeric.sorting import half_octaves
from cluster_analysis.numeric.stats import median, sigma
from cluster_analysis.thresholds.common import FEWEST_PEERS, TWICE
from cluster_run.facts import fact
from cluster_run.findings import WARNING_COST_SHARE, Evidence, Link
from cluster_run.ids import Rank
from cluster_run.kinds import FaultKind

#: Kind of a part, and its facts: with observed links, and with operators only.
_SAID: Mapping[PartName, tuple[FaultKind, str, str]] = {
    "link": ("slow_link", "link_both_ways", "operators_between_two"),
    "group": ("slow_link", "operators_of_group", "operators_of_group"),
    "port": ("slow_nic", "port", "operators_of_rank"),
    "port_tx": ("slow_nic", "port_sending", "operators_of_rank"),
    "port_rx": ("slow_nic", "port_receiving", "operators_of_rank"),
    "nic": ("slow_nic", "nic", "operators_of_rank"),
    "nic_tx": ("slow_nic", "nic_sending", "operators_of_rank"),
    "nic_rx": ("slow_nic", "nic_receiving", "operators_of_rank"),
    "card": ("slow_nic", "nic", "operators_of_rank"),
    "card_tx": ("slow_nic", "nic_sending", "operators_of_rank"),
    "card_rx": ("slow_nic", "nic_receiving", "operators_of_rank"),
    "rail": ("slow_nic", "rail", "operators_of_rank"),
    "host_pair": ("slow_host_pair", "host_pair", "operators_between_hosts"),
    "host_pair_tx": ("slow_host_pair", "host_pair_one_way", "operators_between_hosts"),
    "groups": ("slow_link", "operators_of_group", "operators_of_group"),
    "uplink": ("slow_uplink", "uplink", "operators_across_host"),
    "uplink_tx": ("slow_uplink", "uplink_sending", "operators_across_host"),
    "uplink_rx": ("slow_uplink", "uplink_receiving", "operators_across_host"),
}


def detect(case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give the broken parts of the network, from links, or from operators where no link was observed."""
    view, seen = case.view, case.network
    if seen is None:
        return
    units = units_of(seen, case.limits)
    place = {host: number for number, host in enumerate(view.hosts)}
    host_of = {int(rank): place[host] for rank, host in view.topology.hosts.items()}
    slow: list[Suspect] = []
    for part in cover(units, host_of):
        slow += _lasting(case, units, _narrowed(case, seen, part))
    by_steps: dict[tuple[PartName, tuple[int, ...], tuple[int, ...]], list[tuple[int, Units, Part]]] = {}
    for step, then in units_by_step(seen, units, case.limits):
        for part in cover(then, host_of):
            by_steps.setdefault((part.name, part.ranks, part.hosts), []).append((step, then, part))
    graph, most_us = view.graph, np.full(len(view.steps), np.inf)
    if graph is not None and by_steps:
        most_us = graph.saved_us(np.zeros_like(graph.transfer_us)).max(axis=0)
    for some in by_steps.values():
        slow += _of_steps(case, some, most_us)
    yield from (*slow, *_events(case, slow))


def _lasting(case: Case, units: Units, part: Part) -> Iterator[Suspect]:
    """Give the suspect of a part that is slow in all steps; what may be chance only if it may cost enough."""
    p_value = len(units.members) * float(np.prod(units.chance[[*part.explained]]))
    least_us = WARNING_COST_SHARE * case.view.mean_step_us * (p_value > case.limits.listed_p_value)
    suspect = _suspect(case, [units], part, p_value)
    if suspect.most_us(case.view.graph) >= least_us:
        yield suspect


def _of_steps(case: Case, some: Sequence[tuple[int, Units, Part]], most_us: FloatArray) -> Iterator[Suspect]:
    """Give the suspect of a part that is slow in these steps, if it may cost enough. Most are chance."""
    n_steps, limits = len(case.view.steps), case.limits
    steps, units, parts = zip(*some, strict=True)
    part = replace(parts[0], explained=tuple(sorted({at for one in parts for at in one.explained})))
    own = [*part.explained]
    with np.errstate(divide="ignore"):
        log_chance = np.log([one.chance[own] for one in units]).sum(0)
    n_places = math.comb(n_steps, len(steps)) * int(np.isfinite(units[0].level).sum())
    p_value = math.exp(min(0.0, math.log(n_places) + log_chance.sum()))
    least = WARNING_COST_SHARE if p_value <= limits.listed_p_value else limits.open_cost_share
    least_us = least * case.view.mean_step_us
    # One operator of a link in each step, over twice as long, is an event of its own.
    is_single = (np.sum([one.n[own] for one in units], axis=0) <= len(steps)).all()
    if part.name == "link" and is_single and (_level(units, own) > np.log(TWICE)).all():
        return
    # No part saves more than all transfers of its steps: of a large job hundreds need no closer look.
    if most_us[[*steps]].sum() < least_us * n_steps:
        return
    suspect = _suspect(case, units, part, p_value, steps)
    if suspect.most_us(case.view.graph) >= least_us:
        yield replace(
            suspect,
            pattern="transient" if len(steps) == 1 else "intermittent",
            step_positions=steps,
            # The links of a rail may be those of a single call.
            is_alarm=suspect.is_alarm and (part.name != "rail" or len(steps) > 1),
            facts=(*suspect.facts, fact("in_some_steps", n_steps=n_steps)),
            confidence="medium" if suspect.confidence == "high" else suspect.confidence,
        )


def _level(units: Sequence[Units], own: list[int]) -> FloatArray:
    """How slow some units are, in the middle of the steps in which they are."""
    return median(np.array([np.where(one.slow[own], one.level[own], np.nan) for one in units]), 0)


def _narrowed(case: Case, seen: Observations, part: Part) -> Part:
    """Narrow a group to the link of two members, if just these sent more slowly: each shows it."""
    if part.name != "group":
        return part
    groups = np.unique(seen.group[np.isin(seen.unit, part.explained)]).tolist()
    slow = {one for at in groups for one in case.slow_senders.get(seen.groups[at], ())}
    return replace(part, name="link", ranks=tuple(sorted(slow))) if len(slow) == 2 else part


def _suspect(
    case: Case, by_step: Sequence[Units], part: Part, p_value: float, steps: tuple[int, ...] | None = None
) -> Suspect:
    """The suspect of a part that explains slow units, in all steps or in each of some."""
    units, slow = by_step[0], list(part.explained)
    transport = units.transport[min(part.claimed.intersection(slow))]
    kind, by_link, by_operators = _SAID[part.name]
    n_others, spread = units.healthy[transport]
    level = _level(by_step, slow)
    ratio = float(np.exp(median(level)))
    ends = {(units.members[at], units.transport[at]) for at in slow if len(units.members[at]) == 2}
    is_shown = bool(units.is_link[slow].any())
    if not is_shown:
        ends |= {(part.ranks, transport)} if part.name == "link" else set()
        ends |= {(pair[::-1], by) for pair, by in ends}
    links = tuple(Link(Rank(pair[0]), Rank(pair[1]), by) for pair, by in sorted(ends))
    hosts = tuple(case.view.hosts[host] for host in part.hosts)
    is_one_way = part.name == "link" and len(links) == 1
    parts = sorted(hosts, key=case.view.hosts.index) or (next(iter(ends))[0] if is_one_way else part.ranks)
    named = dict.fromkeys((parts[0], parts[-1]))
    facts = []
    # The job's traffic cannot separate these.
    if part.may_be_of:
        facts = [fact("may_be_nic" if transport.upper() == "RDMA" else "may_be_port", ranks=part.may_be_of)]
    elif part.may_be_hosts:
        facts = [fact("may_be_uplink", others=tuple(case.view.hosts[host] for host in part.may_be_hosts))]
    elif part.name not in ("link", "group") and len(part.claimed) < FEWEST_PEERS:
        facts = [fact("only_two_links")]
    facts += [fact("may_be_built")] if part.may_be_built and steps is None else []
    # The receiver of the data is a guess.
    separable = not facts and (is_shown or not case.evidence.sent.num_rows)
    if is_shown:
        said, metric = "link_one_way" if is_one_way else by_link, "link_time_ratio"
        known = {"n_links": n_others, "n_seen": int(sum(one.n[slow].sum() for one in by_step))}
    else:
        said, metric, known = by_operators, "transfer_time_ratio", {"n_others": n_others}
        facts.append(fact("no_matrix"))
    # Of two links the slower one may be as it should, and the other one new.
    is_doubtful = not is_shown or (part.name == "link" and n_others < FEWEST_PEERS)
    left = np.ones(len(units.level))
    left[slow] = np.exp(-level)
    mended = None if case.transfers is None else Mended(case.transfers, left, steps)
    return Suspect(
        key="-".join(map(str, (kind, *named, *([transport.lower()] if "port" in part.name else ())))),
        kind=kind,
        ranks=tuple(Rank(rank) for rank in part.ranks),
        hosts=hosts or case.view.hosts_of_ranks(part.ranks),
        cause="bandwidth",
        evidence=(Evidence(metric, ratio, 1.0, spread, n_others),),
        facts=(fact(said, slower_share=ratio - 1.0, transport=transport, ranks=part.ranks, **known), *facts),
        confidence="low" if part.name in ("group", "groups") else "medium" if is_doubtful else "high",
        separable=separable,
        is_alarm=fact("may_be_built") not in facts,
        links=links,
        p_value=min(1.0, p_value),
        mended=mended,
        link_factor=None if mended is None else mended.transfers.remaining([mended]),
    )


def _events(case: Case, slow: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give operators that lasted far too long, beyond `slow` parts: all of one link are one event.

    So is what stood still in the same steps: mended one by one they save nothing, as all wait for each other.
    """
    graph, limits, least_us = case.view.graph, case.limits, WARNING_COST_SHARE * case.view.mean_step_us
    seen, entries = case.operators, case.network
    if graph is None or seen is None or entries is None:
        return
    # A call that is matched with none may be all waiting: for a rank without files, if there may be one.
    may_lack = len(graph.ranks) < max(case.view.expected_ranks, 2)
    is_told = (graph.operator_n_ranks > 1) | graph.is_message | may_lack
    may_be = is_told & (graph.transfer_us > least_us) & ~(seen.excess <= np.log(TWICE))
    # What lasts long at one place of all steps is how the job runs, or a slow part, and no event.
    at, own = np.flatnonzero(np.isin(seen.unit, np.unique(seen.unit[may_be]))), np.full(len(may_be), np.inf)
    place = graph.operator_place[at] * (graph.n_steps > 1)
    alike = seen.kind[at], half_octaves(seen.size_bytes[at]), seen.unit[at], place
    own[at] = beyond_class(np.arange(len(at)), alike, np.log(seen.time_us[at]), limits.link_effect)
    sure = (one.link_factor for one in slow if one.p_value <= limits.listed_p_value)
    left = np.minimum.reduce([np.ones(len(own)), *(one for one in sure if one is not None)])
    rest = replace(seen, time_us=seen.time_us * left, excess=seen.excess + np.log(left))
    may_last = may_be & seen.is_group[seen.unit]  # the shortest elapse of a message may be a wait
    lasts = np.flatnonzero(may_last & (own <= np.log(TWICE)) & rest.are_events(least_us))
    if len(lasts):
        one = _stopped(case, seen, lasts, {})
        yield replace(one, facts=(one.facts[0], fact("at_a_place")), confidence="low", is_alarm=False)
    seen = replace(seen, excess=np.fmin(seen.excess, own))
    hit = np.flatnonzero(may_be & replace(rest, excess=seen.excess + np.log(left)).are_events(least_us))
    shows = np.flatnonzero(entries.are_events(least_us) & ~entries.is_group[entries.unit])
    steps_of, by_steps = dict[tuple[Link, ...], tuple[int, ...]](), dict[tuple[int, ...], list[int]]()
    for team in np.unique(seen.unit[hit]).tolist():
        at = hit[seen.unit[hit] == team]
        links, steps = _links_of(entries, shows, seen, at), tuple(np.unique(seen.step[at]).tolist())
        # The shortest elapse of a collective is no wait, a message's may be: its link must show the event.
        if seen.is_group[team] or links:
            by_steps.setdefault(steps_of.setdefault(tuple(links), steps) if links else steps, []).append(team)
    for teams in by_steps.values():
        at = hit[np.isin(seen.unit[hit], teams)]
        event = _stopped(case, seen, at, _links_of(entries, shows, seen, at))
        least = WARNING_COST_SHARE if event.is_alarm else limits.open_cost_share
        if event.most_us(graph) >= least * case.view.mean_step_us:
            yield event


def _links_of(links: Observations, shows: IntArray, seen: Observations, hit: IntArray) -> dict[Link, bool]:
    """The slowest link of each group of some operators that shows an event: whether a file shows it alone."""
    found = {}
    for group in np.unique(seen.group[hit]).tolist():
        at = shows[(links.group[shows] == group) & np.isin(links.step[shows], seen.step[hit])]
        if len(at):
            unit = int(links.unit[at[np.argmax(links.time_us[at])]])
            src, dst = links.members[unit]
            found[Link(Rank(src), Rank(dst), links.transport[unit])] = bool(links.is_link[unit])
    return found


def _stopped(case: Case, seen: Observations, operators: IntArray, shown: dict[Link, bool]) -> Suspect:
    """The suspect of operators that stood still together, and which links show it."""
    links = tuple(shown)
    steps = tuple(np.unique(seen.step[operators]).tolist())
    teams = [seen.members[team] for team in np.unique(seen.unit[operators]).tolist()]
    ranks = tuple(sorted({Rank(rank) for one in teams for rank in one}))
    worst = int(operators[np.argmax(seen.time_us[operators])])
    kind, alike = seen.kinds[seen.kind[worst]], seen.time_us[seen.kind == seen.kind[worst]]
    took, usual = float(seen.time_us[worst]), float(seen.time_us[worst] * np.exp(-seen.excess[worst]))
    long = {"n_operators": len(operators), "op_type": kind, "took_us": took, "usual_us": usual}
    if len(links) == 1:
        one, other = links[0].src, links[0].dst
        said = fact("operators_took_long_between", **long, src=one, dst=other)
    else:
        one, other = ranks[0], ranks[-1]
        said = fact("operators_took_long", **long, ranks=ranks)
    # An operator lasts as long as its last member is late, and members without files may be that one.
    read, groups = {int(rank) for rank in case.view.ranks}, case.view.topology.groups.values()
    lacking = [read.intersection(one.ranks) for one in groups if set(one.ranks) - read]
    is_sure = bool(links) or not any(len(set(of) & read) < 2 or set(of) & read in lacking for of in teams)
    # Inside a host no network is between ranks.
    is_inside = all(len(case.view.hosts_of_ranks(team)) == 1 for team in teams)
    why = fact("host_link_stopped" if is_inside else "packets_lost")
    facts = [said, why if is_sure else fact("absent_members")]
    facts += [fact("stood_still_together", n_groups=len(teams))] if len(teams) > 1 and len(links) != 1 else []
    facts += [fact("no_matrix")] if not all(shown.values()) else []
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
        confidence="high" if is_sure else "low",
        is_alarm=is_sure,
        links=links,
        link_factor=factor,
    )
