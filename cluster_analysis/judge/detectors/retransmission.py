"""Retransmission: single operators that last many times as long as all others of their kind.

A lost packet makes an RDMA connection wait for its timer, seconds as configured by default. It is an
event, not a property of the link's bandwidth, which the other operators show to be in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.sorting import begins, combined, half_octaves, stable_order
from cluster_analysis.numeric.stats import median, others_median, sigma
from cluster_analysis.replay.job_evidence import JobEvidence
from cluster_analysis.replay.message_times import wait_for_each_other
from cluster_analysis.replay.replay import Graph
from cluster_analysis.thresholds.common import FEWEST_PEERS, TWICE
from cluster_analysis.thresholds.limits import Thresholds
from cluster_analysis.trace.calls import codes, numbers
from cluster_run.facts import fact
from cluster_run.findings import Evidence, Link
from cluster_run.ids import Rank


def detect(case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give groups in which operators lasted far too long; those that stood still in the same steps as one.

    Fixed one by one they save nothing, as each waits for the other.
    """
    graph = case.view.graph
    if graph is None:
        return
    by_steps: dict[tuple[int, ...] | None, list[Suspect]] = {}
    for one in _by_group(case.evidence, case.view, graph, case.limits):
        by_steps.setdefault(one.step_positions, []).append(one)
    for same in by_steps.values():
        yield _together(same)


def _together(suspects: Sequence[Suspect]) -> Suspect:
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


def _is_event(time_us: FloatArray, usual_us: FloatArray | float, limits: Thresholds) -> BoolArray:
    """Whether times are beyond what contention makes of the usual ones, and by so much longer: an event."""
    with np.errstate(invalid="ignore"):
        return np.asarray((time_us > TWICE * usual_us) & (time_us - usual_us > limits.retransmission_us))


def _by_group(evidence: JobEvidence, view: JobView, graph: Graph, limits: Thresholds) -> Iterator[Suspect]:
    """Give the groups an operator of which lasted far longer than the like of it on all its ranks."""
    usual = _usual_transfer(graph)
    hit = _is_event(graph.transfer_us, usual, limits)
    # A receive lasts long when its sender is late; only what both ends of it saw is a transfer.
    single = np.flatnonzero(hit & (graph.operator_n_ranks < 2))
    hit[single] = _is_lone_transfer(graph, single)
    if not hit.any():
        return
    # Sends that wait for their receivers are long for other reasons too.
    waited = np.zeros(len(hit), bool)
    waited[graph.operator[graph.waits_for_receiver & ~_is_batch_of_two(graph)]] = True
    waited |= _receives_of(graph, waited)
    hit |= _receives_of(graph, hit)
    usual = np.where(np.isfinite(usual), usual, np.nanmedian(usual))
    for group in np.unique(graph.operator_group[hit]):
        operators = np.flatnonzero(hit & (graph.operator_group == group))
        steps = sorted(set(graph.operator_step[operators].tolist()))
        in_steps = [view.steps[step] for step in steps]
        links, is_shown = _group_links(evidence, graph.groups[group], in_steps, limits)
        # The shortest part of a collective is no wait, a message's may be: its link must show the event.
        if graph.is_message[operators].all() and not is_shown and (links or waited[operators].all()):
            continue
        yield _suspect(view, graph, operators, steps, usual, links)


def _suspect(
    view: JobView,
    graph: Graph,
    operators: IntArray,
    steps: list[int],
    usual_us: FloatArray,
    links: tuple[Link, ...],
) -> Suspect:
    """The suspect of `operators` (positions) of one group; `usual_us` (O,) is what each usually takes."""
    factor = np.ones(len(graph.transfer_us))
    factor[operators] = np.minimum(usual_us[operators] / np.maximum(graph.transfer_us[operators], 1e-3), 1.0)
    ranks = np.sort(graph.ranks[np.unique(graph.rank[np.isin(graph.operator, operators)])])
    ids = tuple(Rank(rank) for rank in ranks.tolist())
    worst = int(operators[np.argmax(graph.transfer_us[operators])])
    alike = graph.operator_type == graph.operator_type[worst]
    took, usual = float(graph.transfer_us[worst]), float(usual_us[worst])
    spread = float(np.nan_to_num(sigma(graph.transfer_us[alike])))
    kind = graph.types[graph.operator_type[worst]]
    long = {"n_operators": len(operators), "op_type": kind, "took_us": took, "usual_us": usual}
    if len(links) == 1:
        one, other = links[0].src, links[0].dst
        said = fact("operators_took_long_between", **long, src=one, dst=other)
    else:
        one, other = ids[0], ids[-1]
        said = fact("operators_took_long", **long, first=one, last=other)
    # Inside a host no network is between ranks.
    is_inside = len({view.topology.hosts.get(rank) for rank in ids} | {None}) == 2
    return Suspect(
        key=f"retransmission-{one}-{other}",
        kind="retransmission",
        ranks=ids,
        cause="bandwidth",
        pattern="transient" if len(steps) == 1 else "intermittent",
        step_positions=tuple(steps),
        evidence=(Evidence("transfer_us", took, usual, spread, int(alike.sum()) - 1),),
        facts=(said, fact("host_link_stopped" if is_inside else "packets_lost")),
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


def _is_lone_transfer(graph: Graph, operators: IntArray) -> BoolArray:
    """Whether both ends of a message waited for nobody else."""
    instance_of = np.full(len(graph.transfer_us), -1)
    instance_of[graph.operator] = np.arange(len(graph.operator))
    at = instance_of[operators]
    n = len(graph.rank)
    return np.asarray((graph.receiver[at] < n) & ((graph.sender[at] == n) | _is_batch_of_two(graph)[at]))


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
    begin = np.flatnonzero(begins(code[order]))
    count = np.diff(np.r_[begin, len(order)])
    for n in np.unique(count[count >= FEWEST_PEERS]).tolist():  # all of as many together
        alike = order[begin[count == n][:, None] + np.arange(n)]
        usual[alike] = others_median(graph.transfer_us[alike])
    return usual


def _group_links(
    evidence: JobEvidence, group: str, steps: Sequence[int], limits: Thresholds
) -> tuple[tuple[Link, ...], bool]:
    """The slowest link of a group where its entry shows the event; else all of them, RDMA before others.

    And whether an entry shows it.
    """
    groups, group_code = codes(evidence.links["group"])
    inside = np.isin(group_code, [at for at, name in enumerate(groups) if name == group])
    table = evidence.links.filter(inside & np.isin(evidence.links["step"].to_numpy(), steps))
    if not table.num_rows:
        return (), False
    time, names = numbers(table["time_us"]), table["transport"].cast("string").to_pylist()
    ends = zip(table["src_rank"].to_pylist(), table["dst_rank"].to_pylist(), names, strict=True)
    links = [Link(Rank(src), Rank(dst), name) for src, dst, name in ends]
    is_shown = bool(_is_event(time, float(np.median(time)), limits).any())
    if is_shown:
        return (links[int(np.argmax(time))],), True
    remote = [one for one in links if one.transport.upper() == "RDMA"]
    return tuple(sorted(set(remote or links), key=lambda one: (one.src, one.dst, one.transport))), False
