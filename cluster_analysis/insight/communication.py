"""cluster_communication.json: every operator of every rank, regrouped by group, step and operator.

The file is about as large as all inputs together. So the operators' JSON is never decoded: a first pass
notes where each lies (INDEX), a second one copies the bytes in the order of the output. What is in
memory is the index, some 30 bytes an operator, and one output buffer.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa

from cluster_analysis.insight.blocks import Blocks, RankSets, spans_of
from cluster_analysis.insight.naming import TOTAL, op_key, step_key
from cluster_analysis.insight.totals import distributions_of, total_json
from cluster_analysis.model import RankSource, Selection
from cluster_analysis.sources import numbers
from cluster_analysis.sources.communication_spans import OpSpans, op_spans
from cluster_analysis.sources.errors import BadFileError
from cluster_run.errors import InputError
from cluster_run.ids import Rank

ROLE = "communication"
_FLUSH_BYTES = 4 * 1024 * 1024
_N_OPEN_FILES = 256

#: One row an operator of a rank: its JSON is `length` bytes at `offset` of the rank's communication.json.
INDEX = pa.schema(
    [
        ("rank", pa.int32()),
        ("step", pa.int64()),
        ("key", pa.dictionary(pa.int32(), pa.string())),
        ("position", pa.int32()),
        ("offset", pa.int64()),
        ("length", pa.int32()),
    ]
)


def index_ranks(sources: Sequence[RankSource], selection: Selection) -> pa.Table:
    """Return INDEX of some ranks. A file that has become bad since it was read is left out."""
    tables = [_index(source, selection) for source in sources]
    return pa.concat_tables([INDEX.empty_table(), *tables]).unify_dictionaries().combine_chunks()


def _index(source: RankSource, selection: Selection) -> pa.Table:
    found: list[tuple[int, OpSpans]] = []
    try:
        for spans in op_spans(Path(source.files[ROLE])):
            step = numbers.parse_step(spans.step_key)
            if step is not None and (selection.steps is None or step in selection.steps):
                found.append((step, spans))
    except BadFileError:
        return INDEX.empty_table()
    n_ops = sum(len(spans.keys) for _, spans in found)
    keys = pa.array([key for _, spans in found for key in spans.keys], pa.string())
    return pa.table(
        {
            "rank": np.full(n_ops, source.rank, np.int32),
            "step": np.repeat(
                np.array([step for step, _ in found], np.int64), [len(spans.keys) for _, spans in found]
            ),
            "key": keys.dictionary_encode(),
            "position": np.arange(n_ops, dtype=np.int32),
            "offset": np.concatenate([spans.offsets for _, spans in found] or [np.zeros(0, np.int64)]),
            "length": np.concatenate([spans.lengths for _, spans in found] or [np.zeros(0, np.int32)]),
        },
        schema=INDEX,
    )


@dataclass(frozen=True)
class CommunicationInput:
    """All that the file is made of. `members` gives each group's global ranks, `files` each rank's file."""

    index: pa.Table
    totals: pa.Table
    packets: pa.Table
    members: Mapping[str, tuple[Rank, ...]]
    files: Mapping[int, str]


def write_communication(given: CommunicationInput, stream: IO[bytes]) -> None:
    """Write cluster_communication.json, sorted by group, step, operator and rank.

    Raises:
        InputError: a file that was read before is gone or has become shorter.
    """
    sets = RankSets(given.members)
    operators = _Operators(given.index, sets)
    totals = Blocks(given.totals, sets)
    packets = Blocks(given.packets, sets)
    places = sorted(operators.places() | totals.places())
    with _OpenFiles(given.files) as files:
        buffer = bytearray(b"{")
        last_set = None
        for number, step in places:
            if number != last_set:
                opening = b'"%s": {' if last_set is None else b'}, "%s": {'
                buffer += opening % sets.texts[number].encode()
                last_set = number
            else:
                buffer += b", "
            buffer += b'"%s": {' % step_key(step).encode()
            separator = b""
            for entry in operators.entries(number, step, files):
                buffer += separator + entry
                separator = b", "
                if len(buffer) > _FLUSH_BYTES:
                    stream.write(buffer)
                    buffer.clear()
            for entry in _total_entries(totals.rows(number, step), packets.rows(number, step)):
                buffer += separator + entry
                separator = b", "
            buffer += b"}"
        buffer += b"}}\n" if places else b"}\n"
        stream.write(buffer)


class _Operators:
    """The index, sorted in the order of the output."""

    def __init__(self, index: pa.Table, sets: RankSets) -> None:
        keys = index["key"].combine_chunks()
        keys = keys.chunk(0) if isinstance(keys, pa.ChunkedArray) else keys
        names = keys.dictionary.to_pylist()
        parted = [name.rpartition("@") if "@" in name else (name, "", "") for name in names]
        self._keys = [op_key(name, group).encode() for name, _, group in parted]
        code = keys.indices.to_numpy(zero_copy_only=False)
        position = index["position"].to_numpy()
        # An operator stands where the first rank that has it has it.
        earliest = np.full(len(names), np.iinfo(np.int32).max, np.int32)
        np.minimum.at(earliest, code, position)
        by_place = np.empty(len(names), np.int64)
        by_place[np.lexsort((np.array(names, object), earliest))] = np.arange(len(names))
        number = sets.numbers_of([group for _, _, group in parted])[code] if names else np.zeros(0, np.int64)
        step = index["step"].to_numpy()
        rank = index["rank"].to_numpy()
        order = np.lexsort((rank, by_place[code] if names else code, step, number))
        self._code = code[order]
        self._rank = rank[order]
        self._offset = index["offset"].to_numpy()[order]
        self._length = index["length"].to_numpy()[order]
        self._spans = spans_of(number[order], step[order])

    def places(self) -> set[tuple[int, int]]:
        """Return the sets and steps that have operators."""
        return {place for place in self._spans if place[0] >= 0}

    def entries(self, number: int, step: int, files: _OpenFiles) -> Iterator[bytes]:
        """Yield `"op@group": {"0": …, "1": …}` of each operator of one set and step."""
        first, last = self._spans.get((number, step), (0, 0))
        codes = self._code[first:last]
        begins = [0, *(np.flatnonzero(np.diff(codes)) + 1).tolist(), last - first]
        ranks = self._rank[first:last].tolist()
        offsets, lengths = self._offset[first:last].tolist(), self._length[first:last].tolist()
        read = files.read
        for begin, end in pairwise(begins):
            parts = [
                b'"%d": %s' % (ranks[row], read(ranks[row], lengths[row], offsets[row]))
                for row in range(begin, end)
            ]
            if parts:
                yield b'"%s": {%s}' % (self._keys[codes[begin]], b", ".join(parts))


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


class _OpenFiles:
    """The ranks' files, a few hundred of them open at a time."""

    def __init__(self, files: Mapping[int, str]) -> None:
        self._files = files
        self._open: OrderedDict[int, int] = OrderedDict()

    def __enter__(self) -> _OpenFiles:
        return self

    def __exit__(self, *_: object) -> None:
        for descriptor in self._open.values():
            os.close(descriptor)

    def read(self, rank: int, length: int, offset: int) -> bytes:
        """Return bytes of a rank's file."""
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
        if len(self._open) >= _N_OPEN_FILES:
            os.close(self._open.popitem(last=False)[1])
        try:
            descriptor = os.open(self._files[rank], os.O_RDONLY)
        except OSError as error:
            raise InputError(f"{self._files[rank]}: cannot be read any more: {error.strerror}") from error
        self._open[rank] = descriptor
        return descriptor
