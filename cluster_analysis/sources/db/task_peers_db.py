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
import pyarrow.compute as pc
from msgspec import Struct

from cluster_analysis.sources import numbers
from cluster_analysis.sources.compiled.cells import Cells, whole_numbers
from cluster_analysis.sources.compiled.operator_names import told_by_names
from cluster_analysis.sources.db.profiler_db import read_step_times
from cluster_analysis.sources.db.sqlite import Database, StepTime, open_database, step_at
from cluster_analysis.sources.db.tasks import OPERATOR, pairs, texts_of
from cluster_analysis.sources.errors import Remark
from cluster_analysis.tables import schema
from cluster_analysis.tables.group_hash import as_group_hash
from cluster_run.ids import MAX_RANKS

INFO = "COMMUNICATION_TASK_INFO"
_MESSAGES = "send|recv|receive"
#: A task without a peer works on its own rank's memory.
_NO_PEER = 0xFFFFFFFF
_Ints = npt.NDArray[np.int64]


class _Messages(Struct, frozen=True):
    """What tasks say of messages, each once, in columns of equal length; ordered by their start.

    Attributes:
        op_names: the operators.
        groups: their groups, as the file names them, null where it does not.
        starts_ns: when each operator began.
        sources: the rank whose task it is, in its group.
        peers: the other end.
    """

    op_names: pa.Array
    groups: pa.Array
    starts_ns: _Ints
    sources: _Ints
    peers: _Ints


def read_task_peers(path: Path, rank: int, remark: Remark) -> pa.Table | None:
    """Return LINKS (variant `peer`, neither size nor time) of all messages; None where no task names a peer.

    Raises:
        BadFileError: the database cannot be read.
    """
    times = read_step_times(path, remark)
    with open_database(path, remark) as database:
        found = _messages(database) if names_peers(database) else None
    if found is None:
        return None
    steps, is_kept = steps_of(times, found.starts_ns)
    for ends in (found.sources, found.peers):
        is_kept &= (ends >= 0) & (ends < MAX_RANKS)
    kept = pa.array(is_kept)
    op_names = found.op_names.filter(kept)
    if not len(op_names):
        return None
    ends_of = found.sources[is_kept], found.peers[is_kept]
    told = told_by_names(op_names)
    of = numbers.ranks_of(rank, len(op_names)), steps[is_kept]
    return peers_table(of, found.groups.filter(kept), op_names, told[0], ends_of).filter(told[1])


def peers_table(
    of: tuple[npt.NDArray[np.int32], _Ints],
    groups: pa.Array,
    op_names: pa.Array,
    op_types: pa.Array,
    ends: tuple[_Ints, _Ints],
) -> pa.Table:
    """Return LINKS of messages.

    Args:
        of: the rank and the step of each (N,).
        groups: their groups, as the files name them, null where they do not (N,).
        op_names: the operators (N,).
        op_types: what these do (N,).
        ends: source and destination of each, in its group (N,).
    """
    n_rows = len(op_names)
    columns = {
        "rank": pa.array(of[0]),
        "step": pa.array(of[1]),
        "group": _hashes(groups),
        "is_p2p": numbers.constant(True, n_rows, pa.bool_()),
        "op_type": op_types,
        "variant": numbers.encoded([schema.PEER_VARIANT] * n_rows),
        "op_name": op_names,
        "src_local": pa.array(ends[0], pa.int32()),
        "dst_local": pa.array(ends[1], pa.int32()),
        "src_rank": pa.nulls(n_rows, pa.int32()),
        "dst_rank": pa.nulls(n_rows, pa.int32()),
        "transport": numbers.encoded([None] * n_rows),
        "size_bytes": pa.nulls(n_rows, pa.float64()),
        "time_us": pa.nulls(n_rows, pa.float64()),
    }
    return pa.table(columns, schema=schema.LINKS)


def _messages(database: Database) -> _Messages | None:
    """Return all messages whose tasks name a peer; None where no operator is a message."""
    op_ids, name_ids, group_ids, starts = database.cells(OPERATOR, "opId", "opName", "groupName", "startNs")
    op_names = texts_of(database, _ids(name_ids))
    is_message = pc.match_substring_regex(pc.ascii_lower(op_names), _MESSAGES).fill_null(False)
    (ids, are_ids), (starts_ns, are_starts) = whole_numbers(op_ids), whole_numbers(starts)
    operators = np.flatnonzero(is_message.to_numpy(zero_copy_only=False) & are_ids & are_starts)
    if not len(operators):
        return None
    (of, are_of), (sources, are_sources), (peers, are_peers) = map(
        whole_numbers, database.cells(INFO, "opId", "srcRank", "dstRank")
    )
    is_named = are_of & are_sources & are_peers & are_named(sources, peers)
    named = np.flatnonzero(is_named)
    tasks, at = pairs(of[named], ids[operators])
    tasks, rows = named[tasks], operators[at]
    keys = np.stack([starts_ns[rows], ids[rows], sources[tasks], peers[tasks]])
    order = each_once(keys)
    rows = pa.array(rows[order])
    groups = texts_of(database, _ids(group_ids).take(rows))
    ends_of = keys[:, order]
    return _Messages(op_names.take(rows), groups, ends_of[0], ends_of[2], ends_of[3])


def are_named(sources: _Ints, peers: _Ints) -> npt.NDArray[np.bool_]:
    """Return which tasks name a peer (N,)."""
    is_named: npt.NDArray[np.bool_] = sources != peers
    for ends in (sources, peers):
        is_named &= (ends >= 0) & (ends < _NO_PEER)
    return is_named


def each_once(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
    """Return the places of tasks by their keys (start, id, source, peer: (4, N)), each message once.

    A message has several tasks; who it is between is the same.
    """
    order = np.lexsort(keys[::-1])
    is_new = np.ones(len(order), bool)
    is_new[1:] = (np.diff(keys[1:, order], axis=1) != 0).any(axis=0)
    return order[is_new]


def _ids(cells: Cells) -> pa.Array:
    """Return whole numbers, null for what is none."""
    values, is_whole = whole_numbers(cells)
    return pa.array(values, mask=None if is_whole.all() else ~is_whole)


def steps_of(times: Sequence[StepTime], starts_ns: _Ints) -> tuple[_Ints, npt.NDArray[np.bool_]]:
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


def _hashes(groups: pa.Array) -> pa.DictionaryArray:
    """Return the groups as operators' names have them."""
    encoded = pc.fill_null(groups, "").dictionary_encode()
    hashes = pa.array(map(as_group_hash, encoded.dictionary.to_pylist()), pa.string())
    return numbers.encoded(hashes.take(encoded.indices))


def names_peers(database: Database) -> bool:
    """Return whether the database has what says whom messages are for."""
    return (
        database.has(INFO, "srcRank", "dstRank", "opId")
        and database.has(OPERATOR, "opId", "opName", "groupName", "startNs")
        and database.has("STRING_IDS", "id", "value")
    )
