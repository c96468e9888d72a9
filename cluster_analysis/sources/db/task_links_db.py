"""Links from the tasks of a profiler database, where there is no analysis.db and no matrix.

Copies over HCCS, PCIE, SIO and on the chip are tasks of their own (`Memcpy`, `Reduce_Inline`) with peer, size
and length in ns, so their sums are what the matrix holds. RDMA is not read: posting it is a task, the
transfer is not.

Each task of a message names its peer, also those that only wait (`Notify_Wait`) or post (`RDMASend`). A
matrix names those of the fastest, slowest and middle messages alone; tasks name those of all of them.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from cluster_analysis.sources import names, numbers
from cluster_analysis.sources.db.profiler_db import read_step_times
from cluster_analysis.sources.db.sqlite import open_database, step_at
from cluster_analysis.sources.db.tasks import OPERATOR, TASK, TIMED, is_timed, tell_untimed
from cluster_analysis.sources.errors import Remark, tell_left_out
from cluster_analysis.sources.link_names import OPERATOR_VARIANT
from cluster_analysis.tables import schema
from cluster_analysis.tables.hccl_names import REMOTE_LINKS, as_group_hash, link_name
from cluster_analysis.tables.operations import MESSAGES
from cluster_run.ids import MAX_RANKS

_INFO, _STRINGS = "COMMUNICATION_TASK_INFO", "STRING_IDS"
_OF_TASKS = ("globalTaskId", "taskType", "srcRank", "dstRank", "linkType", "size", "opId")
_OF_OPERATORS = ("opId", "opName", "groupName", "startNs")
_COPIES = ("Memcpy", "Reduce_Inline", "Reduce Inline")
_WHOLE = ("o.startNs", "o.opId", "i.srcRank", "i.dstRank")
#: A message has several tasks, all between the same two ranks. A task without a peer names itself, or no
#: rank.
_PEERS = (
    f"SELECT DISTINCT {', '.join(_WHOLE)}, n.value, g.value FROM {OPERATOR} AS o "
    f"JOIN {_INFO} AS i ON i.opId = o.opId JOIN {_STRINGS} AS n ON n.id = o.opName "
    f"LEFT JOIN {_STRINGS} AS g ON g.id = o.groupName "
    "WHERE (n.value LIKE '%send%' OR n.value LIKE '%recv%' OR n.value LIKE '%receive%') "
    + "".join(f"AND typeof({name}) = 'integer' " for name in _WHOLE)
    + "AND i.srcRank <> i.dstRank "
    f"AND i.srcRank BETWEEN 0 AND {MAX_RANKS - 1} AND i.dstRank BETWEEN 0 AND {MAX_RANKS - 1} "
    "ORDER BY 1, 2, 3, 4"
)
#: A task without a peer works on its own rank's memory.
_NO_PEER = 0xFFFFFFFF


def read_task_links(path: Path, rank: int, remark: Remark) -> pa.Table | None:
    """Return LINKS (variant `op`) of the copies between ranks; None where the database holds none."""
    times = read_step_times(path, remark)
    with open_database(path, remark) as database:
        if not database.offers_all(remark, {_INFO: _OF_TASKS, OPERATOR: _OF_OPERATORS, TASK: TIMED}):
            return None
        tell_untimed(database, TASK, "task", remark)
        rows = database.rows(_query(), _COPIES)
    known = [(row, step_at(times, row[2])) for row in rows if row[5] not in REMOTE_LINKS]
    known = [(row, step) for row, step in known if step is not None]
    n_found = len(known)
    known = [(row, step) for row, step in known if None not in map(numbers.local_rank, row[3:5])]
    tell_left_out(remark, n_found - len(known), "link", "no_such_rank")
    if not known:
        return None
    op_names = pa.array([str(row[0] or "") for row, _ in known], pa.string())
    sources = [row[3] for row, _ in known]
    peers = [row[4] if row[4] != _NO_PEER else row[3] for row, _ in known]
    return schema.rows(
        schema.LINKS,
        rank,
        step=[step for _, step in known],
        group=[as_group_hash(str(row[1] or "")) for row, _ in known],
        **names.columns(op_names),
        variant=[OPERATOR_VARIANT] * len(known),
        src_local=sources,
        dst_local=peers,
        transport=[link_name(row[5]) for row, _ in known],
        size_bytes=[float(row[6]) for row, _ in known],
        time_us=[row[7] / numbers.NS_PER_US for row, _ in known],
    )


def _query() -> str:
    """Return the query: operator, group, its start, ranks, link, bytes, ns; summed by the database."""
    marks = ", ".join("?" * len(_COPIES))
    peer = f"CASE WHEN i.dstRank = {_NO_PEER} THEN i.srcRank ELSE i.dstRank END"
    link = f"CASE WHEN {peer} = i.srcRank THEN 0 ELSE i.linkType END"
    return (
        f"SELECT n.value, g.value, o.startNs, i.srcRank, {peer} AS peer, {link} AS link, SUM(i.size), "
        f"SUM({TASK}.endNs - {TASK}.startNs) FROM {_INFO} AS i "
        f"JOIN {TASK} ON {TASK}.globalTaskId = i.globalTaskId "
        f"JOIN {OPERATOR} AS o ON o.opId = i.opId JOIN {_STRINGS} AS k ON k.id = i.taskType "
        f"LEFT JOIN {_STRINGS} AS n ON n.id = o.opName LEFT JOIN {_STRINGS} AS g ON g.id = o.groupName "
        f"WHERE k.value IN ({marks}) AND {is_timed(TASK)} AND typeof(o.startNs) = 'integer' "
        "AND typeof(i.size) = 'integer' AND i.size > 0 "
        f"AND i.srcRank < {_NO_PEER} AND peer < {_NO_PEER} "
        "GROUP BY o.opId, i.srcRank, peer, link ORDER BY o.startNs, i.srcRank, peer"
    )


def read_task_peers(path: Path, rank: int, remark: Remark) -> pa.Table | None:
    """Return LINKS (variant `peer`, neither size nor time) of all messages; None where no task names one."""
    times = read_step_times(path, remark)
    with open_database(path, remark) as database:
        needed = {_INFO: ("srcRank", "dstRank", "opId"), OPERATOR: _OF_OPERATORS, _STRINGS: ("id", "value")}
        if not database.offers_all(remark, needed):
            return None
        rows = database.rows(_PEERS)
    op_types = names.operations(pa.array([str(row[4]) for row in rows], pa.string())).to_pylist()
    known = [
        (row, op_type, step)
        for row, op_type in zip(rows, op_types, strict=True)
        if op_type in MESSAGES and (step := step_at(times, row[0])) is not None
    ]
    if not known:
        return None
    hashes = {group: as_group_hash(str(group or "")) for group in {row[5] for row, *_ in known}}
    return schema.rows(
        schema.LINKS,
        rank,
        step=[step for *_, step in known],
        group=[hashes[row[5]] for row, *_ in known],
        is_p2p=[True] * len(known),
        op_type=[op_type for _, op_type, _ in known],
        variant=[schema.PEER_VARIANT] * len(known),
        op_name=[str(row[4]) for row, *_ in known],
        src_local=[row[2] for row, *_ in known],
        dst_local=[row[3] for row, *_ in known],
    )
