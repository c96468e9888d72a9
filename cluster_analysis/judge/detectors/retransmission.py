"""Retransmission: single operators that last many times as long as all others of their kind.

A lost packet makes an RDMA connection wait for its timer, seconds as configured by default. It is an
event, not a property of the link's bandwidth, which the other operators show to be in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.measures.links import Observations
from cluster_analysis.judge.measures.slow_units import beyond_class
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.sorting import half_octaves
from cluster_analysis.numeric.stats import median, sigma
from cluster_analysis.replay.replay import Graph
from cluster_analysis.thresholds.common import TWICE
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.facts import fact
from cluster_run.findings import Evidence, Link
from cluster_run.ids import Rank


def detect(case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give operators that lasted far too long; groups that stood still in the same steps are one event.

    Fixed one by one they save nothing, as each waits for the other.
    """
    graph = case.view.graph
    if graph is None or not (graph.transfer_us > case.limits.retransmission_us).any():
        return
    usual_us = _usual_us(graph, case.limits)
    hit = _is_event(graph.transfer_us, usual_us, case.limits)
    by_steps: dict[tuple[int, ...], list[tuple[IntArray, tuple[Link, ...]]]] = {}
    for group in np.unique(graph.operator_group[hit]):
        operators = np.flatnonzero(hit & (graph.operator_group == group))
        steps = tuple(sorted(set(graph.operator_step[operators].tolist())))
        in_steps = [case.view.steps[step] for step in steps]
        links, is_shown = _links_of(case.links, graph.groups[group], in_steps, case.limits)
        # The shortest part of a collective is no wait, a message's may be: its link must show the event.
        if is_shown or not links or not graph.is_message[operators].all():
            by_steps.setdefault(steps, []).append((operators, links))
    for steps, groups in by_steps.items():
        yield _suspect(case.view, graph, groups, steps, usual_us)


def _is_event(time_us: FloatArray, usual_us: FloatArray | float, limits: Thresholds) -> BoolArray:
    """Whether times are beyond what contention makes of the usual ones, and by so much longer: an event."""
    with np.errstate(invalid="ignore"):
        return np.asarray((time_us > TWICE * usual_us) & (time_us - usual_us > limits.retransmission_us))


def _usual_us(graph: Graph, limits: Thresholds) -> FloatArray:
    """What operators of the same kind, size and number of ranks usually take (O,), and those of its group.

    A group of which all operators last long has slow links and no event. NaN where nobody knows, and of
    messages whose other end is not known: all that they took may be waiting.
    """
    took = np.log(np.maximum(graph.transfer_us, 1e-3))  # one of no time has no logarithm
    like = (graph.operator_type, half_octaves(graph.operator_bytes), graph.operator_n_ranks)
    each = np.arange(len(took))
    of_all = beyond_class(each, like, took, limits.link_effect)
    of_group = beyond_class(each, (*like, graph.operator_group), took, limits.link_effect)
    usual_us = np.exp(took - np.fmin(of_all, of_group))
    is_alone = graph.is_p2p & (np.minimum(graph.sender, graph.receiver) == len(graph.rank))
    usual_us[graph.operator[is_alone]] = np.nan
    return np.asarray(usual_us)


def _suspect(
    view: JobView,
    graph: Graph,
    groups: list[tuple[IntArray, tuple[Link, ...]]],
    steps: tuple[int, ...],
    usual_us: FloatArray,
) -> Suspect:
    """The suspect of operators of groups, and of their links; `usual_us` (O,) is what each usually takes."""
    operators = np.concatenate([own for own, _ in groups])
    links = tuple(dict.fromkeys(link for _, own in groups for link in own))
    ranks_of = [graph.ranks[np.unique(graph.rank[np.isin(graph.operator, own)])] for own, _ in groups]
    ids = tuple(Rank(rank) for rank in np.unique(np.concatenate(ranks_of)).tolist())
    factor = np.ones(len(graph.transfer_us))
    factor[operators] = usual_us[operators] / graph.transfer_us[operators]
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
    is_inside = all(len(view.hosts_of_ranks(ranks.tolist())) == 1 for ranks in ranks_of)
    facts = [said, fact("host_link_stopped" if is_inside else "packets_lost")]
    if len(groups) > 1:
        facts.append(fact("stood_still_together", n_groups=len(groups)))
    return Suspect(
        key=f"retransmission-{one}-{other}",
        kind="retransmission",
        ranks=ids,
        cause="bandwidth",
        pattern="transient" if len(steps) == 1 else "intermittent",
        step_positions=steps,
        evidence=(Evidence("transfer_us", took, usual, spread, int(alike.sum()) - 1),),
        facts=tuple(facts),
        links=links,
        link_factor=factor,
    )


def _links_of(
    seen: Observations | None, group: str, steps: Sequence[int], limits: Thresholds
) -> tuple[tuple[Link, ...], bool]:
    """The slowest link of a group where its entry shows the event, else all of them; and whether one does."""
    if seen is None:
        return (), False
    at = np.flatnonzero((np.array(seen.groups) == group)[seen.group] & np.isin(seen.step, steps))
    is_shown = bool(_is_event(seen.time_us[at], median(seen.time_us[at]), limits).any())
    if is_shown:
        at = at[[np.argmax(seen.time_us[at])]]
    found = zip(seen.src[at].tolist(), seen.dst[at].tolist(), seen.transport[at].tolist(), strict=True)
    links = (Link(Rank(src), Rank(dst), seen.transports[code]) for src, dst, code in sorted(set(found)))
    return tuple(links), is_shown


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
