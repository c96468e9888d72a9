"""Time that the whole job loses alike: waiting for input, for the host, in communication that nothing covers.

No rank stands out in these, so no comparison of peers finds them: a part of every rank's step is compared
with the step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.measures.counters import by_rank
from cluster_analysis.judge.suspects import Suspect
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import FloatArray, codes, numbers
from cluster_analysis.numeric.sorting import combined
from cluster_analysis.numeric.stats import median, sigma
from cluster_analysis.replay.replay import Graph
from cluster_analysis.thresholds.common import HALFWAY
from cluster_analysis.thresholds.limits import Thresholds
from cluster_run.facts import Fact, fact
from cluster_run.findings import Confidence, Evidence
from cluster_run.kinds import WorkloadKind


def detect(case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give findings on the whole job."""
    view, limits = case.view, case.limits
    late = _long_part("input_bound", "input_bound_us", view.preparing_us)
    idle = _long_part("host_bound", "host_bound_us", view.free_us)
    exposed = _long_part("exposed_communication", "communication_not_overlapped_us", view.uncovered_us)
    late_us, idle_us, exposed_us = (one.evidence[0].value for one in (late, idle, exposed))
    step_us, n_ranks = view.mean_step_us, len(view.ranks)
    if late_us >= limits.input_bound_share * step_us:
        said = fact("late_first_operator", wait_us=late_us, step_share=late_us / step_us, n_ranks=n_ranks)
        reading, confidence = _why_late(case, late_us)
        yield replace(
            late, cause="input", head_us=late.excess_us, facts=(said, reading), confidence=confidence
        )
    if idle_us >= limits.host_bound_share * float(median(view.free_us) + median(view.computing_us)):
        said = fact("devices_idle", idle_us=idle_us, step_share=idle_us / step_us, n_ranks=n_ranks)
        yield replace(idle, cause="dispatch", facts=(said, *_why_idle(case)))
    if view.graph is not None and len(view.graph.groups):
        if exposed_us >= limits.exposed_share * step_us:
            yield _exposed(view, view.graph, case.evidence.matched, exposed)
        yield from _small_packets(view, view.graph, limits)


def _long_part(kind: WorkloadKind, metric: str, time_us: FloatArray) -> Suspect:
    """The suspect of a part of the step (R, S); its evidence says how long it is on the typical rank."""
    typical, spread = float(median(time_us)), float(np.nan_to_num(sigma(median(time_us, 1))))
    row = Evidence(metric, typical, typical, spread, len(time_us))
    return Suspect(kind, kind, (row,), excess_us=np.nan_to_num(time_us), is_alarm=False)


def _why_late(case: Case, late_us: float) -> tuple[Fact, Confidence]:
    """Cause of the time before the first operator, as far as files time it, and the confidence in it."""
    loader_us = _of_typical_rank(case, "data_loader_us")
    copy_us = _of_typical_rank(case, "head_copy_us", "host")
    moved_us = _of_typical_rank(case, "head_copy_us", "device") or 0.0
    if loader_us is None:
        return fact("loader_not_timed"), "low"
    if loader_us >= HALFWAY * late_us:
        return fact("loader_takes_most", loader_us=loader_us), "high"
    if copy_us is None:
        return fact("loader_takes_little", loader_us=loader_us), "medium"
    rest_us = max(late_us - loader_us - copy_us, 0.0)
    said = fact("head_split", loader_us=loader_us, copy_us=copy_us, moved_us=moved_us, rest_us=rest_us)
    return said, "medium" if rest_us > HALFWAY * late_us else "high"


def _why_idle(case: Case) -> list[Fact]:
    """Where the host spent the time in which devices idled, if files tell all of it."""
    names = ("synchronising", "collecting", "dispatching", "elsewhere")
    parts = {f"{name}_us": _of_typical_rank(case, "idle_us", name) for name in names}
    known = {name: us for name, us in parts.items() if us is not None}
    return [fact("idle_split", **known)] if len(known) == len(parts) else []


def _of_typical_rank(case: Case, metric: str, label: str = "") -> float | None:
    """Time a step that the typical rank spent in something; None where no file times it."""
    spent = by_rank(case.evidence.counters, metric, label)
    return float(median(np.array(list(spent.values())))) / len(case.view.steps) if spent else None


def _exposed(view: JobView, graph: Graph, matched: pa.Table, plain: Suspect) -> Suspect:
    """Communication that no computing covers: how much of it moves data, and how much of it waits for others.

    Its cost is what the step would lose if the transfers of the groups that move data longest were covered:
    the waiting in it belongs to whoever came last, and to findings of their own. A wait for ranks without
    files, or of messages whose other end is not known, is in the graph's transfers and stays.
    """
    (names, group), transfer_us = codes(matched["group"]), numbers(matched["transfer_us"])
    moved_us = np.bincount(group, transfer_us * numbers(matched["n_ranks"]), len(names))
    moving, waiting = float(moved_us.sum()), float(numbers(matched["total_wait_us"]).sum())
    share = moving / max(moving + waiting, 1.0)
    longest = names[int(np.argmax(moved_us))]
    role = _role_of(view, longest)
    same = {one for one in names if one == longest or _role_of(view, one) == role != "unknown"}
    of_same = np.isin(graph.operator_group, [at for at, one in enumerate(graph.groups) if one in same])
    moved_by_same_us = transfer_us[np.isin(group, [at for at, one in enumerate(names) if one in same])].sum()
    left = max(0.0, 1.0 - float(moved_by_same_us) / max(float(graph.transfer_us[of_same].sum()), 1.0))
    absent = view.expected_ranks > len(view.ranks)
    typical_us = plain.evidence[0].value
    fact_kind = "exposed_of_some_ranks" if absent else "exposed"
    said = fact(
        fact_kind, exposed_us=typical_us, step_share=typical_us / view.mean_step_us,
        moving_share=share, waiting_share=1.0 - share, role=role,
    )  # fmt: skip
    return replace(
        plain,
        facts=(said,),
        confidence="low" if absent else "medium",
        excess_us=None,
        link_factor=np.where(of_same, left, 1.0),
    )


def _small_packets(view: JobView, graph: Graph, limits: Thresholds) -> Iterator[Suspect]:
    """Give the costliest of many operators of one kind and role in a step, so small that latency counts."""
    small = np.flatnonzero((graph.operator_n_ranks > 1) & (graph.operator_bytes < limits.small_bytes))
    n_alike, alike = combined(graph.operator_type[small], graph.operator_group[small])
    time_us = np.bincount(alike, graph.transfer_us[small], n_alike) / graph.n_steps
    a_step = np.bincount(alike, minlength=n_alike) / graph.n_steps
    is_many = (a_step >= limits.small_count) & (time_us >= limits.small_share * view.mean_step_us)
    if not is_many.any():
        return
    worst = int(np.argmax(np.where(is_many, time_us, 0.0)))
    same = small[alike == worst]
    size = float(np.median(graph.operator_bytes[same]))
    said = fact(
        "small_operators", n_a_step=round(a_step[worst]), op_type=graph.types[graph.operator_type[same[0]]],
        size_bytes=size, role=_role_of(view, graph.groups[graph.operator_group[same[0]]]),
        time_us=float(time_us[worst]),
    )  # fmt: skip
    row = Evidence("operator_bytes", size, limits.small_bytes, 0.0, len(same))
    yield Suspect("small_packets", "small_packets", (row,), cause="bandwidth", facts=(said,), is_alarm=False)


def _role_of(view: JobView, group: str) -> str:
    groups = view.topology.groups
    return groups[group].role if group in groups else "unknown"
