"""Step and level of each row of a columns file, and which rows are of selected steps."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from cluster_analysis.sources.columns.columns import Columns
from cluster_analysis.sources.columns.name_columns import Names
from cluster_analysis.sources.errors import BadFileError
from cluster_run.facts import fact

_Number = TypeVar("_Number", np.int64, np.float64)


class Levels:
    """The rows of a file.

    Attributes:
        n_all: rows in the file.
        n_rows: those of selected steps.
        is_kept: (n_all,); which these are.
        steps: (n_rows,).
        steps_of_all: (n_all,).
        is_p2p: (n_rows,); whether a row was filed under `p2p`.
    """

    def __init__(self, file: Columns, counts_name: str, rows_name: str, steps: frozenset[int] | None) -> None:
        counts, numbers, are_p2p = (file.ints(name) for name in (counts_name, "step", "is_p2p"))
        self.n_all = len(file.ints(rows_name))
        are_counts = not len(counts) or 0 <= int(counts.min()) <= int(counts.max()) <= self.n_all
        if not len(counts) == len(numbers) == len(are_p2p) or not are_counts or counts.sum() != self.n_all:
            raise BadFileError(fact("not_of_form", detail="columns: levels"))
        wanted = np.ones(len(counts), bool) if steps is None else np.isin(numbers, sorted(steps))
        self.is_kept = np.repeat(wanted, counts)
        self.steps_of_all = np.repeat(numbers, counts)
        self.steps = self.steps_of_all if wanted.all() else self.steps_of_all[self.is_kept]
        self.is_p2p = np.repeat(are_p2p[wanted] != 0, counts[wanted])
        self.n_rows = len(self.steps)

    def kept_names(self, names: Names) -> Names:
        """Return the names of selected steps."""
        self._check(len(names))
        return names if self.n_rows == self.n_all else names.kept(self.is_kept)

    def kept_numbers(self, values: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
        """Return the values of selected steps."""
        self._check(len(values))
        return values if self.n_rows == self.n_all else values[self.is_kept]

    def are_places(self, rows: npt.NDArray[np.int64]) -> bool:
        """Return whether all these are numbers of rows."""
        return not len(rows) or 0 <= int(rows.min()) <= int(rows.max()) < self.n_all

    def _check(self, n_values: int) -> None:
        if n_values != self.n_all:
            raise BadFileError(fact("not_of_form", detail="columns: columns of different lengths"))
