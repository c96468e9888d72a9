"""cluster_communication.json: every operator of every rank, regrouped by group, step and operator.

The file is about as large as all inputs together. So the operators' JSON is not decoded again: reading a
rank notes where each lies (OPERATOR_SPANS), and here the bytes are copied in the order of the output. In
memory are that table, some 30 bytes an operator, and one output buffer.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from cluster_analysis.engine.tasks import spans_of_pieces
from cluster_analysis.insight.blocks import Blocks, RankSets, spans_of
from cluster_analysis.insight.naming import TOTAL, op_key
from cluster_analysis.insight.totals import distributions_of, total_texts
from cluster_analysis.numeric.arrays import IntArray
from cluster_analysis.sources import names
from cluster_run.errors import InputError
from cluster_run.ids import Rank

#: Operators are copied in pieces of about this size.
_TEXT_BYTES = 2 * 1024 * 1024
_BUFFER_BYTES = 1024 * 1024
#: Totals that are made into text at once: one takes 2 KB.
_N_TOTALS = 1000


class CommunicationInput(Struct, frozen=True):
    """All that the file is made of. `members` gives each group's global ranks, `files` each rank's file."""

    totals: pa.Table
    packets: pa.Table
    members: Mapping[str, tuple[Rank, ...]]
    files: Mapping[int, str]


def write_communication_file(spans: Sequence[pa.Table | str], given: CommunicationInput, path: str) -> None:
    """Write cluster_communication.json to `path`, sorted by group, step, operator and rank.

    It is a task for a worker, which imports the module that holds it, and nothing of Insight's other files.

    Raises:
        InputError: a file that was read before is gone or has become shorter.
    """
    with open(path, "wb", _BUFFER_BYTES) as stream, OpenFiles(given.files) as files:
        stream.writelines(_texts(_spans(spans, given), given, files))


def _texts(spans: pa.Table, given: CommunicationInput, files: OpenFiles) -> Iterator[bytes]:
    sets = RankSets(given.members)
    operators = _Operators(spans, sets)
    totals = Blocks(given.totals, sets)
    entries = _TotalEntries(totals.table, given.packets)

    def members(number: int, step: int) -> Iterator[bytes]:
        yield from operators.texts(number, step, files)
        if text := entries.text(*totals.rows(number, step)):
            yield text

    places = sorted(operators.places() | totals.places())
    return sets.nested((place, members(*place)) for place in places)


def _spans(pieces: Sequence[pa.Table | str], given: CommunicationInput) -> pa.Table:
    """Return OPERATOR_SPANS of the ranks whose files are given."""
    spans = spans_of_pieces(pieces)
    has_file = pc.is_in(spans["rank"], value_set=pa.array(list(given.files), pa.int32()))
    # A copy of millions of rows is made only where something is to be left out.
    return spans if pc.all(has_file).as_py() else spans.filter(has_file)


class _Operators:
    """The operators' places, sorted in the order of the output."""

    def __init__(self, spans: pa.Table, sets: RankSets) -> None:
        keys = spans["key"].combine_chunks()
        op_names, groups = names.split_keys(keys.dictionary)
        pairs = zip(op_names.to_pylist(), groups.to_pylist(), strict=True)
        self._keys = pa.array([op_key(name, group).encode() for name, group in pairs], pa.binary())
        code = keys.indices.to_numpy(zero_copy_only=False)
        set_numbers = sets.numbers_of(groups.dictionary.to_pylist())
        number = set_numbers.astype(np.int32)[groups.indices.to_numpy()][code]
        steps = np.array(sorted(pc.unique(spans["step"]).to_pylist()), np.int64)
        step_place = np.searchsorted(steps, spans["step"].to_numpy()).astype(np.int32)
        rank = spans["rank"].to_numpy()
        place = _output_places(keys.dictionary, code, spans["position"].to_numpy())
        # Two numbers sort as fast as one, and four take twice as long. Made in place: there are millions.
        within = place[code]
        within *= int(rank.max(initial=0)) + 1
        within += rank
        order = np.lexsort((within, number * np.int32(max(1, len(steps))) + step_place))
        del within, place
        self._code, self._rank = code[order], rank[order]
        self._offset = spans["offset"].to_numpy()[order]
        self._length = spans["length"].to_numpy()[order]
        self._spans = spans_of(number[order], steps[step_place[order]])
        self._labels = {rank: b', "%d": ' % rank for rank in np.unique(rank).tolist()}

    def places(self) -> set[tuple[int, int]]:
        """Return the sets and steps that have operators."""
        return set(self._spans)

    def texts(self, number: int, step: int, files: OpenFiles) -> Iterator[bytes]:
        """Yield `"op@group": {"0": …, "1": …}, …`: the operators of one set and step, some at a time."""
        first, last = self._spans.get((number, step), (0, 0))
        if first == last:
            return
        begins = np.flatnonzero(np.diff(self._code[first:last], prepend=-1)) + first
        sizes = np.add.reduceat(self._length[first:last].astype(np.int64), begins - first)
        begin, filled = first, 0
        for right, size in zip([*begins[1:].tolist(), last], sizes.tolist(), strict=True):
            filled += size
            if filled > _TEXT_BYTES or right == last:
                yield self._text(begin, right, files)
                begin, filled = right, 0

    def _text(self, first: int, last: int, files: OpenFiles) -> bytes:
        ranks, codes = self._rank[first:last], self._code[first:last]
        begins = np.flatnonzero(np.diff(codes, prepend=-1))
        labels = list(map(self._labels.__getitem__, ranks.tolist()))
        keys = self._keys.take(pa.array(codes[begins])).to_pylist()
        for begin, key in zip(begins.tolist(), keys, strict=True):
            labels[begin] = b'%b"%b": {%b' % (b"}, " if begin else b"", key, labels[begin][2:])
        places = (column[first:last].tolist() for column in (self._rank, self._length, self._offset))
        contents = map(files.read, *places)
        return b"".join([*chain.from_iterable(zip(labels, contents, strict=True)), b"}"])


def _output_places(keys: pa.Array, code: npt.NDArray[np.int32], position: npt.NDArray[np.int32]) -> IntArray:
    """Return the place of each distinct key in the output: where the first rank that has it has it."""
    earliest = np.full(len(keys), np.iinfo(np.int32).max, np.int32)
    np.minimum.at(earliest, code, position)
    by_name = np.empty(len(keys), np.int64)
    by_name[pc.sort_indices(keys).to_numpy()] = np.arange(len(keys))
    places = np.empty(len(keys), np.int64)
    places[np.lexsort((by_name, earliest))] = np.arange(len(keys))
    return places


class _TotalEntries:
    """Sections made of TOTALS, for many blocks at once: a call costs as much as ten rows."""

    def __init__(self, totals: pa.Table, packets: pa.Table) -> None:
        self._totals = totals
        self._distributions = distributions_of(packets)
        self._first = self._last = 0
        self._groups: list[str] = []
        self._texts: list[str] = []

    def text(self, first: int, last: int) -> bytes:
        """Return `"Total Op Info@group": {"0": …}, …` of some rows, those of one group side by side."""
        if first < self._first or last > self._last:
            self._make(first, max(last, first + _N_TOTALS))
        by_group: dict[str, list[str]] = {}
        for row in range(first - self._first, last - self._first):
            by_group.setdefault(self._groups[row], []).append(self._texts[row])
        return ", ".join(
            f'"{op_key(TOTAL, group)}": {{{", ".join(texts)}}}' for group, texts in by_group.items()
        ).encode()

    def _make(self, first: int, last: int) -> None:
        rows = self._totals.slice(first, last - first)
        self._first, self._last = first, first + rows.num_rows
        self._groups = [group or "" for group in rows["group"].to_pylist()]
        texts = total_texts(rows, self._distributions)
        self._texts = [
            f'"{rank}": {text}' for rank, text in zip(rows["rank"].to_pylist(), texts, strict=True)
        ]


_N_OPEN_FILES = 256


class OpenFiles:
    """The ranks' files, a few hundred of them open at a time."""

    def __init__(self, files: Mapping[int, str], n_open: int = _N_OPEN_FILES) -> None:
        self._files = files
        self._n_open = n_open
        self._open: OrderedDict[int, int] = OrderedDict()

    def __enter__(self) -> OpenFiles:
        return self

    def __exit__(self, *_: object) -> None:
        while self._open:
            os.close(self._open.popitem()[1])

    def read(self, rank: int, length: int, offset: int) -> bytes:
        """Return bytes of a rank's file.

        Raises:
            InputError: the file is gone, or shorter than it was.
        """
        descriptor = self._open.get(rank)
        if descriptor is None:
            descriptor = self._opened(rank)
        content = os.pread(descriptor, length, offset)
        if len(content) != length:
            raise InputError(
                f"{self._files[rank]}: became shorter while it was read",
                "run this again when the job is over",
            )
        return content

    def _opened(self, rank: int) -> int:
        if len(self._open) >= self._n_open:
            os.close(self._open.popitem(last=False)[1])
        try:
            descriptor = os.open(self._files[rank], os.O_RDONLY)
        except OSError as error:
            raise InputError(f"{self._files[rank]}: cannot be read any more: {error.strerror}") from error
        self._open[rank] = descriptor
        return descriptor
