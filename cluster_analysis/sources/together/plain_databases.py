"""Databases of several ranks, made into tables together where nothing of them is to be told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from cluster_analysis.sources.db.analysis_db import STEPS, TIME, communication_of, steps_of
from cluster_analysis.sources.db.matrix_db import MATRIX, links_of
from cluster_analysis.sources.db.sqlite import Database, open_database
from cluster_analysis.sources.errors import BadFileError
from cluster_analysis.sources.reading import path_of
from cluster_analysis.sources.text.communication_json import CommunicationTables
from cluster_analysis.sources.together.plain_text import FileOfRank, NotPlainError, tell
from cluster_analysis.sources.together.several import Several, UnlikeError
from cluster_analysis.sources.together.whole import Whole, whole

_T = TypeVar("_T")
#: What is made of each database, and the tables that it is pieces of.
_Made = tuple[Sequence[_T], tuple[Whole, ...]]
#: The same by path.
Together = tuple[dict[str, _T], tuple[Whole, ...]]
_NONE: _Made[Any] = (), ()


def operators_of_databases(files: Sequence[FileOfRank]) -> Together[CommunicationTables]:
    """Return the tables of communication of databases that tell the steps, by path."""
    return _made(files, _communication)


def links_of_databases(files: Sequence[FileOfRank]) -> Together[pa.Table]:
    """Return LINKS of databases that tell the steps, by path."""
    return _made(files, _links)


def steps_of_databases(files: Sequence[FileOfRank]) -> Together[pa.Table]:
    """Return STEPS of databases that have step times, by path."""
    return _made(files, _steps)


def _communication(several: Several, ranks: Sequence[int]) -> _Made[CommunicationTables]:
    found = communication_of(several, ranks, tell)
    if found is None:
        return _NONE
    collectives, packets, owners = found
    wholes = (
        whole(collectives, several.n_rows(TIME)),
        whole(packets, np.bincount(owners, minlength=len(ranks))),
    )
    parts = zip(*(one.parts for one in wholes), strict=True)
    return [CommunicationTables(*one) for one in parts], wholes


def _links(several: Several, ranks: Sequence[int]) -> _Made[pa.Table]:
    found = links_of(several, ranks, tell)
    return _NONE if found is None else _of_whole(found, several.n_rows(MATRIX))


def _steps(several: Several, ranks: Sequence[int]) -> _Made[pa.Table]:
    found = steps_of(several, ranks, tell)
    # A table without rows counts as none, and another file is asked.
    if found is None or not all(several.n_rows(STEPS)):
        return _NONE
    return _of_whole(found, several.n_rows(STEPS))


def _of_whole(table: pa.Table, counts: Sequence[int]) -> _Made[pa.Table]:
    one = whole(table, counts)
    return one.parts, (one,)


def _made(files: Sequence[FileOfRank], make: Callable[[Several, Sequence[int]], _Made[_T]]) -> Together[_T]:
    """Return what is made of databases that are alike, by path; those that are unlike most are left out."""
    with ExitStack() as stack:
        opened = []
        for path, rank in files:
            try:
                opened.append((path, rank, stack.enter_context(open_database(path_of(path), tell))))
            except (BadFileError, NotPlainError, ValueError):
                continue
        while opened:
            try:
                found, wholes = _of_all(opened, make)
            except UnlikeError as error:
                opened = [one for place, one in enumerate(opened) if place not in error.places]
                continue
            except (NotPlainError, BadFileError, ValueError, TypeError, ArithmeticError, LookupError):
                break
            return {path: one for (path, _, _), one in zip(opened, found, strict=False)}, wholes
    return {}, ()


def _of_all(
    opened: Sequence[tuple[str, int, Database]], make: Callable[[Several, Sequence[int]], _Made[_T]]
) -> _Made[_T]:
    several = Several([database for _, _, database in opened])
    return make(several, [rank for _, rank, _ in opened])
