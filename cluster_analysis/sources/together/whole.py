"""A table of several ranks, and the pieces of it that belong to each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Struct


class Whole(Struct, frozen=True):
    """A table (None: there is none), and its pieces, one behind the other."""

    table: pa.Table | None
    parts: tuple[pa.Table, ...]


NOTHING_WHOLE = Whole(None, ())


def whole(table: pa.Table, counts: Sequence[int] | npt.NDArray[np.int64]) -> Whole:
    """Return a table and its pieces of so many rows each; a count below 0 has no piece."""
    return Whole(table, tuple(parts_of(table, [int(count) for count in counts if count >= 0])))


def parts_of(table: pa.Table, counts: Sequence[int] | npt.NDArray[np.int64]) -> list[pa.Table]:
    """Cut a table into pieces of so many rows each."""
    places = pairwise(np.cumsum([0, *counts]).tolist())
    return [table.slice(begin, end - begin) for begin, end in places]


def put_together(tables: Sequence[pa.Table], known: Iterable[Whole]) -> list[pa.Table]:
    """Return the same rows, with a whole table in place of all of its pieces where they lie side by side.

    Then nobody has to copy them to have them in one piece again.
    """
    by_first = {id(one.parts[0]): one for one in known if one.parts}
    found: list[pa.Table] = []
    at = 0
    while at < len(tables):
        one = by_first.get(id(tables[at]), NOTHING_WHOLE)
        own = tables[at : at + len(one.parts)]
        is_whole = one.table is not None and list(map(id, own)) == list(map(id, one.parts))
        found.append(one.table if is_whole else tables[at])
        at += len(own) if is_whole else 1
    return found
