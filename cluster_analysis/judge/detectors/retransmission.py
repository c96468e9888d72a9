"""Retransmission: single operators that last many times as long as all others of their kind.

A lost packet makes an RDMA connection wait for its timer, seconds as configured by default. It is an
event, not a property of the link's bandwidth, which the other operators show to be in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.detectors.retransmission_suspects import suspect_of_link, suspect_of_operators
from cluster_analysis.judge.measures.link_events import LinkEvent, lasted_far_too_long, link_events
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.sorting import combined, half_octaves, stable_order
from cluster_analysis.numeric.stats import median, others_median
from cluster_analysis.replay.job_evidence import JobEvidence
from cluster_analysis.replay.message_times import wait_for_each_other
from cluster_analysis.replay.replay import Graph
from cluster_analysis.thresholds.common import FEWEST_PEERS
from cluster_analysis.thresholds.limits import Thresholds
from cluster_analysis.thresholds.network import MOST_LINKS
from cluster_analysis.trace.calls import codes, numbers
from cluster_run.facts import fact
from cluster_run.findings import Link
from cluster_run.ids import Rank


def detect(case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give groups in which operators or links lasted far too long."""
    yield from retransmissions(case.evidence, case.view, case.limits)


def retransmissions(evidence: JobEvidence, view: JobView, limits: Thresholds) -> list[Suspect]:
    """Return one suspect a group in which an operator, or a link's own entry, lasted far too long."""
    events = link_events(evidence.links, limits)
    eventful = {step for _, step in events}
    found: list[Suspect] = []
    covered: set[tuple[str, int]] = set()
    for group, one in _by_operators(evidence, view, limits):
        steps = {int(view.steps[position]) for position in one.step_positions or ()}
        keys = {(group, step) for step in steps}
        # What lasted as long in the same step elsewhere has waited for the link that shows the event.
        if keys & events.keys() or not steps <= eventful:
            found.append(one)
            covered |= keys
    return together(found) + _by_links(view, [event for key, event in events.items() if key not in covered])


def together(suspects: Sequence[Suspect]) -> list[Suspect]:
    """One suspect for groups that stood still in the same steps: one event.

    Fixed one by one they save nothing, as each waits for the other.
    """
    by_steps: dict[tuple[int, ...], list[Suspect]] = {}
    for one in suspects:
        by_steps.setdefault(one.step_positions or (), []).append(one)
    return [_merged(same) for same in by_steps.values()]


def _merged(suspects: Sequence[Suspect]) -> Suspect:
    first = max(suspects, key=lambda one: (one.evidence[0].value, one.key))
    if len(suspects) < 2:
        return first
    factors = [one.link_factor for one in suspects if one.link_factor is not None]
    ranks = tuple(sorted({rank for one in suspects for rank in one.ranks}))
    return replace(
        first,
        key=f"retransmission-{ranks[0]}-{ranks[-1]}",
        ranks=ranks,
        links=tuple(dict.fromkeys(link for one in suspects for link in one.links)),
        link_factor=np.minimum.reduce(factors) if factors else None,
        facts=(*first.facts, fact("stood_still_together", n_groups=len(suspects))),
    )


def _by_links(view: JobView, events: Sequence[LinkEvent]) -> list[Suspect]:
    """One suspect a link that alone shows its events; of many links the first one says how many more."""
    of_link: dict[Link, list[LinkEvent]] = {}
    for event in events:
        of_link.setdefault(event.links[0], []).append(event)
    found = [suspect_of_link(view, of_link[link]) for link in list(of_link)[:MOST_LINKS]]
    if len(of_link) > len(found):
        more = fact("more_links", n_links=len(of_link) - len(found))
        found[0] = replace(found[0], facts=(*found[0].facts, more))
    return found


def _by_operators(evidence: JobEvidence, view: JobView, limits: Thresholds) -> list[tuple[str, Suspect]]:
    """Groups an operator of which lasted far longer than the like of it on all its ranks."""
    graph = view.graph
    if graph is None:
        return []
    usual = _usual_transfer(graph)
    with np.errstate(invalid="ignore"):
        hit = lasted_far_too_long(graph.transfer_us, usual, limits)
    # A receive lasts long when its sender is late; only what both ends of it saw is a transfer.
    single = np.flatnonzero(hit & (graph.operator_n_ranks < 2))
    hit[single] = _is_lone_transfer(graph, single)
    if not hit.any():
        return []
    # Sends that wait for their receivers are long for other reasons too.
    waited = np.zeros(len(hit), bool)
    waited[graph.operator[graph.waits_for_receiver & ~_is_batch_of_two(graph)]] = True
    waited |= _receives_of(graph, waited)
    hit |= _receives_of(graph, hit)
    is_message = np.zeros(len(hit), bool)
    is_message[graph.operator[graph.is_p2p]] = True
    usual = np.where(np.isfinite(usual), usual, np.nanmedian(usual))
    found: list[tuple[str, Suspect]] = []
    for group in np.unique(graph.operator_group[hit]):
        name = graph.groups[group]
        operators = np.flatnonzero(hit & (graph.operator_group == group))
        links, is_shown = _group_links(
            evidence, name, {view.steps[step] for step in graph.operator_step[operators]}, limits
        )
        # The shortest part of a collective is no wait, a message's may be: its link must show the event.
        if is_message[operators].all() and not is_shown and (links or waited[operators].all()):
            continue
        found.append((name, suspect_of_operators(view, graph, operators, usual, links)))
    return found


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


def _is_lone_transfer(graph: Graph, operators: IntArray) -> BoolArray:
    instance_of = np.full(len(graph.transfer_us), -1)
    instance_of[graph.operator] = np.arange(len(graph.operator))
    instances = instance_of[operators]
    n = len(graph.rank)
    receiver, sender = graph.receiver[instances], graph.sender[instances]
    return np.asarray((receiver < n) & ((sender == n) | _is_batch_of_two(graph)[instances]))


def _is_batch_of_two(graph: Graph) -> BoolArray:
    """Instances (V,) that send and receive at once, of ranks that wait for nobody but each other."""
    at = np.flatnonzero(graph.is_p2p)
    found = np.zeros(len(graph.rank), bool)
    found[at] = wait_for_each_other(at, graph.sender[at], graph.receiver[at], len(graph.rank))
    is_batch = np.array(["sendrecv" in name for name in graph.types], bool)
    return np.asarray(found & is_batch[graph.operator_type[graph.operator]])


def _receives_of(graph: Graph, hit: BoolArray) -> BoolArray:
    """The receiving ends of messages that took too long."""
    n = len(graph.rank)
    late = np.flatnonzero(hit[graph.operator] & graph.is_p2p & (graph.receiver < n))
    ends = np.zeros(len(hit), bool)
    ends[graph.operator[graph.receiver[late]]] = True
    return ends


def _usual_transfer(graph: Graph) -> FloatArray:
    """Median transfer of the other operators of the same kind, size and number of ranks (O,).

    NaN with fewer than two others: one of two lasts longer, and nobody knows whether that is usual. A group
    of which all operators last long has slow links and no event.
    """
    size = half_octaves(graph.operator_bytes)
    like = (graph.operator_type, size, graph.operator_n_ranks)
    usual = _others_transfer(graph, combined(*like)[1])
    of_group = _others_transfer(graph, combined(*like, graph.operator_group)[1])
    return np.where(np.isfinite(usual), np.fmax(usual, of_group), np.nan)


def _others_transfer(graph: Graph, code: IntArray) -> FloatArray:
    """Median transfer of the other operators of the same code (O,); NaN with fewer than two others."""
    usual = np.full(len(code), np.nan)
    order = stable_order(code)
    for part in np.split(order, np.flatnonzero(np.diff(code[order])) + 1):
        if len(part) >= FEWEST_PEERS:
            usual[part] = others_median(graph.transfer_us[part])
    return usual


def _group_links(
    evidence: JobEvidence, group: str, steps: set[int], limits: Thresholds
) -> tuple[tuple[Link, ...], bool]:
    """The slowest link of a group where its entry shows the event; else all of them, RDMA before others.

    And whether an entry shows it.
    """
    table = evidence.links
    if not table.num_rows:
        return (), False
    groups, group_code = codes(table["group"])
    transports, transport = codes(table["transport"])
    if group not in groups:
        return (), False
    inside = (group_code == groups.index(group)) & np.isin(table["step"].to_numpy(), sorted(steps))
    rows = np.flatnonzero(inside)
    if not len(rows):
        return (), False
    time = numbers(table["time_us"])[rows]
    src, dst = table["src_rank"].to_numpy()[rows], table["dst_rank"].to_numpy()[rows]
    is_rdma = np.isin(transport[rows], [i for i, name in enumerate(transports) if name.upper() == "RDMA"])
    is_shown = bool(lasted_far_too_long(time, float(np.median(time)), limits).any())
    if is_shown:
        rows_hit = [int(np.argmax(time))]
    else:
        rows_hit = np.flatnonzero(is_rdma if is_rdma.any() else ~is_rdma).tolist()
    found = sorted({(int(src[i]), int(dst[i]), transports[transport[rows[i]]]) for i in rows_hit})
    return tuple(Link(Rank(one), Rank(other), name) for one, other, name in found), is_shown
