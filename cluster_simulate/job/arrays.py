"""The types of arrays that cross modules of the simulator, and arrays that are columns of one table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
_TYPES = {"Floats": np.float64, "Ints": np.int64, "Bools": np.bool_}
_Columns = TypeVar("_Columns", bound="Columns")


@dataclass(frozen=True)
class Columns:
    """Arrays of one length (N,), a field each."""

    def at(self: _Columns, rows: Ints | Bools | slice) -> _Columns:
        """Return these rows."""
        return type(self)(*(values[rows] for values in vars(self).values()))

    @classmethod
    def joined(cls: type[_Columns], parts: Sequence[_Columns]) -> _Columns:
        """Return the rows of all parts, one behind the other."""
        none = cls(*(np.zeros(0, _TYPES[str(one.type)]) for one in fields(cls)))
        return cls(*map(np.concatenate, zip(*(vars(one).values() for one in (none, *parts)), strict=True)))
