"""What is said of operators and links that were sent again, and what a repair would take away."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cluster_analysis.judge.measures.link_events import LinkEvent
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.numeric.stats import sigma
from cluster_analysis.replay.replay import Graph
from cluster_run.facts import Fact, fact
from cluster_run.findings import Evidence, Link
from cluster_run.ids import Rank


def suspect_of_operators(
    view: JobView, graph: Graph, operators: IntArray, usual_us: FloatArray, links: tuple[Link, ...]
) -> Suspect:
    """The suspect of `operators` (positions) of one group; `usual_us` (O,) is what each usually takes."""
    factor = np.ones(len(graph.transfer_us))
    factor[operators] = np.minimum(usual_us[operators] / np.maximum(graph.transfer_us[operators], 1e-3), 1.0)
    members = np.isin(graph.operator, operators)
    ranks = sorted({int(rank) for rank in graph.ranks[np.unique(graph.rank[members])]})
    ids = tuple(Rank(rank) for rank in ranks)
    steps = sorted(set(graph.operator_step[operators].tolist()))
    worst = int(operators[np.argmax(graph.transfer_us[operators])])
    kind = graph.types[graph.operator_type[worst]]
    spread = float(np.nan_to_num(sigma(graph.transfer_us[graph.operator_type == graph.operator_type[worst]])))
    one_link = len(links) == 1
    took_us, peers_us = float(graph.transfer_us[worst]), float(usual_us[worst])
    long = {"n_operators": len(operators), "op_type": kind, "took_us": took_us, "usual_us": peers_us}
    name = f"{links[0].src}-{links[0].dst}" if one_link else f"{ranks[0]}-{ranks[-1]}"
    return Suspect(
        key=f"retransmission-{name}",
        kind="retransmission",
        ranks=ids,
        hosts=(),
        cause="bandwidth",
        pattern="transient" if len(steps) == 1 else "intermittent",
        step_positions=tuple(steps),
        evidence=(
            Evidence("transfer_us", took_us, peers_us, spread,
                     int((graph.operator_type == graph.operator_type[worst]).sum()) - 1),
        ),
        facts=(
            fact("operators_took_long_between", **long, src=links[0].src, dst=links[0].dst)
            if one_link
            else fact("operators_took_long", **long, first=ranks[0], last=ranks[-1]),
            _why(view, ids),
        ),
        links=links,
        link_factor=factor,
        is_alarm=True,
    )  # fmt: skip


def suspect_of_link(view: JobView, events: Sequence[LinkEvent]) -> Suspect:
    """The suspect of a link's events, the longest first, that no operator shows: it cannot be replayed."""
    longest = events[0]
    link = longest.links[0]
    groups = view.topology.groups
    members = {rank for one in events if one.group in groups for rank in groups[one.group].ranks}
    ranks = tuple(sorted(members)) or (link.src, link.dst)
    steps = np.isin(view.steps, [one.step for one in events])
    return Suspect(
        key=f"retransmission-{link.src}-{link.dst}",
        kind="retransmission",
        ranks=ranks,
        hosts=(),
        cause="bandwidth",
        pattern="intermittent" if steps.sum() > 1 else "transient",
        step_positions=tuple(np.flatnonzero(steps).tolist()),
        evidence=(
            Evidence("link_us", longest.time_us, longest.usual_us, longest.spread_us, longest.n_others),
        ),
        facts=(
            fact(
                "transfer_took_long",
                src=link.src,
                dst=link.dst,
                transport=link.transport,
                op_type=longest.op_type,
                took_us=longest.time_us,
                usual_us=longest.usual_us,
            ),
            _why(view, ranks),
        ),
        links=tuple(dict.fromkeys(other for one in events for other in one.links)),
        is_alarm=True,
    )


def _is_inside(view: JobView, ranks: Sequence[Rank]) -> bool:
    """Whether ranks are known to be on one host, where no network is between them."""
    return len({view.topology.hosts.get(rank) for rank in ranks} | {None}) == 2


def _why(view: JobView, ranks: Sequence[Rank]) -> Fact:
    return fact("host_link_stopped" if _is_inside(view, ranks) else "packets_lost")
