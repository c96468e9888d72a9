"""ascend_pytorch_profiler_{rank}.db and ascend_mindspore_profiler_{rank}.db: every task, in ns.

Step times are recomputed from the tasks where no table holds them, by the profilers' own definitions:
computing is the union of the compute tasks, communication the union of the communication operators,
overlapped their intersection, the stage the span of both less the bubble (MindSpore: the span of the
communication operators). An event belongs to the step in which it starts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec.structs import replace

from cluster_analysis.numeric.arrays import IntArray
from cluster_analysis.sources import names, numbers
from cluster_analysis.sources.communication_tables import CommunicationTables
from cluster_analysis.sources.db.sqlite import Database, StepTime, open_database, step_at
from cluster_analysis.sources.db.tasks import (
    KERNEL,
    OPERATOR,
    TASK,
    TIMED,
    is_own,
    is_timed,
    kernels,
    tell_untimed,
)
from cluster_analysis.sources.errors import BadFileError, Remark, unheard
from cluster_analysis.sources.text.metadata_json import ENVIRONMENT_KEY, environment_of, parse_metadata
from cluster_analysis.tables import schema
from cluster_analysis.tables.hccl_names import BYTES_OF_TYPE, as_group_hash
from cluster_analysis.tables.model import RankMetadata
from cluster_analysis.tables.operations import MESSAGES
from cluster_run.facts import fact
from cluster_run.ids import Rank

#: How torch_npu names the range of a step: static and dynamic profiling.
_STEP_MARK = re.compile(r"^(?:ProfilerStep#|step )(\d{1,9})$")
_STEPS, _OF_STEPS = "STEP_TIME", ("id", "startNs", "endNs")
_OVERLAP, _COMPUTING, _COMMUNICATION = "OVERLAP_ANALYSIS", 0, 1
#: Columns of STEPS that compare with computing.
_BESIDE_COMPUTING = (
    "computing_us",
    "communication_not_overlapped_us",
    "overlapped_us",
    "free_us",
    "communication_not_overlapped_exclude_receive_us",
)
#: Those that compare with communication.
_BESIDE_COMMUNICATION = (*_BESIDE_COMPUTING[1:], "communication_us", "stage_us", "bubble_us")
#: Operators whose time is bubble: PyTorch counts receiving, MindSpore all point-to-point operators.
_BUBBLES = {False: ("receive",), True: MESSAGES}


def read_task_steps(path: Path, rank: int, is_mindspore: bool, remark: Remark) -> pa.Table | None:
    """Return STEPS recomputed from the tasks, else from their unions in OVERLAP_ANALYSIS, which give
    the same to the ns; None where the database has neither.

    Without STEP_TIME the whole capture is step 0.
    """
    with open_database(path, remark) as database:
        steps = database.once(_step_times) or (None,)
        operators, kinds = _operators(database, remark)
        if database.offers_all(remark, {TASK: TIMED, KERNEL: ("globalTaskId",)}):
            tell_untimed(database, TASK, "task", remark)
            compute = database.once(kernels)
        elif not database.offers(remark, _OVERLAP, "startNs", "endNs", "type"):
            return None
        else:
            compute = _stated(database, _COMPUTING, steps)
            if not len(operators):
                operators = _stated(database, _COMMUNICATION, steps)
                kinds = np.full(len(operators), "")
        is_recorded = len(operators) or database.offers(unheard, OPERATOR, "startNs")
    rows = [_step_row((rank, is_mindspore), step, compute, operators, kinds) for step in steps]
    # Where no computing was recorded, nothing tells it from idling; nor communication without its table.
    unknown = dict.fromkeys(() if len(compute) else _BESIDE_COMPUTING)
    unknown |= dict.fromkeys(() if is_recorded else _BESIDE_COMMUNICATION)
    found = [row | unknown for row in rows if row is not None]
    return pa.Table.from_pylist(found, schema=schema.STEPS) if found else None


def _stated(database: Database, kind: int, steps: Sequence[StepTime | None]) -> IntArray:
    """Return what OVERLAP_ANALYSIS holds of a kind: unions of tasks, cut where steps begin."""
    query = f"SELECT startNs, endNs FROM {_OVERLAP} WHERE type = ? AND {is_timed(_OVERLAP)}"
    spans = np.array(database.rows(query, (kind,)), dtype=np.int64).reshape(-1, 2)
    for begin in [one.begin_ns for one in steps if one is not None]:
        crossing = (spans[:, 0] < begin) & (spans[:, 1] > begin)
        after = spans[crossing]
        spans[crossing, 1] = begin
        after[:, 0] = begin
        spans = np.concatenate([spans, after])
    return spans


def _operators(database: Database, remark: Remark) -> tuple[IntArray, npt.NDArray[np.str_]]:
    if not database.offers(remark, OPERATOR, "startNs", "endNs", "opName"):
        return np.zeros((0, 2), dtype=np.int64), np.zeros(0, dtype=str)
    tell_untimed(database, OPERATOR, "operator", remark)
    rows = database.rows(
        f"SELECT startNs, endNs, value FROM {OPERATOR} LEFT JOIN STRING_IDS ON id = opName "
        f"WHERE {is_timed(OPERATOR)} AND {is_own(database, OPERATOR)} ORDER BY startNs"
    )
    kinds = names.operations(pa.array([str(row[2]) for row in rows], pa.string())).to_pylist()
    return np.array([row[:2] for row in rows], dtype=np.int64).reshape(-1, 2), np.array(kinds, dtype=str)


def _step_row(
    source: tuple[int, bool],
    step: StepTime | None,
    compute: IntArray,
    operators: IntArray,
    kinds: npt.NDArray[np.str_],
) -> dict[str, float | None] | None:
    """Return one row of STEPS; `step` None is the whole capture. None where nothing ran in it."""
    rank, is_mindspore = source
    is_bubble = np.isin(kinds, _BUBBLES[is_mindspore])
    if step is not None:
        of_step = (operators[:, 0] >= step.begin_ns) & (operators[:, 0] <= step.end_ns)
        operators, is_bubble = operators[of_step], is_bubble[of_step]
        compute = compute[(compute[:, 0] >= step.begin_ns) & (compute[:, 0] <= step.end_ns)]
    both = np.concatenate([compute, operators])
    if not len(both):
        return None
    computing, communicating, busy = (_union_ns(one) for one in (compute, operators, both))
    overlapped = computing + communicating - busy
    bubble = int((operators[is_bubble, 1] - operators[is_bubble, 0]).sum())
    first, last = int(both[:, 0].min()), int(both[:, 1].max())
    exposed = communicating - overlapped
    staged = operators if is_mindspore and len(operators) else both
    span = int(staged[:, 1].max() - staged[:, 0].min())
    return {
        "rank": rank,
        "step": step.number if step else 0,
        "computing_us": computing / numbers.NS_PER_US,
        "communication_not_overlapped_us": exposed / numbers.NS_PER_US,
        "overlapped_us": overlapped / numbers.NS_PER_US,
        "communication_us": communicating / numbers.NS_PER_US,
        "free_us": (last - first - busy) / numbers.NS_PER_US,
        "stage_us": (span - bubble) / numbers.NS_PER_US,
        "bubble_us": bubble / numbers.NS_PER_US,
        "communication_not_overlapped_exclude_receive_us": (exposed - bubble) / numbers.NS_PER_US,
        "preparing_us": (first - step.begin_ns) / numbers.NS_PER_US if step else None,
    }


def _union_ns(spans: IntArray) -> int:
    """Return the length of the union of intervals."""
    spans = spans[np.argsort(spans[:, 0])]
    ends = np.maximum.accumulate(spans[:, 1])
    gaps = np.maximum(spans[1:, 0] - ends[:-1], 0)
    return int(ends[-1] - spans[0, 0] - gaps.sum()) if len(spans) else 0


def read_step_times(path: Path, remark: Remark) -> tuple[StepTime, ...]:
    """Return when each step began and ended; nothing where the database has no steps."""
    with open_database(path, remark) as database:
        database.offers(remark, _STEPS, *_OF_STEPS)
        return database.once(_step_times)


def _step_times(database: Database) -> tuple[StepTime, ...]:
    has_times = database.has(_STEPS, *_OF_STEPS)
    rows = database.rows(f"SELECT {', '.join(_OF_STEPS)} FROM {_STEPS} ORDER BY startNs") if has_times else []
    if not rows:
        return _marked_steps(database)
    return tuple(StepTime(int(number), int(begin), int(end)) for number, begin, end in rows)


def _marked_steps(database: Database) -> tuple[StepTime, ...]:
    """Return the steps that ranges of mstx mark on the device; nothing where one is marked twice."""
    if not database.has("MSTX_EVENTS", "message", "connectionId") or not database.has(TASK, "connectionId"):
        return ()
    rows = database.rows(
        f"SELECT s.value, MIN({TASK}.startNs), MAX({TASK}.endNs) FROM MSTX_EVENTS AS m "
        f"JOIN STRING_IDS AS s ON s.id = m.message JOIN {TASK} ON {TASK}.connectionId = m.connectionId "
        f"WHERE (s.value LIKE 'ProfilerStep#%' OR s.value LIKE 'step %') AND {is_timed(TASK)} "
        "GROUP BY m.connectionId ORDER BY 2"
    )
    marks = [(_STEP_MARK.match(str(text)), begin, end) for text, begin, end in rows]
    steps = [StepTime(int(mark.group(1)), begin, end) for mark, begin, end in marks if mark]
    return tuple(steps) if len({one.number for one in steps}) == len(steps) else ()


def read_task_communication(path: Path, rank: int, remark: Remark) -> CommunicationTables | None:
    """Return COLLECTIVES from the operators alone: when and how long, no transports; None without any."""
    with open_database(path, remark) as database:
        if not database.offers(remark, OPERATOR, "startNs", "endNs", "opName", "groupName"):
            return None
        tell_untimed(database, OPERATOR, "operator", remark)
        rows = database.rows(
            f"SELECT startNs, endNs, names.value, groups.value, {_payload(database)} FROM {OPERATOR} "
            "LEFT JOIN STRING_IDS AS names ON names.id = opName "
            "LEFT JOIN STRING_IDS AS groups ON groups.id = groupName "
            f"WHERE {is_timed(OPERATOR)} AND {is_own(database, OPERATOR)} ORDER BY startNs"
        )
        times = database.once(_step_times)
    # Operators that began in no step are left out, as in the text form.
    steps = [step_at(times, row[0]) for row in rows]
    rows = [row for row, step in zip(rows, steps, strict=True) if step is not None]
    if not rows:
        return None
    starts = np.array([row[0] for row in rows], dtype=np.int64)
    ends = np.array([row[1] for row in rows], dtype=np.int64)
    op_names = pa.array([str(row[2] or "") for row in rows], pa.string())
    collectives = schema.rows(
        schema.COLLECTIVES,
        rank,
        step=[step for step in steps if step is not None],
        group=[as_group_hash(str(row[3] or "")) for row in rows],
        **names.of_operators(op_names),
        start_ns=starts,
        elapse_us=(ends - starts) / numbers.NS_PER_US,
        payload_bytes=[row[4] for row in rows],
    )
    return CommunicationTables(collectives)


def _payload(database: Database) -> str:
    """Return SQL for the bytes of an operator: number of elements by type; NULL where unknown."""
    if not database.has(OPERATOR, "count", "dataType") or not database.has(
        "ENUM_HCCL_DATA_TYPE", "id", "name"
    ):
        return "NULL"
    kinds = database.rows("SELECT id, name FROM ENUM_HCCL_DATA_TYPE")
    known = [(int(key), BYTES_OF_TYPE[name]) for key, name in kinds if name in BYTES_OF_TYPE]
    cases = " ".join(f"WHEN {key} THEN {size}.0" for key, size in known)
    if not cases:
        return "NULL"
    is_count = "typeof(count) = 'integer' AND count > 0"
    return f"CASE WHEN {is_count} THEN count * CASE dataType {cases} END END"


def read_own_device(path: Path) -> int | None:
    """Return the one device that RANK_DEVICE_MAP, else the step table, says that this database is of."""
    with open_database(path, unheard) as database:
        for table in ("RANK_DEVICE_MAP", "StepTraceTime"):
            if database.has(table, "deviceId"):
                found = _distinct(database, table, "deviceId")
                if len(found) == 1:
                    return numbers.local_rank(found[0])
    return None


def _distinct(database: Database, table: str, column: str) -> list[Any]:
    """Return the values of a column, each once."""
    return [value for (value,) in database.rows(f"SELECT DISTINCT {column} FROM {table}")]


def read_own_rank(path: Path) -> Rank | None:
    """Return the one rank that RANK_DEVICE_MAP, else the metadata, says that this database is of."""
    with open_database(path, unheard) as database:
        if database.has("RANK_DEVICE_MAP", "rankId"):
            found = _distinct(database, "RANK_DEVICE_MAP", "rankId")
            rank = numbers.local_rank(found[0]) if len(found) == 1 else None
            if rank is not None:
                return Rank(rank)
    return read_db_metadata(path, unheard).own_rank


def read_n_mapped_ranks(path: Path) -> int:
    """Return how many ranks RANK_DEVICE_MAP names: several where one process had several devices."""
    with open_database(path, unheard) as database:
        has_map = database.has("RANK_DEVICE_MAP", "rankId")
        return len(_distinct(database, "RANK_DEVICE_MAP", "rankId")) if has_map else 0


def read_db_metadata(path: Path, remark: Remark) -> RankMetadata:
    """Return what META_DATA and HOST_INFO say; sizes and groups are JSON texts in the former."""
    with open_database(path, remark) as database:
        values: dict[str, str] = {}
        if database.offers(remark, "META_DATA", "name", "value"):
            rows = database.rows("SELECT name, value FROM META_DATA")
            values = {str(name): str(value) for name, value in rows}
    parts = [
        f'"{name}": {values[name]}'
        for name in ("distributed_args", "parallel_group_info")
        if values.get(name)
    ]
    try:
        metadata = parse_metadata(("{" + ", ".join(parts) + "}").encode())
    except BadFileError as error:
        raise BadFileError(fact("of_part", part="META_DATA"), None, error.why) from error
    return read_db_host(path, metadata)


def read_db_host(path: Path, metadata: RankMetadata) -> RankMetadata:
    """Return the metadata with the host that HOST_INFO names, empty where it names none."""
    host = uid = ""
    with open_database(path, unheard) as database:
        if database.has("HOST_INFO", "hostName"):
            found = database.rows("SELECT hostName FROM HOST_INFO")
            host = str(found[0][0]) if found else ""
        with suppress(BadFileError):  # columns of an older version lack it
            if database.has("HOST_INFO", "hostUid"):
                found = database.rows("SELECT hostUid FROM HOST_INFO")
                uid = str(found[0][0]) if found else ""
    return replace(metadata, host_name=host, host_uid=uid)


def read_db_environment(path: Path, rank: int, remark: Remark) -> pa.Table | None:
    """Return ENVIRONMENT of META_DATA; None where it records no variable."""
    with open_database(path, remark) as database:
        if not database.has("META_DATA", "name", "value"):
            return None
        rows = database.rows("SELECT value FROM META_DATA WHERE name = ?", (ENVIRONMENT_KEY,))
    return environment_of(rank, str(rows[0][0]).encode()) if rows else None
