"""Where the rows of each file and of each step lie in a table that several files are laid in."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
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

    def by_file(self, table: pa.Table) -> dict[int, pa.Table]:
        """Cut the table by file, with the rows in the order of the file."""
        laid = self.n_rows[self.order]
        begins = np.empty(len(laid), np.int64)
        begins[self.order] = np.cumsum(laid) - laid
        runs = zip(self.files.tolist(), begins.tolist(), self.n_rows.tolist(), strict=True)
        # A batch is cut in a fraction of the time of a table.
        (batch,) = table.to_batches()
        return {file: _pieces(batch, [run[1:] for run in own]) for file, own in groupby(runs, itemgetter(0))}


def _pieces(batch: pa.RecordBatch, runs: list[tuple[int, int]]) -> pa.Table:
    """Return these rows (begin and number); what lies side by side is one piece."""
    found: list[list[int]] = []
    for begin, n_rows in runs:
        if found and sum(found[-1]) == begin:
            found[-1][1] += n_rows
        else:
            found.append([begin, n_rows])
    return pa.Table.from_batches([batch.slice(begin, n_rows) for begin, n_rows in found], batch.schema)
