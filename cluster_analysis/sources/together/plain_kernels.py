"""Kernels of the profiler databases of several ranks, where nothing of them is to be told."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Struct

from cluster_analysis.sources.compiled.cells import whole_numbers
from cluster_analysis.sources.db.figures_db import KERNEL_TEXTS, operators_of_ranks, sums_of_texts
from cluster_analysis.sources.db.sqlite import Database, open_database
from cluster_analysis.sources.db.tasks import (
    KERNEL,
    TASK,
    kernel_groups,
    places_of,
    strings,
    task_times,
    tell_untimed,
)
from cluster_analysis.sources.errors import BadFileError
from cluster_analysis.sources.kernel_groups import kernels_of_ranks
from cluster_analysis.sources.reading import path_of
from cluster_analysis.sources.together.plain_text import FileOfRank, NotPlainError, tell
from cluster_analysis.sources.together.whole import parts_of

_Ints = npt.NDArray[np.int64]
_T = TypeVar("_T")
KERNELS, OPERATORS = "kernels", "operators"
_NAMES = (*KERNEL_TEXTS, "opState")
#: What is made of tasks, by what it is and path; None for what a database has nothing of.
OfTasks = dict[tuple[str, str], "pa.Table | None"]


class _Kinds(Struct, frozen=True):
    """The kinds of kernels of one rank.

    Attributes:
        texts: where the texts that name them lie in `known` (5 or 6 texts, n kinds).
        known: the texts of the database.
        sums: number, ns in all, at least and at most (4, n).
    """

    texts: _Ints
    known: pa.Array
    sums: _Ints


def kernels_of_databases(files: Sequence[FileOfRank]) -> OfTasks:
    """Return OPERATORS and KERNELS of databases whose tasks have them."""
    found = each_plain(files, _kinds)
    if not found:
        return {}
    # Those with other columns than most are few, if any.
    ((n_texts, _),) = Counter(len(one.texts) for _, _, one in found).most_common(1)
    found = [one for one in found if len(one[2].texts) == n_texts]
    paths, ranks, kinds = zip(*found, strict=True)
    try:
        owners = np.repeat(np.arange(len(kinds)), [one.texts.shape[1] for one in kinds])
        sums = _sums(kinds)
        tables = {
            KERNELS: kernels_of_ranks(ranks, owners, sums_of_texts(sums)),
            OPERATORS: operators_of_ranks(ranks, owners, sums),
        }
    except (BadFileError, ValueError, TypeError, ArithmeticError, LookupError):
        return {}
    return {
        (what, path): part
        for what, made in tables.items()
        if made is not None
        for path, part in zip(paths, parts_of(*made), strict=True)
    }


def each_plain(
    files: Sequence[FileOfRank], read: Callable[[Database, Path], _T | None]
) -> list[tuple[str, int, _T]]:
    """Return what is read of each database of which nothing is to be told, with its path and rank."""
    found = []
    for path, rank in files:
        try:
            with open_database(path_of(path), tell) as database:
                one = read(database, path_of(path))
        except (BadFileError, NotPlainError, ValueError, TypeError, ArithmeticError, LookupError):
            # Whoever reads the rank alone says what is wrong.
            continue
        if one is not None:
            found.append((path, rank, one))
    return found


def _kinds(database: Database, _path: Path) -> _Kinds | None:
    if not database.has(KERNEL, *KERNEL_TEXTS, "globalTaskId") or not database.has(
        TASK, "startNs", "endNs", "globalTaskId"
    ):
        return None
    tell_untimed(database.once(task_times), "task", tell)
    groups = database.once(kernel_groups)
    known, texts = database.once(strings)
    if not len(groups.rows) or not len(known):
        return None
    ids, are_ids = zip(*map(whole_numbers, groups.columns.values()), strict=True)
    wanted = np.stack([one[groups.rows] for one in ids])
    places, are_known = places_of(known, wanted)
    is_plain = are_known.all() and all(one[groups.rows].all() for one in are_ids)
    return _Kinds(places, texts, np.stack(groups.sums)) if is_plain else None


def _sums(kinds: Sequence[_Kinds]) -> pa.Table:
    """Return what `kernel_sums` has of each rank, one behind the other."""
    begins = np.cumsum([0, *(len(one.known) for one in kinds)])
    places = np.concatenate([one.texts + begin for one, begin in zip(kinds, begins, strict=False)], axis=1)
    texts = pa.concat_arrays([one.known for one in kinds]).take(pa.array(places.ravel()))
    n = places.shape[1]
    names = _NAMES[: len(places)]
    figures = np.concatenate([one.sums for one in kinds], axis=1)
    return pa.table(
        {
            **{name: texts.slice(at * n, n) for at, name in enumerate(names)},
            **dict(zip(("n", "all_ns", "min_ns", "max_ns"), map(pa.array, figures), strict=True)),
        }
    )
