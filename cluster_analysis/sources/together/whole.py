"""A table of several ranks, and the pieces of it that belong to each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Struct


class Laid(Struct, frozen=True):
    """What is known of a table whose rows are laid by step.

    Attributes:
        by_step: its rows by step, in the order of the ranks.
        totals: TOTALS of COLLECTIVES; None for another table.
        uses: USES of COLLECTIVES; None for another table.
    """

    by_step: Mapping[int, pa.Table]
    totals: pa.Table | None = None
    uses: pa.Table | None = None


class Whole(Struct, frozen=True):
    """A table (None: there is none), and its pieces, one behind the other unless it is laid by step."""

    table: pa.Table | None
    parts: tuple[pa.Table, ...]
    laid: Laid | None = None


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
    behind = [one for one in known if one.laid is None]
    return [one if of is None else of.table for one, of in _with_wholes(tables, behind)]


def laid_together(tables: Sequence[pa.Table], known: Iterable[Whole]) -> list[Whole] | None:
    """Return the tables laid by step that have these rows and no others; None where there are none such."""
    found = [of for one, of in _with_wholes(tables, known) if of is not None or one.num_rows]
    laid = [of for of in found if of is not None and of.laid is not None]
    return laid if len(laid) == len(found) else None


def _with_wholes(tables: Sequence[pa.Table], known: Iterable[Whole]) -> list[tuple[pa.Table, Whole | None]]:
    """Return the tables; of those that are all pieces of a whole one the first, with that."""
    by_first = {id(one.parts[0]): one for one in known if one.parts and one.table is not None}
    found: list[tuple[pa.Table, Whole | None]] = []
    at = 0
    while at < len(tables):
        one = by_first.get(id(tables[at]), NOTHING_WHOLE)
        own = tables[at : at + len(one.parts)]
        is_whole = one.table is not None and list(map(id, own)) == list(map(id, one.parts))
        found.append((tables[at], one if is_whole else None))
        at += len(own) if is_whole else 1
    return found
