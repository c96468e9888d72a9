"""ascend_pytorch_profiler_{rank}.db and ascend_mindspore_profiler_{rank}.db: every task, in ns.

Only the tables that analyses use, with the columns that CANN 8 gives them. Texts are ids of STRING_IDS.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from cluster_simulate.files.capture_text import metadata
from cluster_simulate.files.captured import CapturedJob, LocalIds, op_names
from cluster_simulate.files.kernels import KERNELS, kernel_calls
from cluster_simulate.files.observed import NS_PER_US, seen_steps, shown_ns, spans_ns
from cluster_simulate.files.sqlite_file import Rows, write_database
from cluster_simulate.job import layout as kinds
from cluster_simulate.job.job import HCCS, PCIE, RDMA
from cluster_simulate.job.layout import double_hash, host_name

_SCHEMA = """
CREATE TABLE AICORE_FREQ (deviceId INTEGER,timestampNs NUMERIC,freq INTEGER);
CREATE TABLE COMMUNICATION_OP (opName INTEGER,startNs INTEGER,endNs INTEGER,connectionId INTEGER,groupName INTEGER,opId INTEGER PRIMARY KEY,relay INTEGER,retry INTEGER,dataType INTEGER,algType INTEGER,count NUMERIC,opType INTEGER);
CREATE TABLE COMMUNICATION_TASK_INFO (name INTEGER,globalTaskId INTEGER,taskType INTEGER,planeId INTEGER,groupName INTEGER,notifyId INTEGER,rdmaType INTEGER,srcRank INTEGER,dstRank INTEGER,transportType INTEGER,size INTEGER,dataType INTEGER,linkType INTEGER,opId INTEGER);
CREATE TABLE COMPUTE_TASK_INFO (name INTEGER,globalTaskId INTEGER PRIMARY KEY,blockDim INTEGER,mixBlockDim INTEGER,taskType INTEGER,opType INTEGER,inputFormats INTEGER,inputDataTypes INTEGER,inputShapes INTEGER,outputFormats INTEGER,outputDataTypes INTEGER,outputShapes INTEGER,attrInfo INTEGER);
CREATE TABLE ENUM_HCCL_LINK_TYPE (id INTEGER PRIMARY KEY,name TEXT);
CREATE TABLE ENUM_HCCL_TRANSPORT_TYPE (id INTEGER PRIMARY KEY,name TEXT);
CREATE TABLE HOST_INFO (hostUid TEXT,hostName TEXT);
CREATE TABLE META_DATA (name TEXT,value TEXT);
CREATE TABLE NPU_INFO (id INTEGER,name TEXT);
CREATE TABLE RANK_DEVICE_MAP (rankId INTEGER, deviceId INTEGER);
CREATE TABLE SESSION_TIME_INFO (startTimeNs INTEGER,endTimeNs INTEGER);
CREATE TABLE STEP_TIME (id INTEGER, startNs INTEGER, endNs INTEGER);
CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY,value TEXT);
CREATE TABLE TASK (startNs INTEGER,endNs INTEGER,deviceId INTEGER,connectionId INTEGER,globalTaskId INTEGER,globalPid INTEGER,taskType INTEGER,contextId INTEGER,streamId INTEGER,taskId INTEGER,modelId INTEGER);
"""  # noqa: E501 - as the profilers declare them
_TRANSPORT_TYPES = ("SDMA", "RDMA", "LOCAL")
_INDEXES = """
CREATE INDEX CommunicationTaskIndex ON COMMUNICATION_TASK_INFO (globalTaskId);
CREATE INDEX TaskIndex ON TASK (startNs,globalTaskId);
"""
_LINK_TYPES = ("ON_CHIP", "HCCS", "PCIE", "ROCE", "SIO", "HCCS_SW", "STANDARD_ROCE", "RESERVED")
_LINK_CODE = {HCCS: 1, PCIE: 2, RDMA: 3}
_TRANSPORT_CODE = {HCCS: 0, PCIE: 0, RDMA: 1}
_TASK_NAME = {HCCS: "Memcpy", PCIE: "Memcpy", RDMA: "RDMASend"}
_NONE = 4294967295
_INVALID = 65535
_FP16 = 3
#: A transfer that lasts this long was sent again.
_RETRY_US = 1e6

_Row = tuple[object, ...]


class _Strings:
    """Gives every text its id, in order of first use."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def id_of(self, text: str) -> int:
        """Return the id of a text."""
        return self._ids.setdefault(text, len(self._ids))

    def rows(self) -> list[tuple[int, str]]:
        """Return all ids and texts."""
        return [(number, text) for text, number in self._ids.items()]


def write_profiler_database(captured: CapturedJob, rank: int, path: Path) -> None:
    """Write the database of a rank."""
    strings = _Strings()
    kernel_tasks, kernels = _kernel_rows(captured, rank, strings)
    operators, link_tasks, link_infos = _operator_rows(captured, rank, strings, len(kernel_tasks))
    has_links = captured.job.spec.detail == "full"
    tables: dict[str, Rows] = {
        **_place_rows(captured, rank),
        "TASK": kernel_tasks + (link_tasks if has_links else []),
        "COMPUTE_TASK_INFO": kernels,
        "COMMUNICATION_OP": operators,
        "COMMUNICATION_TASK_INFO": link_infos if has_links else [],
        "STRING_IDS": strings.rows(),
    }
    write_database(path, _SCHEMA, tables, _INDEXES)


def _place_rows(captured: CapturedJob, rank: int) -> dict[str, Rows]:
    """Return where the rank runs, its steps and what the capture says of itself."""
    job, spec = captured.job, captured.job.spec
    host, device = spec.host_of(rank), spec.device_of(rank)
    steps = seen_steps(job)
    here = np.full(len(steps), rank, dtype=np.int64)
    begin, end = (
        shown_ns(job, here, times[steps, rank]).tolist() for times in (job.times.begin_us, job.times.end_us)
    )
    content = {"SCHEMA_VERSION": "1.0.0", **metadata(captured, rank)}
    clock = np.rint(job.times.frequency_mhz[steps, rank]).astype(int).tolist()
    return {
        "AICORE_FREQ": [(device, when, mhz) for when, mhz in zip(begin, clock, strict=True)],
        "STEP_TIME": list(zip([spec.first_step + step for step in steps], begin, end, strict=True)),
        "SESSION_TIME_INFO": [(begin[0], end[-1])] if steps else [],
        "HOST_INFO": [(str(double_hash(host_name(host))), host_name(host))],
        "NPU_INFO": [(device, "Ascend910B")],
        "RANK_DEVICE_MAP": [(rank, device)],
        "META_DATA": [
            (name, value if isinstance(value, str) else json.dumps(value)) for name, value in content.items()
        ],
        "ENUM_HCCL_LINK_TYPE": list(enumerate(_LINK_TYPES)),
        "ENUM_HCCL_TRANSPORT_TYPE": list(enumerate(_TRANSPORT_TYPES)),
    }


def _kernel_rows(captured: CapturedJob, rank: int, strings: _Strings) -> tuple[list[_Row], list[_Row]]:
    """Return every kernel as a task, and what it computed."""
    start, length = kernel_calls(captured.job, rank)
    device = captured.job.spec.device_of(rank)
    ids = [
        (
            strings.id_of(f"aclnn{kernel.op_type}"),
            strings.id_of(kernel.core_type),
            strings.id_of(kernel.op_type),
        )
        for kernel in KERNELS
    ]
    nothing = strings.id_of("N/A")
    tasks: list[_Row] = []
    infos: list[_Row] = []
    spans = zip(start.ravel().tolist(), (start + length).ravel().tolist(), strict=True)
    for number, (begin, until) in enumerate(spans):
        name, core, op_type = ids[number % len(KERNELS)]
        tasks.append((begin, until, device, number, number, 21000 + rank, core, _NONE, 2, number, _NONE))
        infos.append((name, number, 32, 0, core, op_type, *(nothing,) * 7))
    return tasks, infos


def _operator_rows(
    captured: CapturedJob, rank: int, strings: _Strings, n_tasks: int
) -> tuple[list[_Row], list[_Row], list[_Row]]:
    """Return communication operators, and for each use of a link a task and what it moved.

    Records that the communication files lost are here all the same: they are lost when those are made.
    """
    job = captured.job
    ops, groups = job.ops, job.groups
    rows = np.arange(*np.searchsorted(ops.rank, [rank, rank + 1]))
    rows = rows[np.isin(ops.step[rows], seen_steps(job))]
    spans = np.stack(spans_ns(job, rows), axis=1).tolist()
    names = [strings.id_of(name) for name in op_names(job, ops, rows)]
    group_names = [strings.id_of(groups.names[one]) for one in ops.group[rows].tolist()]
    links = job.links
    uses = np.flatnonzero(np.isin(links.op, rows))
    op_of_use = np.searchsorted(rows, links.op[uses])
    size = np.bincount(op_of_use, links.size_bytes[uses], len(rows)).tolist()
    retries = (ops.transfer_us[rows] > _RETRY_US).astype(int).tolist()
    algorithm = strings.id_of("MESH-RING")
    operators: list[_Row] = []
    for i, kind in enumerate(ops.kind[rows].tolist()):
        op_type = strings.id_of(f"hcom_{kinds.OP_KINDS[kind]}_")
        operators.append(
            (names[i], *spans[i], n_tasks + i, group_names[i], i + 1, 0, retries[i], _FP16, algorithm,
             int(size[i]) // 2, op_type)
        )  # fmt: skip
    tasks: list[_Row] = []
    infos: list[_Row] = []
    local, group = LocalIds(job), ops.group[links.op[uses]]
    moved = zip(
        op_of_use.tolist(), links.transport[uses].tolist(), links.size_bytes[uses].tolist(),
        links.time_us[uses].round(2).tolist(), local.of(group, np.full(len(uses), rank)).tolist(),
        local.of(group, links.dst[uses]).tolist(), strict=True,
    )  # fmt: skip
    device = job.spec.device_of(rank)
    for number, (op, code, n_bytes, time, one, other) in enumerate(moved, n_tasks):
        begin, until = spans[op]
        task = strings.id_of(_TASK_NAME[code])
        begin = max(until - round(time * NS_PER_US), begin)
        tasks.append(
            (begin, until, device, n_tasks + op, number, 21000 + rank, task, _NONE, 41, number, _NONE)
        )
        infos.append(
            (names[op], number, task, 0, group_names[op], 0, _INVALID, one, other, _TRANSPORT_CODE[code],
             int(n_bytes), _FP16, _LINK_CODE[code], op + 1)
        )  # fmt: skip
    return operators, tasks, infos
