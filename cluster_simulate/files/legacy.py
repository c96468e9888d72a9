"""A rank's files as MindSpore r1.x wrote them: flat, named by device, times in ticks of 10 ns.

The device's counter starts anywhere, so nothing compares across hosts; steps count from 1.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cluster_run.errors import UsageError
from cluster_simulate.files.capture_text import csv_bytes
from cluster_simulate.files.captured import CapturedJob
from cluster_simulate.files.kernels import kernel_statistics
from cluster_simulate.files.observed import seen_steps
from cluster_simulate.job import layout as kinds
from cluster_simulate.job.arrays import Floats, Ints
from cluster_simulate.job.job import RDMA
from cluster_simulate.job.layout import double_hash, server_id

_TICKS_PER_US = 100.0
_OP_WORDS = {
    kinds.ALL_REDUCE: "AllReduce",
    kinds.REDUCE_SCATTER: "ReduceScatter",
    kinds.ALL_GATHER: "AllGather",
    kinds.ALL_TO_ALL: "AlltoAll",
    kinds.BROADCAST: "Broadcast",
    kinds.SEND: "Send",
    kinds.RECEIVE: "Receive",
}
_FIRST_STREAM = 36
_MFLOP_PER_MS = 9000.0
_PEAK_GFLOPS = 353_894.0
_AVERAGE = "-"


@dataclass(frozen=True)
class _Slot:
    """An operator as a column: the same one in every step. `rows` holds its row by step, -1 if missing."""

    name: str
    rows: list[int]


def legacy_files(captured: CapturedJob, rank: int) -> Mapping[str, bytes]:
    """Return the r1.x files of a rank by name.

    Raises:
        UsageError: the job uses operators that r1.x did not have.
    """
    spec = captured.job.spec
    if spec.p2p == "batch":
        raise UsageError("r1.x has no batchSendRecv", "use --p2p eager or rendezvous with --form r1")
    device = spec.device_of(rank)
    slots = _slots(captured, rank)
    mode = "pipeline-parallel" if spec.pp > 1 else "model-parallel" if spec.tp > 1 else "data-parallel"
    return {
        f"step_trace_raw_{device}_detail_time.csv": _step_trace(captured, rank, slots),
        f"hccl_raw_{device}.csv": _hccl_raw(captured, rank, slots),
        f"ascend_cluster_analyse_{mode}_{spec.pp}_{spec.n_ranks}_{device}.csv": _cluster_analyse(
            captured, rank
        ),
        f"flops_summary_{device}.json": _flops(captured, rank),
        f"aicore_intermediate_{device}_type.csv": _kernels(captured, rank),
    }


def _slots(captured: CapturedJob, rank: int) -> list[_Slot]:
    """Return the operators of the first step, each with its row in every step."""
    ops = captured.view.ops
    streams = {group: _FIRST_STREAM + n for n, group in enumerate(captured.group_numbers[rank])}
    by_key: dict[tuple[int, int, int], list[int]] = {}
    counts = Counter[tuple[int, int, int]]()
    steps = seen_steps(captured.job)
    for row in _numbers(captured.op_rows[rank]):
        step, group, kind = int(ops.step[row]), int(ops.group[row]), int(ops.kind[row])
        ordinal = counts[step, group, kind]
        counts[step, group, kind] += 1
        by_key.setdefault((group, kind, ordinal), [-1] * len(steps))[steps.index(step)] = row
    in_stream = Counter[int]()
    slots = []
    for number, ((group, kind, _), rows) in enumerate(by_key.items()):
        stream = streams[group]
        if rows[0] >= 0:
            name = f"stream_{stream}_{in_stream[stream]}_{_OP_WORDS[kind]}-op{600 + number}"
            slots.append(_Slot(name, rows))
        in_stream[stream] += 1
    return slots


def _numbers(rows: slice) -> range:
    return range(rows.start, rows.stop)


def _ticks(captured: CapturedJob, rank: int, true_us: Floats) -> Ints:
    """Return what the device's counter shows; it started when the host did."""
    host = captured.job.spec.host_of(rank)
    base = double_hash(server_id(host)) % 10**12 + 10**12
    shown = captured.job.clock_us(np.full(true_us.shape, rank, dtype=np.int64), true_us)
    ticks: Ints = base + np.rint(shown * _TICKS_PER_US).astype(np.int64)
    return ticks


def _step_trace(captured: CapturedJob, rank: int, slots: list[_Slot]) -> bytes:
    times, steps = captured.job.times, seen_steps(captured.job)
    fp = _ticks(captured, rank, times.first_task_us[steps, rank])
    bp = _ticks(captured, rank, times.backward_us[steps, rank])
    end = _ticks(captured, rank, times.end_us[steps, rank])
    start = np.r_[fp[:1], end[:-1]]
    header = ["step_num", "start_point", "end_point", "total", "fp_point", "bp_point", "iteration_interval",
              "fp_and_bp", "tail"]  # fmt: skip
    columns = [start, end, end - start, fp, bp, fp - start, bp - fp, end - bp]
    ops = captured.view.ops
    for slot in slots:
        rows = np.array(slot.rows, dtype=np.int64)
        there = rows >= 0
        begin = _ticks(captured, rank, ops.start_us[rows])
        spent = np.rint(captured.view.elapse_us[rows] * _TICKS_PER_US).astype(np.int64)
        header += [slot.name, f"{slot.name}_start_point", f"{slot.name}_end_point"]
        columns += [np.where(there, spent, 0), np.where(there, begin, 0), np.where(there, begin + spent, 0)]
    table = np.stack(columns, axis=1)
    lines: list[list[object]] = [[number + 1, *row] for number, row in enumerate(table.tolist())]
    if len(table) > 1:
        lines.append([_AVERAGE, *np.rint(table[1:].mean(axis=0)).astype(np.int64).tolist()])
    else:
        lines.append([0] * len(header))
    return csv_bytes([header, *lines])


def _hccl_raw(captured: CapturedJob, rank: int, slots: list[_Slot]) -> bytes:
    """Return costs and links by step. Bandwidths above operators are sums, as r1.x computed them."""
    by_op = _links_by_op(captured, rank)
    view = captured.view
    lines: list[list[object]] = [
        ["step_num", "communication_cost", "wait_cost", "link_info", "communication_operator_cost"]
    ]
    all_costs = []
    for number in range(len(seen_steps(captured.job))):
        operators: dict[str, list[object]] = {}
        totals: dict[str, dict[str, list[float]]] = {}
        costs = [0.0, 0.0]
        for slot in slots:
            row = slot.rows[number]
            if row < 0:
                continue
            spent = round(float(view.elapse_us[row] - view.wait_us[row]) / 1e3, 5)
            wait = round(float(view.wait_us[row]) / 1e3, 5)
            costs = [costs[0] + spent, costs[1] + wait]
            info = by_op.get(row, {})
            operators[slot.name] = [str(number + 1), spent, wait, info]
            _add_links(totals, info)
        all_costs.append(costs)
        lines.append([number + 1, *costs, json.dumps(totals), json.dumps(operators)])
    if all_costs:
        lines.append([_AVERAGE, *np.mean(all_costs, axis=0).tolist(), *lines[-1][3:]])
    else:
        lines.append([_AVERAGE, 0.0, 0.0, "{}", "{}"])
    return csv_bytes(lines)


def _links_by_op(captured: CapturedJob, rank: int) -> dict[int, dict[str, dict[str, list[float]]]]:
    """Return the links of each operator row: ms, KB and KB/s; for RDMA also the ms it waited."""
    links, ops, groups = captured.view.links, captured.view.ops, captured.job.groups.members
    found: dict[int, dict[str, dict[str, list[float]]]] = {}
    for use in _numbers(captured.link_rows[rank]):
        row = int(links.op[use])
        members = groups[int(ops.group[row])]
        key = f"{members.index(rank)}-{members.index(int(links.dst[use]))}"
        ms, kilobytes = round(float(links.time_us[use]) / 1e3, 5), float(links.size_bytes[use]) / 1e3
        figures = [ms, kilobytes, kilobytes / ms * 1e3 if ms else 0.0]
        is_rdma = int(links.transport[use]) == RDMA
        found.setdefault(row, {})[key] = {"RDMA": [*figures, 0.0]} if is_rdma else {"SDMA": figures}
    return found


def _add_links(totals: dict[str, dict[str, list[float]]], info: dict[str, dict[str, list[float]]]) -> None:
    for key, transports in info.items():
        for name, figures in transports.items():
            sums = totals.setdefault(key, {}).setdefault(name, [0.0] * len(figures))
            for position, value in enumerate(figures):
                sums[position] += value


def _cluster_analyse(captured: CapturedJob, rank: int) -> bytes:
    """Return the split of each step in ms; "computation" is all that is not exposed communication."""
    totals, steps = captured.totals, seen_steps(captured.job)
    whole = (totals.computing_us + totals.communication_not_overlapped_us + totals.free_us)[steps, rank]
    alone = totals.communication_not_overlapped_us[steps, rank]
    receive = np.minimum(totals.bubble_us[steps, rank], alone)
    header = ["computation_time", "communication_alone_time"]
    columns = [whole - alone, alone]
    if captured.job.spec.pp > 1:
        header += ["stage_time", "receive_alone_time", "collective_communication_alone_time"]
        columns += [whole - receive, receive, alone - receive]
    table = np.stack(columns, axis=1) / 1e3
    rows = np.round(table, 4).tolist()
    if len(table) > 1:
        rows.append(np.round(table[1:].mean(axis=0), 4).tolist())
    return csv_bytes([header, *rows])


def _flops(captured: CapturedJob, rank: int) -> bytes:
    """Return flops_summary: the work of the rank's stage does not depend on how fast it was done."""
    spec = captured.job.spec
    stage = rank // spec.stage_ranks
    work = spec.healthy.stage_work[stage] if spec.healthy.stage_work else 1.0
    mflop = _MFLOP_PER_MS * 3.0 * spec.forward_ms * spec.microbatches * work
    seconds = float(captured.job.times.computing_us[:, rank].mean()) / 1e6
    rate = mflop / 1e3 / seconds if seconds else 0.0
    content = {
        "FLOPs": round(mflop, 3),
        "FLOPS": round(rate, 3),
        "FLOPS_Utilization": round(100.0 * rate / _PEAK_GFLOPS, 2),
    }
    return json.dumps(content).encode()


def _kernels(captured: CapturedJob, rank: int) -> bytes:
    header = ["op_type", "execution_time", "execution_frequency", "percent"]
    rows = [
        [row.op_type, round(row.total_us / 1e3, 6), row.n_calls, round(row.ratio_percent, 2)]
        for row in kernel_statistics(captured.job, rank)
    ]
    return csv_bytes([header, *rows])
