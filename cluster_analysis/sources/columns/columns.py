"""The columns of one file: as a host sent them (`columns_file`), or in memory by the reference reader."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.sources.errors import BadFileError, Remark
from cluster_analysis.sources.names import coded_rows
from cluster_reduce.form import UnfitError
from cluster_reduce.json_walk import DamagedError
from cluster_run.facts import fact


class Columns:
    """Columns of a file. Every method raises BadFileError where they are damaged."""

    def has(self, name: str) -> bool:
        """Return whether there is such a column."""
        raise NotImplementedError

    def ints(self, name: str) -> IntArray:
        """Return whole numbers, or points in time in ns."""
        raise NotImplementedError

    def floats(self, name: str) -> FloatArray:
        """Return numbers, NaN for a missing one."""
        raise NotImplementedError

    def coded(self, name: str) -> tuple[IntArray, list[str | None]]:
        """Return which text each row has, and the distinct texts, None for a missing one."""
        raise NotImplementedError

    def texts(self, name: str) -> pa.DictionaryArray:
        """Return texts (dictionary, in the order of their first rows), null for a missing one."""
        return coded_rows(self.coded(name))

    def names(self, name: str) -> pa.Array:
        """Return texts one by one, "" for a missing one: names, most of them different."""
        raise NotImplementedError


class GivenColumns(Columns):
    """Columns in memory, which were never bytes.

    Args:
        read: the reference reader of a file: takes its content, and what takes facts.
        content: the file.
        remark: called with what is left out.
    """

    def __init__(
        self,
        read: Callable[[bytes, Callable[..., None]], Iterator[tuple[str, str, Sequence[Any]]]],
        content: bytes,
        remark: Remark,
    ) -> None:
        def tell(*facts: tuple[str, dict[str, Any]]) -> None:
            remark(*(fact(kind, **values) for kind, values in facts))

        try:
            self._values = {name: values for _, name, values in read(content, tell)}
        except DamagedError as error:
            raise BadFileError(fact(error.kind, **error.values)) from error
        except UnfitError as error:
            raise BadFileError(fact("not_of_form", detail=str(error))) from error

    def has(self, name: str) -> bool:
        """Return whether there is such a column."""
        return name in self._values

    def ints(self, name: str) -> IntArray:
        """Return whole numbers, or points in time in ns."""
        return np.array(self._values[name], np.int64)

    def floats(self, name: str) -> FloatArray:
        """Return numbers, NaN for a missing one."""
        return np.array(self._values[name], np.float64)

    def coded(self, name: str) -> tuple[IntArray, list[str | None]]:
        """Return which text each row has, and the distinct texts, None for a missing one."""
        known: dict[str | None, int] = {}
        places = [known.setdefault(text, len(known)) for text in self._values[name]]
        return np.array(places, np.int64), list(known)

    def names(self, name: str) -> pa.Array:
        """Return the same one by one, "" for a missing one."""
        return pa.array([text or "" for text in self._values[name]], pa.string())


def are_places(rows: IntArray, n: int) -> bool:
    """Return whether all these are numbers from 0 to n - 1."""
    return not len(rows) or 0 <= int(rows.min()) <= int(rows.max()) < n


def damaged(detail: str) -> BadFileError:
    """Return that columns are not what they should be."""
    return BadFileError(fact("not_of_form", detail=f"columns: {detail}"), "collect_again")
