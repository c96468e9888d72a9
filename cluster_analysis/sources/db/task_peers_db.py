"""Whom sends and receives talk with, from the tasks of a profiler database.

Each task of a message names its peer, also those that only wait (`Notify_Wait`) or post (`RDMASend`). A
matrix names those of the fastest, slowest and middle messages alone; tasks name those of all of them.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from cluster_analysis.sources import names
from cluster_analysis.sources.db.profiler_db import read_step_times
from cluster_analysis.sources.db.sqlite import Database, open_database, step_at
from cluster_analysis.sources.db.tasks import OPERATOR
from cluster_analysis.sources.errors import Remark
from cluster_analysis.tables import schema
from cluster_analysis.tables.hccl_names import as_group_hash
from cluster_analysis.tables.operations import MESSAGES
from cluster_run.ids import MAX_RANKS

_INFO, _STRINGS = "COMMUNICATION_TASK_INFO", "STRING_IDS"
_INTEGER = "'integer'"
_WHOLE = ("o.startNs", "o.opId", "i.srcRank", "i.dstRank")
#: A message has several tasks; who it is between is the same. A task without a peer names itself, or no rank.
_QUERY = (
    f"SELECT DISTINCT {', '.join(_WHOLE)}, n.value, g.value FROM {OPERATOR} AS o "
    f"JOIN {_INFO} AS i ON i.opId = o.opId JOIN {_STRINGS} AS n ON n.id = o.opName "
    f"LEFT JOIN {_STRINGS} AS g ON g.id = o.groupName "
    "WHERE (n.value LIKE '%send%' OR n.value LIKE '%recv%' OR n.value LIKE '%receive%') "
    f"AND {' AND '.join(f'typeof({name}) = {_INTEGER}' for name in _WHOLE)} AND i.srcRank <> i.dstRank "
    f"AND i.srcRank BETWEEN 0 AND {MAX_RANKS - 1} AND i.dstRank BETWEEN 0 AND {MAX_RANKS - 1} "
    "ORDER BY 1, 2, 3, 4"
)


def read_task_peers(path: Path, rank: int, remark: Remark) -> pa.Table | None:
    """Return LINKS (variant `peer`, neither size nor time) of all messages; None where no task names a peer.

    Raises:
        BadFileError: the database cannot be read.
    """
    times = read_step_times(path, remark)
    with open_database(path, remark) as database:
        if not _names_peers(database, remark):
            return None
        rows = database.rows(_QUERY)
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


def _names_peers(database: Database, remark: Remark) -> bool:
    """Return whether the database has what says whom messages are for."""
    return (
        database.offers(remark, _INFO, "srcRank", "dstRank", "opId")
        and database.offers(remark, OPERATOR, "opId", "opName", "groupName", "startNs")
        and database.offers(remark, _STRINGS, "id", "value")
    )
