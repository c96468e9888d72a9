"""Where the rows of each file and of each step lie in a table that several files are laid in."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec import Struct

_Ints = npt.NDArray[np.integer]


class Layout(Struct, frozen=True):
    """Rows in runs, as the files have them one behind the other; laid by step, the files in order in each.

    Attributes:
        files: of each run its file (n,).
        keys: which key of a step it is below (n,).
        steps: the step of each key.
        n_rows: how many rows each run has (n,).
        order: the runs in the order in which they are laid (n,).
    """

    files: _Ints
    keys: _Ints
    steps: npt.NDArray[np.int64]
    n_rows: _Ints
    order: _Ints

    def rows_of(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return what runs have (n,) for each row, as they are laid."""
        return np.repeat(values[self.order], self.n_rows[self.order])

    def rows_in_files(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the same as the files have the rows."""
        return np.repeat(values, self.n_rows)

    def are_distinct(self) -> bool:
        """Return whether no two keys name one step."""
        return len(np.unique(self.steps)) == len(self.steps)

    def by_step(self, table: pa.Table) -> dict[int, pa.Table]:
        """Cut the table by step; no two keys may name one."""
        n_rows = np.bincount(self.keys, self.n_rows, len(self.steps)).astype(np.int64)
        begins = np.cumsum(n_rows) - n_rows
        parts = zip(self.steps.tolist(), begins.tolist(), n_rows.tolist(), strict=True)
        return {step: table.slice(begin, n) for step, begin, n in parts if n}

    def steps_of_files(self, n_files: int) -> list[frozenset[int]]:
        """Return the steps of which each file has rows."""
        found: list[set[int]] = [set() for _ in range(n_files)]
        is_any = self.n_rows > 0
        files, steps = self.files[is_any].tolist(), self.steps[self.keys[is_any]].tolist()
        for file, step in zip(files, steps, strict=True):
            found[file].add(step)
        return list(map(frozenset, found))
