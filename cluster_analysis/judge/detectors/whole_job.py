"""Time that the whole job loses alike: waiting for input, for the host, in communication that nothing covers.

No rank stands out in these, so that no comparison of peers finds them: a part of every rank's step is held
against the step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.measures.counters import by_rank
from cluster_analysis.judge.suspects import Suspect, Where
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.numeric.stats import median, sigma
from cluster_analysis.replay.job_evidence import JobEvidence
from cluster_analysis.replay.replay import Graph
from cluster_analysis.thresholds.common import HALFWAY
from cluster_analysis.thresholds.limits import Thresholds
from cluster_analysis.trace.calls import codes, numbers
from cluster_run.facts import Fact, fact
from cluster_run.findings import Cause, Confidence, Evidence, WorkloadKind


def detect(case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give verdicts on the whole job."""
    view, limits = case.view, case.limits
    local_us = float(median(view.free_us) + median(view.computing_us))
    late = _long_part("input_bound", "input_bound_us", view.preparing_us, "input", "head")
    idle = _long_part("host_bound", "host_bound_us", view.free_us, "dispatch")
    exposed = _long_part("exposed_communication", "communication_not_overlapped_us", view.uncovered_us)
    if late.evidence[0].value >= limits.input_bound_share * view.mean_step_us:
        yield _input_bound(case, late)
    if idle.evidence[0].value >= limits.host_bound_share * local_us:
        yield _host_bound(case, idle)
    if exposed.evidence[0].value >= limits.exposed_share * view.mean_step_us:
        yield from _exposed(case, exposed)
    yield from _small_packets(view, limits)


def _long_part(
    kind: WorkloadKind, metric: str, time_us: FloatArray, cause: Cause = "unknown", where: Where = "spread"
) -> Suspect:
    """The suspect of a part of the step (R, S); its evidence says how long it is on the typical rank."""
    typical, spread = float(median(time_us)), float(np.nan_to_num(sigma(median(time_us, 1))))
    row = Evidence(metric, typical, typical, spread, len(time_us))
    excess = np.nan_to_num(time_us)
    return Suspect(kind, kind, (row,), cause=cause, excess_us=excess, where=where, is_alarm=False)


def _input_bound(case: Case, plain: Suspect) -> Suspect:
    """A late first operator. Only a file that times the data loader says if it is the input's fault."""
    view, typical_us = case.view, plain.evidence[0].value
    share, n_ranks = typical_us / view.mean_step_us, len(view.ranks)
    said = fact("late_first_operator", wait_us=typical_us, step_share=share, n_ranks=n_ranks)
    reading, confidence = _why_late(case.evidence.counters, len(view.steps), typical_us)
    return replace(plain, facts=(said, reading), confidence=confidence)


def _why_late(counters: pa.Table, n_steps: int, typical_us: float) -> tuple[Fact, Confidence]:
    """What the time before the first operator went into, as far as files time it, and how sure that is."""
    loader_us = _of_typical_rank(counters, "data_loader_us", "", n_steps)
    copy_us = _of_typical_rank(counters, "head_copy_us", "host", n_steps)
    moved_us = _of_typical_rank(counters, "head_copy_us", "device", n_steps)
    if loader_us is None:
        return fact("loader_not_timed"), "low"
    if loader_us >= HALFWAY * typical_us:
        return fact("loader_takes_most", loader_us=loader_us), "high"
    if copy_us is None:
        return fact("loader_takes_little", loader_us=loader_us), "medium"
    rest_us = max(typical_us - loader_us - copy_us, 0.0)
    told = fact("head_split", loader_us=loader_us, copy_us=copy_us, moved_us=moved_us or 0.0, rest_us=rest_us)
    return told, "medium" if rest_us > HALFWAY * typical_us else "high"


def _of_typical_rank(counters: pa.Table, metric: str, label: str, n_steps: int) -> float | None:
    """What the typical rank spent in something, a step; None where no file times it."""
    spent = by_rank(counters, metric, label)
    return float(median(np.array(list(spent.values()), float))) / max(n_steps, 1) if spent else None


def _host_bound(case: Case, plain: Suspect) -> Suspect:
    """Devices that idle between operators on all ranks, and where the host spent that time."""
    view, typical_us = case.view, plain.evidence[0].value
    parts = {
        f"{name}_us": _of_typical_rank(case.evidence.counters, "idle_us", name, len(view.steps))
        for name in ("synchronising", "collecting", "dispatching", "elsewhere")
    }
    known = {name: value for name, value in parts.items() if value is not None}
    why = (fact("idle_split", **known),) if len(known) == len(parts) else ()
    share, n_ranks = typical_us / view.mean_step_us, len(view.ranks)
    said = fact("devices_idle", idle_us=typical_us, step_share=share, n_ranks=n_ranks)
    return replace(plain, facts=(said, *why))


def _exposed(case: Case, plain: Suspect) -> Iterator[Suspect]:
    """Communication that no computing covers: how much of it moves data, and how much of it waits for others.

    Its cost is what the step would lose if the transfers of the group that moves data longest were covered:
    the waiting in it belongs to whoever came last, and to findings of their own.
    """
    evidence, view, typical_us = case.evidence, case.view, plain.evidence[0].value
    names, group = codes(evidence.matched["group"])
    if view.graph is None or not names:
        return
    n_ranks, transfer_us = numbers(evidence.matched["n_ranks"]), numbers(evidence.matched["transfer_us"])
    moved = np.bincount(group, transfer_us * n_ranks, len(names))
    waited = np.bincount(group, numbers(evidence.matched["total_wait_us"]), len(names))
    share = moved.sum() / max(float(moved.sum() + waited.sum()), 1.0)
    longest = names[int(np.argmax(moved))]
    role = _role_of(view, longest)
    same = [
        name for name in view.graph.groups if name == longest or _role_of(view, name) == role != "unknown"
    ]
    absent = view.expected_ranks > len(view.ranks)
    said = fact(
        "exposed_of_some_ranks" if absent else "exposed",
        exposed_us=typical_us,
        step_share=typical_us / view.mean_step_us,
        moving_share=share,
        waiting_share=1.0 - share,
        role=role,
    )
    yield replace(
        plain,
        facts=(said,),
        confidence="low" if absent else "medium",
        excess_us=None,
        link_factor=_left_over(view.graph, evidence, same),
    )


def _left_over(graph: Graph, evidence: JobEvidence, same: Sequence[str]) -> FloatArray:
    """What would remain of each operator's transfer (O,) if the data of these groups moved beside computing.

    A wait for ranks without files is in the graph's transfers and stays.
    """
    lasts = np.bincount(graph.operator_group, graph.transfer_us, len(graph.groups))
    names, group = codes(evidence.matched["group"])
    moved = np.bincount(group, numbers(evidence.matched["transfer_us"]), len(names))
    moved_by = dict(zip(names, moved.tolist(), strict=True))
    factor = [
        1.0 - min(1.0, moved_by.get(name, 0.0) / us) if name in same and us > 0 else 1.0
        for name, us in zip(graph.groups, lasts.tolist(), strict=True)
    ]
    return np.array(factor)[graph.operator_group]


def _small_packets(view: JobView, limits: Thresholds) -> Iterator[Suspect]:
    """Give the costliest of many operators of one kind and role in a step, so small that latency counts."""
    graph = view.graph
    if graph is None:
        return
    small = np.flatnonzero((graph.operator_n_ranks > 1) & (graph.operator_bytes < limits.small_bytes))
    alike = np.stack([graph.operator_type[small], graph.operator_group[small]])
    (op_type, group), code = np.unique(alike, axis=1, return_inverse=True)
    code = np.ravel(code)
    time_us = np.bincount(code, graph.transfer_us[small], len(group)) / graph.n_steps
    a_step = np.bincount(code, minlength=len(group)) / graph.n_steps
    is_many = (a_step >= limits.small_count) & (time_us >= limits.small_share * view.mean_step_us)
    if not is_many.any():
        return
    worst = int(np.argmax(np.where(is_many, time_us, 0.0)))
    sizes = graph.operator_bytes[small[code == worst]]
    said = fact(
        "small_operators",
        n_a_step=round(a_step[worst]),
        op_type=graph.types[op_type[worst]],
        size_bytes=float(np.median(sizes)),
        role=_role_of(view, graph.groups[group[worst]]),
        time_us=float(time_us[worst]),
    )
    row = Evidence("operator_bytes", float(np.median(sizes)), limits.small_bytes, 0.0, len(sizes))
    yield Suspect("small_packets", "small_packets", (row,), cause="bandwidth", facts=(said,), is_alarm=False)


def _role_of(view: JobView, group: str) -> str:
    groups = view.topology.groups
    return groups[group].role if group in groups else "unknown"
