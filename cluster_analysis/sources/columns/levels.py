"""Step and level of each row of a columns file."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster_analysis.sources.columns.columns import Columns, are_places, damaged

_Rows = TypeVar("_Rows", pa.Array, npt.NDArray[np.int64], npt.NDArray[np.float64])


class Levels:
    """The rows of a file.

    Attributes:
        n_rows: how many.
        steps: (n_rows,).
        is_p2p: (n_rows,); whether a row was filed under `p2p`.
    """

    def __init__(self, file: Columns, counts_name: str, rows_name: str) -> None:
        counts, numbers, are_p2p = (file.ints(name) for name in (counts_name, "step", "is_p2p"))
        self.n_rows = len(file.ints(rows_name))
        are_counts = are_places(counts, self.n_rows + 1) and counts.sum() == self.n_rows
        if not len(counts) == len(numbers) == len(are_p2p) or not are_counts:
            raise damaged("levels")
        self.steps = np.repeat(numbers, counts)
        self.is_p2p = np.repeat(are_p2p != 0, counts)

    def of_rows(self, values: _Rows) -> _Rows:
        """Return what each row has.

        Raises:
            BadFileError: their number is another one.
        """
        if len(values) != self.n_rows:
            raise damaged("columns of different lengths")
        return values

    def are_places(self, rows: npt.NDArray[np.int64]) -> bool:
        """Return whether all these are numbers of rows."""
        return are_places(rows, self.n_rows)
