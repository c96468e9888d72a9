"""Names of a columns file: what they share is there once, and the numbers in them are columns."""

from __future__ import annotations

import re
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster_analysis.sources import names
from cluster_analysis.sources.errors import BadFileError
from cluster_run.facts import fact

_IntArray = npt.NDArray[np.int64]
#: As `names.indices_in_group` has it.
_INDEX = re.compile(r"__[0-9]+_([0-9]{1,9})(?:_[0-9]+)*\Z")
_MOST_INDEX = 10**9
#: A number has one digit more from each of these on.
_POWERS = np.array([10**n for n in range(1, 19)], np.int64)
_MOST_LETTERS = (1 << 31) - 1
#: Numbers of a smaller range need no sorting to be made unique.
_MOST_RANGE = 1 << 20
_MOST_CODES = 1 << 62


class Names:
    """Names, as texts and as what they say.

    Args:
        stems: what names share, each with the places of its numbers between its parts.
        places: (N,); the stem of each name.
        numbers: (N, M); the numbers of each name, as many as its stem has places for.
    """

    def __init__(self, stems: list[list[str]], places: _IntArray, numbers: _IntArray) -> None:
        self._stems = stems
        self._places = places
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._places)

    def texts(self) -> pa.Array:
        """Return the names.

        Raises:
            BadFileError: together they would be longer than any file.
        """
        n_numbers = np.array([len(stem) - 1 for stem in self._stems], np.int64)[self._places]
        is_number = np.arange(self._numbers.shape[1]) < n_numbers[:, None]
        given = self._numbers[is_number]
        n_letters = np.array([sum(len(part.encode()) for part in stem) for stem in self._stems], np.int64)
        offsets = np.zeros(len(self) + 1, np.int64)
        digits = np.zeros(self._numbers.shape, np.int64)
        digits[is_number] = np.searchsorted(_POWERS, given, side="right") + 1
        np.cumsum(n_letters[self._places] + digits.sum(axis=1), out=offsets[1:])
        if offsets[-1] > _MOST_LETTERS or (len(given) and int(given.min()) < 0):
            raise BadFileError(fact("not_of_form", detail="columns: names"), "collect_again")
        forms = ["%d".join(part.replace("%", "%%") for part in stem) for stem in self._stems]
        # One text of all names: Python makes it in a third of the time that it takes name by name.
        letters = "".join(map(forms.__getitem__, self._places.tolist())) % tuple(given.tolist())
        buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(letters.encode())]
        return pa.Array.from_buffers(pa.string(), len(self), buffers)

    def distinct(self) -> tuple[Names, _IntArray]:
        """Return the names that differ, in the order of their first rows, and which of them each is (N,)."""
        code, n_codes = self._places.astype(np.int64), max(1, len(self._stems))
        for column in self._numbers.T:
            own, n_own = _codes(column)
            if n_codes * n_own > _MOST_CODES:
                code, n_codes = _codes(np.unique(code, return_inverse=True)[1])
            code, n_codes = code * n_own + own, n_codes * n_own
        _, first, places = np.unique(code, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rows = first[order]
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        return Names(self._stems, self._places[rows], self._numbers[rows]), rank[places]

    def operations(self) -> tuple[pa.DictionaryArray, npt.NDArray[np.bool_]]:
        """Return what `names.operations` makes of the names, and which are point to point (N,)."""
        # No number in a name decides it.
        of_stems = [names.operation_of("0".join(stem)) for stem in self._stems]
        op_types = names.coded_rows((self._places, of_stems))
        return op_types, names.point_to_point(op_types).to_numpy(zero_copy_only=False)

    def indices_in_group(self) -> pa.Array:
        """Return what `names.indices_in_group` makes of the names."""
        columns, constants = np.array(self._index_of_stems, np.int64).reshape(-1, 2).T
        column, indices = columns[self._places], constants[self._places]
        if self._numbers.shape[1]:
            own = np.take_along_axis(self._numbers, np.maximum(column, 0)[:, None], axis=1)[:, 0]
            indices = np.where(column < 0, indices, own)
        indices[indices >= _MOST_INDEX] = -1
        return pa.array(indices.astype(np.int32))

    @cached_property
    def _index_of_stems(self) -> list[tuple[int, int]]:
        """Return for each stem which of its numbers is the index; or -1, and what the index always is."""
        return [_index_of(stem) for stem in self._stems]


def _codes(values: _IntArray) -> tuple[_IntArray, int]:
    """Return numbers from 0 that are equal where the values are, and more than the largest of them."""
    if not len(values):
        return values, 1
    low, high = int(values.min()), int(values.max())
    if high - low < _MOST_RANGE:
        return values - low, high - low + 1
    known, places = np.unique(values, return_inverse=True)
    return places, len(known)


def _index_of(stem: list[str]) -> tuple[int, int]:
    # Numbers of one digit each; with others, what is no place for a number stays.
    filled = [
        "".join([stem[0], *(f"{first + at}{part}" for at, part in enumerate(stem[1:]))]) for first in (0, 1)
    ]
    found = [_INDEX.search(text) for text in filled]
    if found[0] is None or found[1] is None:
        return -1, -1
    index, other = (int(match.group(1)) for match in found if match is not None)
    return (-1, index) if index == other else (index, 0)
