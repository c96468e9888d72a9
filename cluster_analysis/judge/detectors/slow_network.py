"""From slow links, or groups where none was observed, to the part that is broken, and to what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.measures.cover import Part, PartName, cover
from cluster_analysis.judge.measures.slow_units import Units, judged
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.numeric.grouped import medians_of
from cluster_analysis.numeric.sorting import distinct
from cluster_analysis.numeric.stats import median, sigma
from cluster_analysis.thresholds.common import FEWEST_PEERS, HALFWAY
from cluster_run.facts import FindingFact, fact
from cluster_run.findings import Evidence, FaultKind, Link
from cluster_run.ids import Rank

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
    view, seen = case.view, case.links or case.operators
    if seen is None:
        return
    units = judged(seen, case.limits)
    place = {host: number for number, host in enumerate(view.hosts)}
    host_of = {int(rank): place[host] for rank, host in view.topology.hosts.items()}
    for part in cover(units, host_of):
        yield _suspect(case, units, part)


def _suspect(case: Case, units: Units, part: Part) -> Suspect:
    """The suspect of a part that explains slow units."""
    slow = list(part.explained)
    transport = units.transport[min(part.claimed.intersection(slow))]
    kind, by_link, by_operators = _SAID[part.name]
    others = np.isfinite(units.level) & ~units.slow & (np.array(units.transport) == transport)
    n_others, spread = int(np.count_nonzero(others)), float(np.nan_to_num(sigma(units.level[others])))
    ratio = float(np.exp(median(units.level[slow])))
    ends = {(units.members[at], units.transport[at]) for at in slow if len(units.members[at]) == 2}
    ends |= {(pair[::-1], by) for pair, by in ends if case.links is None}
    links = tuple(Link(Rank(pair[0]), Rank(pair[1]), by) for pair, by in sorted(ends))
    hosts = tuple(case.view.hosts[host] for host in part.hosts)
    is_one_way = part.name == "link" and len(links) == 1
    named = hosts or dict.fromkeys(next(iter(ends))[0] if is_one_way else (part.ranks[0], part.ranks[-1]))
    facts = []
    # What the job's traffic cannot tell apart.
    if part.may_be_of:
        facts = [fact("may_be_nic" if transport.upper() == "RDMA" else "may_be_port", ranks=part.may_be_of)]
    elif part.name not in ("link", "group") and len(part.claimed) < FEWEST_PEERS:
        facts = [fact("only_two_links")]
    separable = not facts
    if case.links is not None:
        said, metric = "link_one_way" if is_one_way else by_link, "link_time_ratio"
        known = {"n_links": n_others, "n_seen": int(units.n[slow].sum())}
    else:
        said, metric, known = by_operators, "transfer_time_ratio", {"n_others": n_others}
        facts.append(fact("no_matrix"))
    left = np.ones(len(units.level))
    left[slow] = np.exp(-units.level[slow])
    return Suspect(
        key="-".join(map(str, (kind, *named, *([transport.lower()] if "port" in part.name else ())))),
        kind=kind,
        ranks=tuple(Rank(rank) for rank in part.ranks),
        hosts=hosts or case.view.hosts_of_ranks(part.ranks),
        cause="bandwidth",
        evidence=(Evidence(metric, ratio, 1.0, spread, n_others),),
        facts=(fact(said, slower_share=ratio - 1.0, transport=transport, ranks=part.ranks, **known), *facts),
        confidence="low" if part.name in ("group", "groups") else "medium" if case.links is None else "high",
        separable=separable,
        links=links,
        p_value=min(1.0, len(units.members) * float(np.prod(units.chance[slow]))),
        link_factor=_factors(case, left),
    )


def _factors(case: Case, left: FloatArray) -> FloatArray | None:
    """Transfer of each operator (O,) if so much of each unit's time were left (U,), relative to now.

    A message lasts as long as its own link, a collective as long as the slowest of its group's: as the
    entries of its step have them.
    """
    graph, seen, teams = case.view.graph, case.links, case.operators
    if graph is None or teams is None:
        return None
    if seen is None:  # units are teams
        return left[teams.unit]
    of_pair = {seen.members[at]: left[at] for at in np.flatnonzero(left < 1.0).tolist()}
    own = zip(teams.members, teams.is_group, strict=True)
    factor = np.array([1.0 if is_group else of_pair.get(pair, 1.0) for pair, is_group in own])[teams.unit]
    groups, kinds = sorted({*teams.groups, *seen.groups}), sorted({*teams.kinds, *seen.kinds})
    of_operator, of_entry = (one.calls(groups, kinds, graph.n_steps) for one in (teams, seen))
    of_operator[graph.is_message] = -1
    carrier = np.unique(seen.transport, return_inverse=True)[1]
    for call in np.unique(of_entry[left[seen.unit] < 1.0]).tolist():
        operators, at = np.flatnonzero(of_operator == call), np.flatnonzero(of_entry == call)
        if len(operators):
            unit, number = distinct(seen.unit[at])
            typical, took = medians_of(seen.time_us[at], number), float(median(graph.transfer_us[operators]))
            factor[operators] = remaining_share(typical, left[unit], carrier[unit], took)
    return factor


def remaining_share(time_us: FloatArray, left: FloatArray, carrier: IntArray, transfer_us: float) -> float:
    """What is left of an operator's transfer without the fault.

    It lasts as long as its slowest link. Where it uses one transport after the other, inside the hosts and
    between them, it lasts as long as the slowest links of each together: so it does if it is nearer to that.

    Args:
        time_us: the time that each of its links takes.
        left: what would be left of that.
        carrier: a number for what carries each link's data.
        transfer_us: how long the operator takes.
    """
    before, after = (
        np.array([times[carrier == one].max() for one in np.unique(carrier)])
        for times in (time_us, time_us * left)
    )
    if transfer_us >= HALFWAY * (before.sum() + before.max()):
        return float(after.sum() / before.sum())
    return float(after.max() / before.max())
