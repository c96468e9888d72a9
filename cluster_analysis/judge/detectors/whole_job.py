"""Time that the whole job loses alike: waiting for input, for the host, in too many small operators.

No rank stands out in these, so that no comparison of peers finds them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.judge.case import Case
from cluster_analysis.judge.suspects import Suspect, Where
from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.numeric.stats import median, sigma
from cluster_analysis.replay.job_evidence import JobEvidence
from cluster_analysis.thresholds.common import HALFWAY
from cluster_analysis.thresholds.limits import Thresholds
from cluster_analysis.trace.calls import numbers
from cluster_run.facts import Fact, fact
from cluster_run.findings import Cause, Confidence, Evidence, WorkloadKind


def detect(case: Case, found: Sequence[Suspect]) -> Iterator[Suspect]:
    """Give verdicts on the whole job."""
    yield from _input_bound(case.evidence, case.view, case.limits)
    yield from _host_bound(case.evidence, case.view, case.limits)
    yield from _small_packets(case.evidence, case.view, case.limits)


def _input_bound(evidence: JobEvidence, view: JobView, limits: Thresholds) -> list[Suspect]:
    """A late first operator. Only a file that times the data loader says if it is the input's fault."""
    typical = float(median(view.preparing_us))
    if not typical >= limits.input_bound_share * view.mean_step_us:
        return []
    reading, confidence = _why_late(evidence.counters, len(view.steps), typical)
    return [
        _suspect(
            view,
            "input_bound",
            view.preparing_us,
            cause="input",
            where="head",
            said=(
                fact(
                    "late_first_operator",
                    wait_us=typical,
                    step_share=typical / view.mean_step_us,
                    **_on_whom(view),
                ),
                reading,
            ),
            confidence=confidence,
        )
    ]


def _on_whom(view: JobView) -> Mapping[str, int]:
    """How many ranks are alike in it."""
    return {"n_ranks": len(view.ranks)}


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
    wanted = pc.and_(
        pc.equal(counters["metric"].cast(pa.string()), metric), pc.equal(counters["label"], label)
    )
    spent = counters.filter(wanted)
    return float(median(numbers(spent["value"]))) / max(n_steps, 1) if spent.num_rows else None


def _host_bound(evidence: JobEvidence, view: JobView, limits: Thresholds) -> list[Suspect]:
    typical, computing = float(median(view.free_us)), float(median(view.computing_us))
    if not typical >= limits.host_bound_share * (typical + computing):
        return []
    parts = {
        f"{name}_us": _of_typical_rank(evidence.counters, "idle_us", name, len(view.steps))
        for name in ("synchronising", "collecting", "dispatching", "elsewhere")
    }
    known = {name: value for name, value in parts.items() if value is not None}
    why = (fact("idle_split", **known),) if len(known) == len(parts) else ()
    return [
        _suspect(
            view,
            "host_bound",
            view.free_us,
            cause="dispatch",
            where="spread",
            said=(
                fact(
                    "devices_idle", idle_us=typical, step_share=typical / view.mean_step_us, **_on_whom(view)
                ),
                *why,
            ),
        )
    ]


def _suspect(
    view: JobView,
    kind: WorkloadKind,
    time_us: FloatArray,
    *,
    cause: Cause,
    where: Where,
    said: tuple[Fact, ...],
    confidence: Confidence = "high",
) -> Suspect:
    typical = float(median(time_us))
    return Suspect(
        key=kind,
        kind=kind,
        cause=cause,
        step_positions=tuple(range(len(view.steps))),
        evidence=(
            Evidence(
                f"{kind}_us",
                typical,
                typical,
                float(np.nan_to_num(sigma(median(time_us, 1)))),
                len(view.ranks),
            ),
        ),
        facts=said,
        confidence=confidence,
        excess_us=np.nan_to_num(time_us),
        where=where,
        is_alarm=False,
    )


def _small_packets(evidence: JobEvidence, view: JobView, limits: Thresholds) -> list[Suspect]:
    """Many operators of one kind and role in a step, each so small that latency counts."""
    graph = view.graph
    if graph is None:
        return []
    groups = view.topology.groups
    found = []
    is_collective = graph.operator_n_ranks > 1
    for kind, name in enumerate(graph.types):
        of_kind = is_collective & (graph.operator_type == kind) & (graph.operator_bytes < limits.small_bytes)
        for group in np.unique(graph.operator_group[of_kind]):
            here = np.flatnonzero(of_kind & (graph.operator_group == group))
            a_step = len(here) / graph.n_steps
            time_us = float(graph.transfer_us[here].sum()) / graph.n_steps
            if a_step >= limits.small_count and time_us >= limits.small_share * view.mean_step_us:
                found.append((time_us, a_step, name, graph.groups[group], here))
    if not found:
        return []
    time_us, a_step, name, group_name, here = max(found, key=lambda one: (one[0], one[3]))
    size = float(np.median(graph.operator_bytes[here]))
    role = groups[group_name].role if group_name in groups else "unknown"
    return [
        Suspect(
            key="small_packets",
            kind="small_packets",
            cause="bandwidth",
            step_positions=tuple(range(len(view.steps))),
            evidence=(Evidence("operator_bytes", size, limits.small_bytes, 0.0, len(here)),),
            facts=(
                fact(
                    "small_operators",
                    n_a_step=round(a_step),
                    op_type=name,
                    size_bytes=size,
                    role=role,
                    time_us=time_us,
                ),
            ),
            is_alarm=False,
        )
    ]
