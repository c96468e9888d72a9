"""cluster_communication.json: every operator of every rank, regrouped by group, step and operator.

The file is about as large as all inputs together. So the operators' JSON is never decoded: a first pass
notes where each lies (`op_index`), a second one copies the bytes in the order of the output. What is in
memory is the index, some 30 bytes an operator, and one output buffer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO

import numpy as np
import pyarrow as pa

from cluster_analysis.insight.blocks import Blocks, RankSets, spans_of
from cluster_analysis.insight.naming import TOTAL, op_key, step_key
from cluster_analysis.insight.op_copy import OpenFiles
from cluster_analysis.insight.totals import distributions_of, total_json
from cluster_run.ids import Rank

#: Operators are copied in pieces of about this size.
_TEXT_BYTES = 2 * 1024 * 1024
_BUFFER_BYTES = 1024 * 1024


@dataclass(frozen=True)
class CommunicationInput:
    """All that the file is made of. `members` gives each group's global ranks, `files` each rank's file."""

    index: pa.Table
    totals: pa.Table
    packets: pa.Table
    members: Mapping[str, tuple[Rank, ...]]
    files: Mapping[int, str]


def write_communication_file(given: CommunicationInput, path: str) -> None:
    """Write cluster_communication.json to `path`; see `write_communication`."""
    with open(path, "wb", _BUFFER_BYTES) as stream:
        write_communication(given, stream)


def write_communication(given: CommunicationInput, stream: IO[bytes]) -> None:
    """Write cluster_communication.json, sorted by group, step, operator and rank.

    Raises:
        InputError: a file that was read before is gone or has become shorter.
    """
    with OpenFiles(given.files) as files:
        for text in _texts(given, files):
            stream.write(text)


def _texts(given: CommunicationInput, files: OpenFiles) -> Iterator[bytes]:
    sets = RankSets(given.members)
    operators = _Operators(given.index, sets)
    totals = Blocks(given.totals, sets)
    packets = Blocks(given.packets, sets)
    places = sorted(operators.places() | totals.places())
    yield b"{"
    last_set = None
    for number, step in places:
        if number == last_set:
            yield b", "
        else:
            yield (b'"%s": {' if last_set is None else b'}, "%s": {') % sets.texts[number].encode()
            last_set = number
        yield b'"%s": {' % step_key(step).encode()
        separator = b""
        for text in operators.texts(number, step, files):
            yield separator
            yield text
            separator = b", "
        entries = b", ".join(_total_entries(totals.rows(number, step), packets.rows(number, step)))
        if entries:
            yield separator
            yield entries
        yield b"}"
    yield b"}}\n" if places else b"}\n"


class _Operators:
    """The index, sorted in the order of the output."""

    def __init__(self, index: pa.Table, sets: RankSets) -> None:
        keys = index["key"].combine_chunks()
        keys = keys.chunk(0) if isinstance(keys, pa.ChunkedArray) else keys
        names = keys.dictionary.to_pylist()
        parted = [name.rpartition("@") if "@" in name else (name, "", "") for name in names]
        self._keys = [op_key(name, group).encode() for name, _, group in parted]
        code = keys.indices.to_numpy(zero_copy_only=False)
        # An operator stands where the first rank that has it has it.
        earliest = np.full(len(names), np.iinfo(np.int32).max, np.int32)
        np.minimum.at(earliest, code, index["position"].to_numpy())
        by_place = np.empty(len(names), np.int64)
        by_place[np.lexsort((np.array(names, object), earliest))] = np.arange(len(names))
        number = sets.numbers_of([group for _, _, group in parted])[code] if names else np.zeros(0, np.int64)
        step, rank = index["step"].to_numpy(), index["rank"].to_numpy()
        order = np.lexsort((rank, by_place[code] if names else code, step, number))
        self._code, self._rank = code[order], rank[order]
        self._offset = index["offset"].to_numpy()[order]
        self._length = index["length"].to_numpy()[order]
        self._spans = spans_of(number[order], step[order])
        self._labels = {rank: b'"%d": ' % rank for rank in np.unique(rank).tolist()}

    def places(self) -> set[tuple[int, int]]:
        """Return the sets and steps that have operators."""
        return {place for place in self._spans if place[0] >= 0}

    def texts(self, number: int, step: int, files: OpenFiles) -> Iterator[bytes]:
        """Yield `"op@group": {"0": …, "1": …}, …`: the operators of one set and step, some at a time."""
        first, last = self._spans.get((number, step), (0, 0))
        if first == last:
            return
        changes = (np.flatnonzero(np.diff(self._code[first:last])) + 1 + first).tolist()
        sizes = np.add.reduceat(
            self._length[first:last].astype(np.int64), [0, *(one - first for one in changes)]
        )
        begin, filled = first, 0
        for right, size in zip([*changes, last], sizes.tolist(), strict=True):
            filled += size
            if filled > _TEXT_BYTES or right == last:
                yield self._text(begin, right, files)
                begin, filled = right, 0

    def _text(self, first: int, last: int, files: OpenFiles) -> bytes:
        ranks, codes = self._rank[first:last], self._code[first:last]
        contents = files.read_many(ranks, self._offset[first:last], self._length[first:last])
        pieces: list[bytes | memoryview] = []
        before = -1
        for code, rank, content in zip(codes.tolist(), ranks.tolist(), contents, strict=True):
            if code == before:
                pieces += (b", ", self._labels[rank], content)
            else:
                opening = b'"%s": {' if before < 0 else b'}, "%s": {'
                pieces += (opening % self._keys[code], self._labels[rank], content)
                before = code
        pieces.append(b"}")
        return b"".join(pieces)


def _total_entries(totals: pa.Table, packets: pa.Table) -> Iterator[bytes]:
    """Yield `"Total Op Info@group": {"0": …}` of each group."""
    distributions = distributions_of(packets)
    by_group: dict[str, list[str]] = {}
    for row in totals.to_pylist():
        rank, step, group = row.pop("rank"), row.pop("step"), row.pop("group") or ""
        text = total_json(row, (rank, step, group), distributions)
        by_group.setdefault(group, []).append(f'"{rank}": {text}')
    for group, texts in by_group.items():
        yield f'"{op_key(TOTAL, group)}": {{{", ".join(texts)}}}'.encode()
