"""analysis.db (PyTorch) and communication_analyzer.db (MindSpore): what the text files hold, as tables.

MindSpore's tables lack `step` and `type`, hold no step times, and name links by operator.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from cluster_simulate.files.capture_text import step_rows
from cluster_simulate.files.captured import CapturedJob, filed_as_p2p, matrix_rows
from cluster_simulate.files.communication_text import transport_figures
from cluster_simulate.files.entries import link_figures, local_copies
from cluster_simulate.files.sqlite_file import write_database
from cluster_simulate.job.job import LOCAL, TRANSPORTS

_STEPS = (
    "deviceId INTEGER, step TEXT, computing NUMERIC, communication_not_overlapped NUMERIC, "
    "overlapped NUMERIC, communication NUMERIC, free NUMERIC, stage NUMERIC, bubble NUMERIC, "
    "communication_not_overlapped_and_exclude_receive NUMERIC, preparing NUMERIC"
)
_TIME = (
    "hccl_op_name TEXT, group_name TEXT, start_timestamp NUMERIC, elapse_time NUMERIC, transit_time NUMERIC, "
    "wait_time NUMERIC, synchronization_time NUMERIC, idle_time NUMERIC"
)
_BANDWIDTH = (
    "hccl_op_name TEXT, group_name TEXT, transport_type TEXT, transit_size NUMERIC, "
    "transit_time NUMERIC, bandwidth NUMERIC, large_packet_ratio NUMERIC, package_size NUMERIC, "
    "count NUMERIC, total_duration NUMERIC"
)
_MATRIX = (
    "hccl_op_name TEXT, group_name TEXT, src_rank TEXT, dst_rank TEXT, transport_type TEXT, "
    "transit_size NUMERIC, transit_time NUMERIC, bandwidth NUMERIC"
)
_FIELDS = ("elapse_us", "transit_us", "wait_us", "synchronization_us", "idle_us")

_Row = list[Any]


def write_analysis_database(captured: CapturedJob, rank: int, path: Path) -> None:
    """Write the database of a rank."""
    is_pytorch = captured.framework == "pt"
    ends = ", step TEXT, type TEXT" if is_pytorch else ""
    named = ", op_name TEXT" if is_pytorch else ""
    tables = {
        "CommAnalyzerTime": (_TIME + ends, _time_rows(captured, rank)),
        "CommAnalyzerBandwidth": (_BANDWIDTH + ends, _bandwidth_rows(captured, rank)),
        "CommAnalyzerMatrix": (
            _MATRIX + ends + named,
            _matrix_rows(captured, rank) if is_pytorch else _operator_link_rows(captured, rank),
        ),
    }
    detail = captured.job.spec.detail
    if detail != "full":
        del tables["CommAnalyzerMatrix"]
    if detail == "totals":
        tables = {}
    if is_pytorch:
        tables["StepTraceTime"] = (_STEPS, step_rows(captured, rank, str))
    declarations = "".join(f"CREATE TABLE {name} ({columns});" for name, (columns, _) in tables.items())
    write_database(path, declarations, {name: rows for name, (_, rows) in tables.items()})


def _op_keys(captured: CapturedJob, rank: int) -> tuple[slice, list[_Row], list[_Row]]:
    """Return a rank's rows, the (name, group) of each, and the (step, type) that PyTorch adds."""
    ops = captured.view.ops
    rows = captured.op_rows[rank]
    hashes = captured.job.groups.hashes
    heads = [
        [captured.names[rows.start + i], hashes[group]] for i, group in enumerate(ops.group[rows].tolist())
    ]
    return rows, heads, _levels(captured, ops.step[rows], ops.kind[rows])


def _levels(captured: CapturedJob, steps: Any, kinds: Any) -> list[_Row]:
    if captured.framework == "ms":
        return [[] for _ in range(len(steps))]
    is_p2p = filed_as_p2p(kinds, captured.framework).tolist()
    return [_level(captured, *pair) for pair in zip(steps.tolist(), is_p2p, strict=True)]


def _level(captured: CapturedJob, step: int, is_p2p: bool) -> _Row:
    return [f"step{captured.job.spec.first_step + step}", "p2p" if is_p2p else "collective"]


def _time_rows(captured: CapturedJob, rank: int) -> list[_Row]:
    view = captured.view
    rows, heads, levels = _op_keys(captured, rank)
    times = np.stack([np.round(getattr(view, name)[rows] / 1e3, 5) for name in _FIELDS], axis=-1).tolist()
    starts = view.start_us[rows].tolist()
    return [
        [*head, start, *values, *level]
        for head, start, values, level in zip(heads, starts, times, levels, strict=True)
    ]


def _bandwidth_rows(captured: CapturedJob, rank: int) -> list[_Row]:
    rows, heads, levels = _op_keys(captured, rank)
    found = []
    for (op, code), figures in transport_figures(captured, rank, rows).items():
        shared = [*heads[op], TRANSPORTS[code], figures.size_mb, figures.time_ms, figures.gbps]
        found += [
            [*shared, figures.large_ratio, size_mb, count, time_ms, *levels[op]]
            for size_mb, (count, time_ms) in figures.packets.items()
        ]
    return found


def _matrix_rows(captured: CapturedJob, rank: int) -> list[_Row]:
    return [
        [name, group, str(src), str(dst), transport, *figures, *_level(captured, step, alone), op_name]
        for step, alone, name, group, src, dst, transport, figures, op_name in matrix_rows(captured, rank)
    ]


def _operator_link_rows(captured: CapturedJob, rank: int) -> list[_Row]:
    """Return a row an operator and link, as MindSpore writes them."""
    rows, heads, _ = _op_keys(captured, rank)
    view, members = captured.view, captured.job.groups.members
    links, group = view.links, view.ops.group[rows].tolist()
    uses = captured.link_rows[rank]
    own = [members[one].index(rank) for one in group]
    copies = (values.tolist() for values in local_copies(view, rows, uses))
    found = [
        (op, own[op], own[op], LOCAL, size, time) for op, (size, time) in enumerate(zip(*copies, strict=True))
    ]
    found += [
        (op, own[op], members[group[op]].index(dst), code, size, time)
        for op, dst, code, size, time in zip(
            (links.op[uses] - rows.start).tolist(), links.dst[uses].tolist(), links.transport[uses].tolist(),
            links.size_bytes[uses].tolist(), links.time_us[uses].round(2).tolist(), strict=True,
        )
    ]  # fmt: skip
    return [
        [*heads[op], str(src), str(dst), TRANSPORTS[code], *link_figures(size, time)]
        for op, src, dst, code, size, time in sorted(found)
    ]
