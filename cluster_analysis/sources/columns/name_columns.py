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
_TEXT = pa.dictionary(pa.int32(), pa.string())


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

    def kept(self, is_kept: npt.NDArray[np.bool_]) -> Names:
        """Return some of the names; `is_kept` (N,)."""
        return Names(self._stems, self._places[is_kept], self._numbers[is_kept])

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

    def distinct(self) -> tuple[Names, list[int]]:
        """Return the names that differ, in the order of their first rows, and which of them each is (N,)."""
        rows = list(zip(self._places.tolist(), *self._numbers.T.tolist(), strict=True))
        known: dict[tuple[int, ...], int] = {}
        places = [known.setdefault(row, len(known)) for row in rows]
        cells = np.array(list(known), np.int64).reshape(len(known), 1 + self._numbers.shape[1])
        return Names(self._stems, cells[:, 0], cells[:, 1:]), places

    def operations(self) -> pa.DictionaryArray:
        """Return what `names.operations` makes of the names."""
        return names.encoded(*self.operations_of_stems())

    def operations_of_stems(self) -> tuple[_IntArray, list[str]]:
        """Return the stem of each name (N,), and the operation of each stem: no number decides it."""
        return self._places, [names.operation_of("0".join(stem)) for stem in self._stems]

    def indices_in_group(self) -> pa.Array:
        """Return what `names.indices_in_group` makes of the names."""
        n_rows = len(self)
        indices = np.full(n_rows, -1, np.int64)
        for place, (column, constant) in enumerate(self._index_of_stems):
            rows = slice(None) if len(self._stems) == 1 else self._places == place
            indices[rows] = constant if column is None else self._numbers[rows, column]
        indices[indices >= _MOST_INDEX] = -1
        return pa.array(indices.astype(np.int32))

    @cached_property
    def _index_of_stems(self) -> list[tuple[int | None, int]]:
        """Return for each stem which of its numbers is the index, or else what the index always is."""
        return [_index_of(stem) for stem in self._stems]


def _index_of(stem: list[str]) -> tuple[int | None, int]:
    # Numbers of one digit each; with others, what is no place for a number stays.
    filled = [
        "".join([stem[0], *(f"{first + at}{part}" for at, part in enumerate(stem[1:]))]) for first in (0, 1)
    ]
    found = [_INDEX.search(text) for text in filled]
    if found[0] is None or found[1] is None:
        return None, -1
    index, other = (int(match.group(1)) for match in found if match is not None)
    return (None, index) if index == other else (index, 0)
