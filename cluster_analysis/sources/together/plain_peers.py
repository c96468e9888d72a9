"""Whom messages are for, of the profiler databases of several ranks, where nothing of them is to be told."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Struct

from cluster_analysis.sources.compiled.cells import Cells, whole_numbers
from cluster_analysis.sources.compiled.operator_names import told_by_names
from cluster_analysis.sources.db.profiler_db import read_step_times
from cluster_analysis.sources.db.sqlite import Database, StepTime
from cluster_analysis.sources.db.task_peers_db import (
    INFO,
    are_named,
    each_once,
    names_peers,
    peers_table,
    steps_of,
)
from cluster_analysis.sources.db.tasks import OPERATOR, places_of, read_operators, strings
from cluster_analysis.sources.together.plain_kernels import OfTasks, each_plain
from cluster_analysis.sources.together.plain_text import FileOfRank, tell
from cluster_analysis.sources.together.whole import parts_of
from cluster_run.ids import MAX_RANKS

_Ints = npt.NDArray[np.int64]
PEERS = "peers"
#: Ids of operators count up, or nearly.
_DENSE = 16


class _Operators(Struct, frozen=True):
    """The operators of one rank, and the tasks that name their ends.

    Attributes:
        ids: of each operator its own, where its name and its group lie in `known`, and its start, ns (4, n).
        known: the texts of the database.
        tasks: of each task its operator, source and destination (3, N).
        times: the steps.
    """

    ids: tuple[_Ints, _Ints, _Ints, _Ints]
    known: pa.Array
    tasks: tuple[_Ints, _Ints, _Ints]
    times: Sequence[StepTime]


class _Messages(Struct, frozen=True):
    """Messages of one rank: their operators' rows, steps, and ends."""

    rows: npt.NDArray[np.intp]
    steps: _Ints
    sources: _Ints
    peers: _Ints


_NONE = np.zeros(0, np.int64)
_NO_MESSAGES = _Messages(_NONE, _NONE, _NONE, _NONE)


def peers_of_databases(files: Sequence[FileOfRank]) -> OfTasks:
    """Return LINKS (variant `peer`) of databases whose tasks name peers; None for one without messages."""
    found = each_plain(files, _operators)
    if not found:
        return {}
    _, _, operators = zip(*found, strict=True)
    begins = np.cumsum([0, *(len(one.known) for one in operators)])
    known = pa.concat_arrays([one.known for one in operators])
    places = [one.ids[1] + begin for one, begin in zip(operators, begins, strict=False)]
    op_names = known.take(pa.array(np.concatenate(places)))
    op_types, is_p2p, _ = told_by_names(op_names)
    ends = np.cumsum([0, *map(len, places)])
    are_messages = np.split(is_p2p.to_numpy(zero_copy_only=False), ends[1:-1])
    messages = [_messages(one, is_one) for one, is_one in zip(operators, are_messages, strict=True)]
    is_plain = [one is not None for one in messages]
    of = [one or _NO_MESSAGES for one in messages]
    n_rows = np.array([len(one.rows) for one in of])
    rows = pa.array(np.concatenate([one.rows + begin for one, begin in zip(of, ends, strict=False)]))
    ranks = np.repeat(np.array([rank for _, rank, _ in found], np.int32), n_rows)
    groups = [one.ids[2][own.rows] + begin for one, own, begin in zip(operators, of, begins, strict=False)]
    table = peers_table(
        (ranks, np.concatenate([one.steps for one in of])),
        known.take(pa.array(np.concatenate(groups))),
        op_names.take(rows),
        op_types.take(rows),
        (np.concatenate([one.sources for one in of]), np.concatenate([one.peers for one in of])),
    )
    parts = zip(found, parts_of(table, n_rows), is_plain, strict=True)
    return {(PEERS, path): part if part.num_rows else None for (path, _, _), part, is_one in parts if is_one}


def _operators(database: Database, path: Path) -> _Operators | None:
    if not names_peers(database):
        return None
    read_operators(database)
    operators = _whole(database.cells(OPERATOR, "opId", "opName", "groupName", "startNs"))
    tasks = _whole(database.cells(INFO, "opId", "srcRank", "dstRank"))
    known, texts = database.once(strings)
    if operators is None or tasks is None or not len(known) or not len(operators[0]):
        return None
    ids, named, groups, starts = operators
    of, sources, peers = tasks
    (names, are_names), (group_names, are_groups) = (places_of(known, one) for one in (named, groups))
    if not (are_names.all() and are_groups.all()):
        return None
    times = read_step_times(path, tell)
    return _Operators((ids, names, group_names, starts), texts, (of, sources, peers), times)


def _whole(columns: Sequence[Cells]) -> list[_Ints] | None:
    """Return columns of whole numbers; None where a cell holds something else."""
    found = [whole_numbers(one) for one in columns]
    return [values for values, _ in found] if all(is_whole.all() for _, is_whole in found) else None


def _messages(operators: _Operators, is_message: npt.NDArray[np.bool_]) -> _Messages | None:
    """Return the messages; None where ids are there twice or far apart."""
    ids, _, _, starts = operators.ids
    of, sources, peers = operators.tasks
    rows = np.flatnonzero(is_message)
    if not len(rows):
        return _NO_MESSAGES
    least, most = int(ids[rows].min()), int(ids[rows].max())
    if most - least >= _DENSE * len(ids):
        return None
    by_id = np.full(most - least + 2, -1, np.intp)
    by_id[ids[rows] - least] = rows
    if np.count_nonzero(by_id >= 0) < len(rows):
        return None
    # The last place is that of all other operators.
    at = by_id[np.where((of >= least) & (of <= most), of - least, -1)]
    tasks = np.flatnonzero(at >= 0)
    at, sources, peers = at[tasks], sources[tasks], peers[tasks]
    is_new = are_named(sources, peers)
    # Most tasks of a message are one behind the other.
    is_new[1:] &= (np.diff(at) != 0) | (np.diff(sources) != 0) | (np.diff(peers) != 0)
    at, sources, peers = at[is_new], sources[is_new], peers[is_new]
    order = each_once(np.stack([starts[at], ids[at], sources, peers]))
    at, sources, peers = at[order], sources[order], peers[order]
    steps, is_kept = steps_of(operators.times, starts[at])
    for end in (sources, peers):
        is_kept &= end < MAX_RANKS
    return _Messages(at[is_kept], steps[is_kept], sources[is_kept], peers[is_kept])
