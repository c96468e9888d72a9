"""Whom sends and receives talk with, from the tasks of a profiler database.

Each task of a message names its peer, also those that only wait (`Notify_Wait`) or post (`RDMASend`). A
matrix names those of the fastest, slowest and middle messages alone; tasks name those of all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster_analysis.sources import names
from cluster_analysis.sources.db.profiler_db import read_step_times
from cluster_analysis.sources.db.sqlite import Database, StepTime, open_database, step_at
from cluster_analysis.sources.db.tasks import OPERATOR
from cluster_analysis.sources.errors import Remark
from cluster_analysis.tables import schema
from cluster_analysis.tables.group_hash import as_group_hash
from cluster_run.ids import MAX_RANKS

_INFO, _STRINGS = "COMMUNICATION_TASK_INFO", "STRING_IDS"
_Ints = npt.NDArray[np.int64]
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
        if not _names_peers(database):
            return None
        rows = database.rows(_QUERY)
    if not rows:
        return None
    starts_ns, sources, peers = (np.array([row[at] for row in rows], np.int64) for at in (0, 2, 3))
    steps, is_kept = _steps_of(times, starts_ns)
    op_names = pa.array([str(row[4]) for row in rows], pa.string())
    op_types = names.operations(op_names)
    is_p2p = names.point_to_point(op_types)
    is_kept &= is_p2p.to_numpy(zero_copy_only=False)
    n_rows = int(np.count_nonzero(is_kept))
    if not n_rows:
        return None
    kept = pa.array(is_kept)
    groups = [str(row[5] or "") for row, is_one in zip(rows, is_kept.tolist(), strict=True) if is_one]
    hashes = {group: as_group_hash(group) for group in groups}
    return schema.rows(
        schema.LINKS,
        rank,
        step=steps[is_kept],
        group=[hashes[group] for group in groups],
        is_p2p=np.ones(n_rows, bool),
        op_type=op_types.filter(kept),
        variant=[schema.PEER_VARIANT] * n_rows,
        op_name=op_names.filter(kept),
        src_local=sources[is_kept],
        dst_local=peers[is_kept],
    )


def _steps_of(times: Sequence[StepTime], starts_ns: _Ints) -> tuple[_Ints, npt.NDArray[np.bool_]]:
    """Return the step in which each began (N,), and which began in one (N,); see `step_at`."""
    if not times:
        return np.zeros(len(starts_ns), np.int64), np.ones(len(starts_ns), bool)
    rows = [(one.begin_ns, one.end_ns, one.number) for one in times]
    begins, ends, known = np.array(rows, np.int64).T
    if (np.diff(begins) < 0).any() or (np.diff(ends) < 0).any():
        found = [step_at(times, start) for start in starts_ns.tolist()]
        is_in = np.array([step is not None for step in found], bool)
        return np.array([step or 0 for step in found], np.int64), is_in
    at = np.searchsorted(ends, starts_ns)
    is_in = at < len(ends)
    at = np.minimum(at, len(ends) - 1)
    return known[at], is_in & (begins[at] <= starts_ns)


def _names_peers(database: Database) -> bool:
    """Return whether the database has what says whom messages are for."""
    return (
        database.has(_INFO, "srcRank", "dstRank", "opId")
        and database.has(OPERATOR, "opId", "opName", "groupName", "startNs")
        and database.has(_STRINGS, "id", "value")
    )
