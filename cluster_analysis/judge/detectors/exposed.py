"""Communication that no computing covers: how much of it moves data, and how much of it waits for others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.numeric.stats import median, sigma
from cluster_analysis.replay.job_evidence import JobEvidence
from cluster_analysis.replay.replay import Graph
from cluster_analysis.thresholds.limits import Thresholds
from cluster_analysis.trace.calls import codes, numbers
from cluster_run.facts import fact
from cluster_run.findings import Evidence


def detect(case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give one finding where much of the step is communication that no computing covers."""
    yield from _exposed(case.evidence, case.view, case.limits)


def _exposed(evidence: JobEvidence, view: JobView, limits: Thresholds) -> list[Suspect]:
    """Return one finding where much of the step is communication beside no computing.

    Its cost is what the step would lose if the transfers of the group that moves data longest were covered:
    the waiting in it belongs to whoever came last, and to findings of their own.
    """
    exposed = view.step_us - view.computing_us - view.free_us - np.nan_to_num(view.preparing_us)
    typical = float(median(exposed))
    if not typical >= limits.exposed_share * view.mean_step_us or view.graph is None:
        return []
    names, group = codes(evidence.matched["group"])
    if not names:
        return []
    n_ranks = numbers(evidence.matched["n_ranks"])
    moved = np.bincount(group, numbers(evidence.matched["transfer_us"]) * n_ranks, len(names))
    waited = np.bincount(group, numbers(evidence.matched["total_wait_us"]), len(names))
    share = moved.sum() / max(float(moved.sum() + waited.sum()), 1.0)
    longest = int(np.argmax(moved))
    role = view.topology.groups[names[longest]].role if names[longest] in view.topology.groups else "unknown"
    same = [
        number
        for number, name in enumerate(view.graph.groups)
        if name in view.topology.groups and view.topology.groups[name].role == role
    ] or [number for number, name in enumerate(view.graph.groups) if name == names[longest]]
    absent = view.expected_ranks > len(view.ranks)
    return [
        Suspect(
            key="exposed_communication",
            kind="exposed_communication",
            step_positions=tuple(range(len(view.steps))),
            evidence=(
                Evidence(
                    "communication_not_overlapped_us",
                    typical,
                    typical,
                    float(np.nan_to_num(sigma(median(exposed, 1)))),
                    len(view.ranks),
                ),
            ),
            facts=(
                fact(
                    "exposed_of_some_ranks" if absent else "exposed",
                    exposed_us=typical,
                    step_share=typical / view.mean_step_us,
                    moving_share=share,
                    waiting_share=1.0 - share,
                    role=role,
                ),
            ),
            link_factor=_left_over(view.graph, evidence, same),
            confidence="medium" if not absent else "low",
            is_alarm=False,
        )
    ]


def _left_over(graph: Graph, evidence: JobEvidence, same: Sequence[int]) -> FloatArray:
    """What would remain of each operator's transfer (O,) if the data of these groups moved beside computing.

    A wait for ranks without files is in the graph's transfers and stays.
    """
    lasts = np.bincount(graph.operator_group, graph.transfer_us, len(graph.groups))
    names, group = codes(evidence.matched["group"])
    by_name = dict(
        zip(names, np.bincount(group, numbers(evidence.matched["transfer_us"]), len(names)), strict=True)
    )
    factor = np.ones(len(graph.groups))
    for number in same:
        moved = float(by_name.get(graph.groups[number], 0.0))
        factor[number] = 1.0 - min(1.0, moved / lasts[number]) if lasts[number] > 0 else 1.0
    return np.asarray(factor[graph.operator_group])
