"""Links from the tasks of a profiler database, where there is no analysis.db and no matrix.

Copies over HCCS, PCIE, SIO and on the chip are tasks of their own (`Memcpy`, `Reduce_Inline`) with peer, size
and length in ns, so their sums are what the matrix holds. RDMA is not read: posting it is a task, the
transfer is not.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from cluster_analysis.sources import names, numbers
from cluster_analysis.sources.db.profiler_db import read_step_times
from cluster_analysis.sources.db.sqlite import Database, open_database, step_at
from cluster_analysis.sources.db.tasks import is_timed, tell_untimed
from cluster_analysis.sources.errors import Remark, left_out
from cluster_analysis.sources.link_names import OPERATOR_VARIANT
from cluster_analysis.tables import schema
from cluster_analysis.tables.hccl_names import REMOTE_LINKS, as_group_hash, link_name

_INFO, _OPERATOR, _TASK = "COMMUNICATION_TASK_INFO", "COMMUNICATION_OP", "TASK"
_OF_TASKS = ("globalTaskId", "taskType", "srcRank", "dstRank", "linkType", "size", "opId")
_COPIES = ("Memcpy", "Reduce_Inline", "Reduce Inline")
#: A task without a peer works on its own rank's memory.
_NO_PEER = 0xFFFFFFFF


def read_task_links(path: Path, rank: int, remark: Remark) -> pa.Table | None:
    """Return LINKS (variant `op`) of the copies between ranks; None where the database holds none.

    Raises:
        BadFileError: the database cannot be read.
    """
    times = read_step_times(path, remark)
    with open_database(path, remark) as database:
        if not _has_peers(database, remark):
            return None
        tell_untimed(database, _TASK, "task", remark)
        rows = database.rows(_query(), _COPIES)
    known = [(row, step_at(times, row[2])) for row in rows if row[5] not in REMOTE_LINKS]
    known = [(row, step) for row, step in known if step is not None]
    n_found = len(known)
    known = [(row, step) for row, step in known if None not in map(numbers.local_rank, row[3:5])]
    if len(known) < n_found:
        remark(left_out(n_found - len(known), "link", "no_such_rank"))
    if not known:
        return None
    op_names = pa.array([str(row[0] or "") for row, _ in known], pa.string())
    op_types = names.operations(op_names)
    sources = [row[3] for row, _ in known]
    peers = [row[4] if row[4] != _NO_PEER else row[3] for row, _ in known]
    return schema.rows(
        schema.LINKS,
        rank,
        step=[step for _, step in known],
        group=[as_group_hash(str(row[1] or "")) for row, _ in known],
        is_p2p=names.point_to_point(op_types),
        op_type=op_types,
        variant=[OPERATOR_VARIANT] * len(known),
        op_name=op_names,
        src_local=sources,
        dst_local=peers,
        transport=[link_name(row[5]) for row, _ in known],
        size_bytes=[float(row[6]) for row, _ in known],
        time_us=[row[7] / numbers.NS_PER_US for row, _ in known],
    )


def _has_peers(database: Database, remark: Remark) -> bool:
    return (
        database.offers(remark, _INFO, *_OF_TASKS)
        and database.offers(remark, _OPERATOR, "opId", "opName", "groupName", "startNs")
        and database.offers(remark, _TASK, "globalTaskId", "startNs", "endNs")
    )


def _query() -> str:
    """Return the query: operator, group, its start, ranks, link, bytes, ns; summed by the database."""
    marks = ", ".join("?" * len(_COPIES))
    peer = f"CASE WHEN i.dstRank = {_NO_PEER} THEN i.srcRank ELSE i.dstRank END"
    link = f"CASE WHEN {peer} = i.srcRank THEN 0 ELSE i.linkType END"
    return (
        f"SELECT n.value, g.value, o.startNs, i.srcRank, {peer} AS peer, {link} AS link, SUM(i.size), "
        f"SUM({_TASK}.endNs - {_TASK}.startNs) FROM {_INFO} AS i "
        f"JOIN {_TASK} ON {_TASK}.globalTaskId = i.globalTaskId "
        f"JOIN {_OPERATOR} AS o ON o.opId = i.opId JOIN STRING_IDS AS k ON k.id = i.taskType "
        "LEFT JOIN STRING_IDS AS n ON n.id = o.opName LEFT JOIN STRING_IDS AS g ON g.id = o.groupName "
        f"WHERE k.value IN ({marks}) AND {is_timed(_TASK)} AND typeof(o.startNs) = 'integer' "
        "AND typeof(i.size) = 'integer' AND i.size > 0 "
        f"AND i.srcRank < {_NO_PEER} AND peer < {_NO_PEER} "
        "GROUP BY o.opId, i.srcRank, peer, link ORDER BY o.startNs, i.srcRank, peer"
    )
