"""Databases of several ranks, made into tables together where nothing of them is to be told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TypeVar

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
from cluster_analysis.sources.together.whole import parts_of

_T = TypeVar("_T")
_Make = Callable[[Several, Sequence[int]], list[_T]]


def operators_of_databases(files: Sequence[FileOfRank]) -> dict[str, CommunicationTables]:
    """Return the tables of communication of databases that tell the steps, by path."""
    return _made(files, _communication)


def links_of_databases(files: Sequence[FileOfRank]) -> dict[str, pa.Table]:
    """Return LINKS of databases that tell the steps, by path."""
    return _made(files, _links)


def steps_of_databases(files: Sequence[FileOfRank]) -> dict[str, pa.Table]:
    """Return STEPS of databases that have step times, by path."""
    return _made(files, _steps)


def _communication(several: Several, ranks: Sequence[int]) -> list[CommunicationTables]:
    found = communication_of(several, ranks, tell)
    if found is None:
        return []
    collectives, packets, owners = found
    parts = zip(
        parts_of(collectives, several.n_rows(TIME)),
        parts_of(packets, np.bincount(owners, minlength=len(ranks))),
        strict=True,
    )
    return [CommunicationTables(*one) for one in parts]


def _links(several: Several, ranks: Sequence[int]) -> list[pa.Table]:
    found = links_of(several, ranks, tell)
    return [] if found is None else parts_of(found, several.n_rows(MATRIX))


def _steps(several: Several, ranks: Sequence[int]) -> list[pa.Table]:
    found = steps_of(several, ranks, tell)
    # A table without rows counts as none, and another file is asked.
    return [] if found is None or not all(several.n_rows(STEPS)) else parts_of(found, several.n_rows(STEPS))


def _made(files: Sequence[FileOfRank], make: _Make[_T]) -> dict[str, _T]:
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
                found = _of_all(opened, make)
            except UnlikeError as error:
                opened = [one for place, one in enumerate(opened) if place not in error.places]
                continue
            except (NotPlainError, BadFileError, ValueError, TypeError, ArithmeticError, LookupError):
                break
            return {path: one for (path, _, _), one in zip(opened, found, strict=False)}
    return {}


def _of_all(opened: Sequence[tuple[str, int, Database]], make: _Make[_T]) -> list[_T]:
    several = Several([database for _, _, database in opened])
    return make(several, [rank for _, rank, _ in opened])
