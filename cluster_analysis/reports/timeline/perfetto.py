"""trace.json.gz: the communication of all ranks on one clock, for Perfetto and chrome://tracing.

Format: Chrome's Trace Event Format. A host is a process, a rank one or more threads of it (operators of two
streams may overlap, slices of one thread may not). Findings are slices of a process of their own, one a step,
so that they stand above what they explain. Times are µs since the first operator.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct, field

from cluster_analysis.reports.commands import place_text
from cluster_analysis.reports.timeline.clocks import Clocks, estimate_clocks
from cluster_analysis.result import AnalysisResult, Reported
from cluster_analysis.sentences.subjects import plain
from cluster_run.findings import Finding, Place
from cluster_run.ids import Rank, format_number_ranges
from cluster_run.layout import TIMELINE_NAME
from cluster_words.checks import next_check
from cluster_words.findings import summary

Event = dict[str, Any]

#: Viewers become slow beyond a few hundred thousand slices; whole steps are left out, the last ones first.
MAX_SLICES = 400_000
_FINDINGS_PID = 0
#: Threads of one rank: enough for two streams and point-to-point traffic.
_LANES = 4
_COLOURS = {"critical": "terrible", "warning": "bad", "info": "grey"}


class _Stage(Struct, frozen=True):
    """What the slices of all ranks share.

    `bounds` gathers begin and end of each step in µs, `free_at` when each lane of each rank is free again:
    a rank's operators may come in several tables. `lane_of` is the lane that a group of a rank took last.
    """

    result: AnalysisResult
    clocks: Clocks
    pids: Mapping[str, int]
    bounds: dict[int, list[float]]
    zero_us: float
    free_at: dict[tuple[Rank, int], float] = field(default_factory=dict)
    lane_of: dict[tuple[Rank, str], int] = field(default_factory=dict)


def files(given: Reported) -> Iterator[tuple[str, bytes]]:
    """Give the trace."""
    yield TIMELINE_NAME, render(given.result, given.collectives())


def render(result: AnalysisResult, collectives: Sequence[pa.Table], max_slices: int = MAX_SLICES) -> bytes:
    """Return the trace, gzip-compressed; the same input gives the same bytes.

    Args:
        result: what was found; findings become marked slices.
        collectives: tables of schema COLLECTIVES; together they hold each rank's operators once. They are
            gone through several times (clocks, then slices): a list, or what else can be read again.
        max_slices: more operators than this leave whole steps out, and the trace says which.
    """
    clocks = estimate_clocks(collectives, result.topology.hosts)
    steps, left_out = _chosen_steps(collectives, max_slices)
    text = io.BytesIO()
    with gzip.GzipFile(fileobj=text, mode="wb", compresslevel=6, mtime=0) as stream:
        about = _about(result, clocks, left_out)
        stream.write(f'{{"displayTimeUnit":"ms","otherData":{json.dumps(about)},"traceEvents":[\n'.encode())
        encode = json.JSONEncoder(separators=(",", ":")).encode
        separator = ""
        for event in _events(result, collectives, clocks, steps):
            stream.write(f"{separator}{encode(event)}".encode())
            separator = ",\n"
        stream.write(b"\n]}\n")
    return text.getvalue()


def _events(
    result: AnalysisResult, collectives: Sequence[pa.Table], clocks: Clocks, steps: frozenset[int]
) -> Iterator[Event]:
    pids = {host: position for position, host in enumerate(clocks.by_host, start=1)}
    yield _told("process_name", _FINDINGS_PID, 0, name="Findings")
    for host, pid in pids.items():
        clock = clocks.by_host[host]
        error = "not aligned" if clock.error_us is None else f"± {clock.error_us:.0f} µs"
        address = next((name for one, name in result.addresses.items() if str(one) == host), "")
        name = host if host.startswith("rank ") else f"host {host}"
        label = f"{name} {plain(address)}".strip()
        yield _told("process_name", pid, 0, name=f"{label} (clock {clock.offset_us:+.0f} µs, {error})")
        yield _told("process_sort_index", pid, 0, sort_index=pid)
    stage = _Stage(result, clocks, pids, {}, _earliest_us(collectives, clocks))
    for table in collectives:
        for rank in sorted(table["rank"].unique().to_pylist()):
            rows = table.filter(pc.equal(table["rank"], rank))
            rows = rows.filter(pc.is_in(rows["step"], value_set=pa.array(sorted(steps), pa.int64())))
            if rows.num_rows:
                yield from _rank_events(Rank(rank), rows, stage)
    for number, finding in enumerate(result.document.findings):
        yield from _finding_events(number, finding, stage)


def _rank_events(rank: Rank, rows: pa.Table, stage: _Stage) -> Iterator[Event]:
    rows = rows.filter(pc.and_(pc.is_valid(rows["start_ns"]), pc.is_valid(rows["elapse_us"])))
    rows = rows.take(
        pc.sort_indices(rows, sort_keys=[("start_ns", "ascending"), ("elapse_us", "descending")])
    )
    start_us = stage.clocks.aligned_us(rank, rows["start_ns"].to_numpy()) - stage.zero_us
    elapse_us = rows["elapse_us"].to_numpy()
    pid = stage.pids[stage.clocks.host_of[rank]]
    columns = {name: rows[name].to_pylist() for name in ("step", "op_type", "op_name", "group", "wait_us")}
    for position, (start, elapse) in enumerate(zip(start_us.tolist(), elapse_us.tolist(), strict=True)):
        free_at = [stage.free_at.get((rank, one), -1.0) for one in range(_LANES)]
        member = (rank, columns["group"][position])
        lane = _lane(free_at, start, stage.lane_of.get(member, 0))
        stage.lane_of[member] = lane
        # A lane that is still taken (all are) would make slices overlap: begin when the lane is free.
        begin = max(start, free_at[lane])
        stage.free_at[rank, lane] = max(start + elapse, begin)
        step = columns["step"][position]
        span = stage.bounds.setdefault(step, [start, start + elapse])
        span[0], span[1] = min(span[0], start), max(span[1], start + elapse)
        tid = rank * _LANES + lane + 1
        if free_at[lane] < 0:
            yield _told("thread_name", pid, tid, name=_thread_name(stage, rank, lane))
            yield _told("thread_sort_index", pid, tid, sort_index=tid)
        arguments = {"step": step, "rank": rank, "op": columns["op_name"][position]}
        group = stage.result.topology.groups.get(columns["group"][position])
        if group:
            arguments["group"] = f"{group.role.upper()} {format_number_ranges(group.ranks)}"
        if columns["wait_us"][position] is not None:
            arguments["wait_us"] = columns["wait_us"][position]
        yield {
            "ph": "X",
            "cat": "communication",
            "name": columns["op_type"][position] or "communication",
            "pid": pid,
            "tid": tid,
            "ts": round(begin, 3),
            "dur": round(max(0.0, start + elapse - begin), 3),
            "args": arguments,
        }


def _thread_name(stage: _Stage, rank: Rank, lane: int) -> str:
    topology = stage.result.topology
    place = Place(rank, topology.hosts.get(rank), topology.devices.get(rank))
    return plain(place_text(place, stage.result)) + (f" ({lane + 1})" if lane else "")


def _lane(free_at: Sequence[float], start_us: float, usual: int) -> int:
    """Return the usual lane of a group while it is free, else the first free one, else the one soonest free.

    A group keeps its lane, so that gradients do not jump between the lanes of their rank.
    """
    lanes = (usual, *range(len(free_at)))
    return next((one for one in lanes if free_at[one] <= start_us + 1e-3), free_at.index(min(free_at)))


def _finding_events(number: int, finding: Finding, stage: _Stage) -> Iterator[Event]:
    """One slice a step in which the finding shows; a finding without steps shows in all."""
    bounds = stage.bounds
    tid = number + 1
    yield _told("thread_name", _FINDINGS_PID, tid, name=finding.id)
    yield _told("thread_sort_index", _FINDINGS_PID, tid, sort_index=tid)
    end_us = -np.inf
    for step in sorted(bounds):
        if finding.steps and step not in finding.steps:
            continue
        begin_us = max(bounds[step][0], end_us)
        end_us = max(bounds[step][1], begin_us)
        yield {
            "ph": "X",
            "cat": "finding",
            "name": plain(summary(finding).en),
            "cname": _COLOURS[finding.severity],
            "pid": _FINDINGS_PID,
            "tid": tid,
            "ts": round(begin_us, 3),
            "dur": round(end_us - begin_us, 3),
            "args": {
                "id": finding.id,
                "step": step,
                "ranks": format_number_ranges(finding.ranks),
                "places": "; ".join(place_text(one, stage.result) for one in finding.places),
                "cost_ms_per_step": finding.cost_ms_per_step,
                "next_check": next_check(finding).en,
            },
        }


def _earliest_us(collectives: Sequence[pa.Table], clocks: Clocks) -> float:
    """Return the first aligned start: viewers drop slices before 0."""
    first = []
    for table in collectives:
        by_rank = table.group_by("rank").aggregate([("start_ns", "min")])
        for row in by_rank.to_pylist():
            if row["start_ns_min"] is not None:
                start_ns = np.array([row["start_ns_min"]], dtype=np.int64)
                first.append(float(clocks.aligned_us(Rank(row["rank"]), start_ns)[0]))
    return min(first, default=0.0)


def _chosen_steps(collectives: Sequence[pa.Table], max_slices: int) -> tuple[frozenset[int], tuple[int, ...]]:
    """Return the first steps whose operators fit, and the steps left out."""
    counts: dict[int, int] = {}
    for table in collectives:
        for one in pc.value_counts(table["step"]).to_pylist():
            counts[one["values"]] = counts.get(one["values"], 0) + one["counts"]
    chosen: set[int] = set()
    total = 0
    for step in sorted(counts):
        total += counts[step]
        if chosen and total > max_slices:
            break
        chosen.add(step)
    return frozenset(chosen), tuple(sorted(set(counts) - chosen))


def _about(result: AnalysisResult, clocks: Clocks, left_out: Sequence[int]) -> dict[str, Any]:
    return {
        "tool": f"cluster-analyse {result.document.tool_version}",
        "verdict": result.document.verdict,
        "steps_left_out": format_number_ranges(left_out),
        "reference_clock": clocks.reference,
        "clocks": {
            host: {
                "offset_us": round(one.offset_us, 3),
                "drift_ppm": round(one.drift_ppm, 4),
                "error_us": None if one.error_us is None else round(one.error_us, 3),
                "observations": one.n_observations,
            }
            for host, one in clocks.by_host.items()
        },
    }


def _told(what: str, pid: int, tid: int, **arguments: object) -> Event:
    """Return the event that names a process or thread for the viewer."""
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": arguments}
