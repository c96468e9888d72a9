"""One rank of a capture that an older CANN exported by iteration: its timelines put together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from cluster_analysis.sources import names, numbers
from cluster_analysis.sources.iterations import timelines as export
from cluster_analysis.sources.kernel_groups import KEYS, KernelSums
from cluster_analysis.sources.link_names import OPERATOR_VARIANT
from cluster_analysis.sources.r1.step_trace import graph_groups
from cluster_analysis.sources.reading import Reading, or_empty
from cluster_analysis.sources.text.timeline_json import ROLE, Event, read_events
from cluster_analysis.tables import schema
from cluster_analysis.tables.model import RankMetadata
from cluster_analysis.tables.rank_tables import RankTables
from cluster_analysis.tables.schema import TRANSPORTS
from cluster_run.facts import fact

_Rows = list[dict[str, Any]]


def read_iteration_export(reading: Reading) -> RankTables:
    """Read the iterations of the model that ran most often; a file that is bad costs its iteration."""
    rank = reading.source.rank
    by_kind = _files_of_busiest_model(reading)
    traced: dict[int, export.Iteration] = {}
    overlaps: dict[int, dict[str, float]] = {}
    kernels, operators, links = KernelSums(), [], []
    for which, role in by_kind.get("msprof", {}).items():
        events = _events(reading, role)
        traced.update({one.number: one for one in export.iterations(events)})
        sums = export.overlap_sums(events)
        if sums is not None:
            overlaps[which] = sums
        _add_kernels(kernels, events)
    for role in by_kind.get("step_trace", {}).values():
        traced.update({one.number: one for one in export.iterations(_events(reading, role))})
    for which, role in by_kind.get("hccl", {}).items():
        for one in export.operators(_events(reading, role)):
            operators.append(_operator_row(rank, which, one))
            links += _link_rows(rank, which, one)
    reading.notes.append(fact("no_groups_of_iterations"))
    iterations = _iterations(rank, list(traced.values()))
    found = kernels.table(rank)
    if not iterations.num_rows and not overlaps:
        reading.problem(fact("no_step_times_of_rank"), "step_trace_*.json", "export_with_msprof")
    return RankTables(
        {rank: RankMetadata()},
        steps=_steps(rank, iterations, overlaps),
        collectives=_with_names(operators, schema.COLLECTIVES),
        links=_with_names(links, schema.LINKS),
        operators=or_empty(kernels.operators(rank), schema.OPERATORS),
        iterations=iterations,
        figures={} if found is None else {"kernels": found},
    )


def _files_of_busiest_model(reading: Reading) -> dict[str, dict[int, str]]:
    """Return the roles of one model by kind and iteration; other models are reported."""
    parts = [(role, role.split("/")) for role in reading.source.files if role.startswith(f"{ROLE}/")]
    counted = Counter(int(model) for _, (_, _, model, _) in parts)
    chosen = max(counted, key=lambda model: (counted[model], model))
    if len(counted) > 1:
        others = tuple(sorted(set(counted) - {chosen}))
        reading.notes.append(fact("other_models", rank=reading.source.rank, model=chosen, others=others))
    found: dict[str, dict[int, str]] = {}
    for role, (_, kind, model, which) in parts:
        if int(model) == chosen:
            found.setdefault(kind, {})[int(which)] = role
    return {kind: dict(sorted(roles.items())) for kind, roles in found.items()}


def _events(reading: Reading, role: str) -> Sequence[Event]:
    return reading.first((role, lambda path, _: read_events(path))) or ()


def _iterations(rank: int, found: list[export.Iteration]) -> pa.Table:
    """Return ITERATIONS; the time before a forward pass counts from the end of the iteration before."""
    rows: _Rows = []
    before: export.Iteration | None = None
    for one in sorted(found, key=lambda each: each.number):
        follows = before is not None and before.number == one.number - 1
        begin = before.end_us if before is not None and follows else one.begin_us
        forward = one.forward_us if one.forward_us is not None else one.begin_us
        backward_end = one.backward_end_us if one.backward_end_us is not None else one.end_us
        rows.append(
            {
                "rank": rank,
                "step": one.number,
                "total_us": one.end_us - begin,
                "interval_us": forward - begin,
                "forward_backward_us": backward_end - forward,
                "tail_us": one.end_us - backward_end,
            }
        )
        before = one
    return pa.Table.from_pylist(rows, schema=schema.ITERATIONS)


def _steps(rank: int, iterations: pa.Table, overlaps: Mapping[int, Mapping[str, float]]) -> pa.Table:
    """Return STEPS: what the overlap analysis sums, in the frame of the step trace."""
    traced = {row["step"]: row for row in iterations.to_pylist()}
    rows: _Rows = []
    for step in sorted(traced.keys() | overlaps.keys()):
        row: dict[str, Any] = {"rank": rank, "step": step, **overlaps.get(step, {})}
        if step in overlaps:
            row["overlapped_us"] = row["communication_us"] - row["communication_not_overlapped_us"]
        if step in traced:
            row["preparing_us"] = traced[step]["interval_us"]
            row["stage_us"] = traced[step]["forward_backward_us"] + traced[step]["tail_us"]
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=schema.STEPS)


def _operator_row(rank: int, step: int, one: export.Operator) -> dict[str, Any]:
    row: dict[str, Any] = {
        "rank": rank,
        "step": step,
        "op_name": one.name,
        "op_index": -1,
        "start_ns": round(one.begin_us * numbers.NS_PER_US),
        "elapse_us": one.elapse_us,
    }
    for move in one.moves:
        if move.transport in TRANSPORTS:
            for name, value in (("bytes", move.size_bytes), ("us", move.time_us)):
                column = f"{move.transport.lower()}_{name}"
                row[column] = row.get(column, 0.0) + value
    return row


def _link_rows(rank: int, step: int, one: export.Operator) -> _Rows:
    """Return what one operator moved by ends and transport, summed over its planes."""
    sums: dict[tuple[int, int, str], list[float]] = {}
    for move in one.moves:
        own = sums.setdefault((move.source, move.destination, move.transport), [0.0, 0.0])
        own[0] += move.size_bytes
        own[1] += move.time_us
    return [
        {
            "rank": rank,
            "step": step,
            "op_name": one.name,
            "variant": OPERATOR_VARIANT,
            "src_local": source,
            "dst_local": destination,
            "transport": transport,
            "size_bytes": size,
            "time_us": time_us,
        }
        for (source, destination, transport), (size, time_us) in sorted(sums.items())
    ]


def _with_names(rows: _Rows, table_schema: pa.Schema) -> pa.Table:
    """Return rows as a table, with what the operators' names say: kind, and the graph's group."""
    keys = pa.array([row["op_name"] for row in rows], pa.string())
    groups, op_names = graph_groups(keys)
    given = {"group": groups, **names.columns(op_names)}
    table = pa.Table.from_pylist([{**row, "op_name": None} for row in rows], schema=table_schema)
    return pa.table([given.get(name, table[name]) for name in table_schema.names], schema=table_schema)


def _add_kernels(sums: KernelSums, events: Sequence[Event]) -> None:
    """Add the kernels of one iteration; the graph's operator is named as its kind, behind the last slash."""
    found = list(export.kernels(events))
    if not found:
        return
    columns: dict[str, Any] = {
        **{name: [""] * len(found) for name in KEYS},
        "op_type": [one.name.rpartition("/")[2].partition("-op")[0] for one in found],
        "core_type": [one.core for one in found],
        "name": [one.name for one in found],
    }
    block = {name: pa.array(values, pa.string()) for name, values in columns.items()}
    block["ps"] = numbers.us_to_ps(pa.array([one.time_us for one in found], pa.float64()))
    block["wait_ps"] = pa.nulls(len(found), pa.int64())
    sums.add(pa.table(block))
