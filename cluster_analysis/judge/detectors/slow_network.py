"""From slow links to the part that is broken, and to how much faster each operator would be without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.measures.cover import KIND_OF_PART, Cover, cover
from cluster_analysis.judge.measures.links import LinkTable, Observations, judge_links
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.numeric.stats import median
from cluster_analysis.replay.job_evidence import JobEvidence
from cluster_analysis.replay.replay import Graph
from cluster_analysis.thresholds.limits import Thresholds
from cluster_analysis.thresholds.network import IN_TURN_SHARE
from cluster_analysis.trace.calls import codes, numbers
from cluster_run.facts import Fact, FindingFact, fact
from cluster_run.findings import Evidence, Link
from cluster_run.ids import Rank

_NICS: Mapping[str, FindingFact] = {"nic_tx": "nic_sending", "nic_rx": "nic_receiving"}
_PORTS: Mapping[str, FindingFact] = {"nic_tx": "port_sending", "nic_rx": "port_receiving"}


def detect(case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give the broken parts of the network, where links were observed."""
    if case.links is not None:
        yield from link_suspects(case.evidence, case.view, case.links, case.limits)


def link_suspects(
    evidence: JobEvidence, view: JobView, seen: Observations, limits: Thresholds
) -> list[Suspect]:
    """Return the broken parts of the network."""
    table = judge_links(seen, limits)
    place = {host: number for number, host in enumerate(view.hosts)}
    host_of = {int(rank): place[host] for rank, host in view.topology.hosts.items()}
    found: list[Suspect] = []
    is_rdma = np.array([name.upper() == "RDMA" for name in table.transports])[table.transport]
    for remote in (False, True):
        inside = np.flatnonzero((is_rdma == remote) & np.isfinite(table.level))
        inside = inside[np.argsort(table.slow[inside], kind="stable")]  # a slow entry of a pair comes last
        pairs = {(int(table.src[i]), int(table.dst[i])): int(i) for i in inside}
        slow = frozenset(pair for pair, i in pairs.items() if table.slow[i])
        carried = {pair: table.transports[int(table.transport[i])] for pair, i in pairs.items()}
        for part in cover(slow, carried, host_of, is_remote=remote):
            transport = table.transports[int(table.transport[pairs[part.links[0]]])]
            found.append(_suspect(evidence, view, table, pairs, part=part, transport=transport))
    return found


def _suspect(
    evidence: JobEvidence,
    view: JobView,
    table: LinkTable,
    pairs: dict[tuple[int, int], int],
    *,
    part: Cover,
    transport: str,
) -> Suspect:
    rows = [pairs[pair] for pair in part.links]
    level = float(np.median(table.level[rows]))
    kind = KIND_OF_PART[part.part]
    names = tuple(view.hosts[host] for host in part.hosts)
    links = tuple(
        Link(Rank(src), Rank(dst), table.transports[int(table.transport[row])])
        for (src, dst), row in zip(part.links, rows, strict=True)
    )
    kind_of_fact, key = _name(part, names, transport)
    doubt = _doubt(part, pairs, transport)
    evidence_row = Evidence(
        "link_time_ratio", float(np.exp(level)), 1.0, float(table.sigma[rows[0]]), int(table.n_peers[rows[0]])
    )
    n_seen = int(np.sum(table.n[rows]))
    return Suspect(
        key=f"{kind}-{key}",
        kind=kind,
        ranks=tuple(Rank(rank) for rank in part.ranks),
        hosts=names or view.hosts_of_ranks(part.ranks),
        cause="bandwidth",
        evidence=(evidence_row,),
        facts=(
            fact(
                kind_of_fact,
                slower_share=float(np.expm1(level)),
                transport=transport,
                n_links=int(table.n_peers[rows[0]]),
                n_seen=n_seen,
            ),
            *doubt,
        ),
        separable=not doubt,
        links=links,
        p_value=min(1.0, len(table.src) * float(np.prod(table.chance[rows]))),
        link_factor=_factors(evidence, view, view.graph, part, table, pairs)
        if view.graph is not None
        else None,
    )


def _doubt(part: Cover, pairs: dict[tuple[int, int], int], transport: str) -> tuple[Fact, ...]:
    """What the job's traffic cannot tell apart; nothing where it can."""
    if part.part != "link":
        return () if part.is_separable else (fact("only_two_links"),)
    for src, dst in part.links:
        lonely = tuple(
            rank for rank, end in ((src, 0), (dst, 1)) if sum(pair[end] == rank for pair in pairs) == 1
        )
        if lonely:
            return (fact("may_be_nic" if transport.upper() == "RDMA" else "may_be_port", ranks=lonely),)
    return ()


def _name(part: Cover, hosts: tuple[str, ...], transport: str) -> tuple[FindingFact, str]:
    """What a part is, and its name in the finding's id."""
    if part.part == "link":
        one, other = part.ranks
        if len(part.links) == 1:
            one, other = part.links[0]
            return "link_one_way", f"{one}-{other}"
        return "link_both_ways", f"{one}-{other}"
    if part.part in ("port", "nic", "nic_tx", "nic_rx"):
        rank = part.ranks[0]
        if transport.upper() == "RDMA":
            return _NICS.get(part.part, "nic"), f"{rank}"
        return _PORTS.get(part.part, "port"), f"{rank}-{transport.lower()}"
    if part.part == "host_pair":
        return "host_pair", f"{hosts[0]}-{hosts[1]}"
    return "uplink", f"{hosts[0]}"


def _factors(
    evidence: JobEvidence,
    view: JobView,
    graph: Graph,
    part: Cover,
    table: LinkTable,
    pairs: dict[tuple[int, int], int],
) -> FloatArray:
    """Transfer of each operator (O,) without the fault, relative to now.

    An operator lasts as long as its slowest link; a message as long as its own.
    """
    healthy = {pair: float(np.exp(-table.level[pairs[pair]])) for pair in part.links}
    factor = np.ones(len(graph.transfer_us))
    source, target = message_ends(graph)
    for (src, dst), ratio in healthy.items():
        factor[(source == src) & (target == dst)] = ratio
    links = evidence.links
    src_rank, dst_rank = links["src_rank"].to_numpy(), links["dst_rank"].to_numpy()
    step = np.searchsorted(view.steps, links["step"].to_numpy())
    names, group = codes(links["group"])
    kinds, kind = codes(links["op_type"])
    _, transport = codes(links["transport"])
    time = numbers(links["time_us"])
    touched = np.zeros(len(time), bool)
    for src, dst in healthy:
        touched |= (src_rank == src) & (dst_rank == dst)
    is_collective = source < 0
    for group_code, kind_code in sorted(
        set(zip(group[touched].tolist(), kind[touched].tolist(), strict=True))
    ):
        if names[group_code] not in graph.groups or kinds[kind_code] not in graph.types:
            continue
        rows = np.flatnonzero((group == group_code) & (kind == kind_code))
        operators = np.flatnonzero(
            is_collective
            & (graph.operator_group == graph.groups.index(names[group_code]))
            & (graph.operator_type == graph.types.index(kinds[kind_code]))
        )
        if not len(operators):
            continue

        def remaining(rows: IntArray, operators: IntArray) -> float:
            entries = (src_rank[rows], dst_rank[rows], transport[rows], time[rows])
            return remaining_share(entries, healthy, float(median(graph.transfer_us[operators])))

        factor[operators] = remaining(rows, operators)
        # A step's only one of its kind has entries of its own, which say what held up other links then.
        n_operators = np.bincount(graph.operator_step[operators], minlength=graph.n_steps)
        for own in operators[n_operators[graph.operator_step[operators]] == 1].tolist():
            of_step = rows[step[rows] == graph.operator_step[own]]
            if touched[of_step].any():
                factor[own] = remaining(of_step, np.array([own]))
    return factor


def message_ends(graph: Graph) -> tuple[IntArray, IntArray]:
    """Global ranks that send and receive each point-to-point operator (O,), -1 for collectives."""
    n = len(graph.rank)
    source, target = np.full(len(graph.transfer_us), -1), np.full(len(graph.transfer_us), -1)
    sends = np.flatnonzero(graph.is_p2p & (graph.receiver < n))
    source[graph.operator[sends]] = graph.ranks[graph.rank[sends]]
    target[graph.operator[sends]] = graph.ranks[graph.rank[graph.receiver[sends]]]
    receives = np.flatnonzero(graph.is_p2p & (graph.sender < n))
    source[graph.operator[receives]] = graph.ranks[graph.rank[graph.sender[receives]]]
    target[graph.operator[receives]] = graph.ranks[graph.rank[receives]]
    return source, target


def remaining_share(
    entries: tuple[IntArray, IntArray, IntArray, FloatArray],
    healthy: dict[tuple[int, int], float],
    transfer_us: float,
) -> float:
    """What is left of an operator's transfer without the fault, from the median times of its links.

    It lasts as long as its slowest link. Where it uses one transport after the other, inside the hosts and
    between them, it lasts as long as the slowest links of each together: so it does if it is that long.

    Args:
        entries: senders, receivers, transports and times in µs of its links.
        healthy: what would be left of the time of each slow link.
        transfer_us: how long it takes.
    """
    src, dst, transport, time_us = entries
    before: dict[int, float] = {}
    after: dict[int, float] = {}
    for one, other, by in sorted(set(zip(src.tolist(), dst.tolist(), transport.tolist(), strict=True))):
        typical = float(np.median(time_us[(src == one) & (dst == other) & (transport == by)]))
        before[by] = max(before.get(by, 0.0), typical)
        after[by] = max(after.get(by, 0.0), typical * healthy.get((one, other), 1.0))
    together = sum(before.values())
    if len(before) > 1 and transfer_us >= IN_TURN_SHARE * together:
        return sum(after.values()) / together
    slowest = max(before.values(), default=0.0)
    return max(after.values()) / slowest if slowest > 0 else 1.0
