"""Communication files by the compiled reader: its columns become the tables that Python makes, too.

It (the C files here) reads files of the plain form that profilers write (`communication.h`), in which nothing
is damaged, missing or below 0, and hands every other one over to Python. Files of several ranks become one
table; one file is a batch of one. It is missing where it could not be built.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.numeric.arrays import BoolArray
from cluster_analysis.sources import names, numbers
from cluster_analysis.sources.communication_tables import CommunicationTables, PacketEntries, packet_sums
from cluster_analysis.sources.link_names import LinkNames, links_table
from cluster_analysis.sources.measured import MEASURED_COLLECTIVES, NEEDED
from cluster_analysis.tables import schema

try:
    from cluster_analysis.sources.compiled import _columns
except ImportError:
    _columns = None  # type: ignore[assignment]

#: `python` leaves the compiled reader alone, to compare both.
CHOICE = "CLUSTER_PROFILER_DECODER"
_PYTHON = "python"


def compiled() -> ModuleType | None:
    """Return the compiled reader; None where there is none, or where it is not wanted."""
    return None if os.environ.get(CHOICE) == _PYTHON else _columns


def in_use() -> str:
    """Return which reader works here, for people."""
    return "JSON by Python" if compiled() is None else "JSON by the compiled reader"


#: The columns of figures, as the compiled reader has them too.
_FIGURES = tuple(field.name for field in schema.COLLECTIVES if pa.types.is_float64(field.type))[:-1]
#: A level: key of its step, whether it is point to point, rows, file.
_N_OF_LEVEL = 4


def _bits(columns: Iterable[str]) -> int:
    return sum(1 << _FIGURES.index(name) for name in columns if name in _FIGURES)


_NEEDED, _MEASURED = _bits(NEEDED["operators"]), _bits(MEASURED_COLLECTIVES)


class _Rows:
    """File, rank, step and level of each row (N,), in the order of the files; both files have them."""

    def __init__(self, given: Mapping[str, Any], ranks: Sequence[int]) -> None:
        levels = array(given["levels"], np.int32).reshape(-1, _N_OF_LEVEL)
        keys, is_p2p, n_rows, files = np.ascontiguousarray(levels.T)
        steps = [numbers.parse_step(key) for key in texts(given["step_names"]).to_pylist()]
        #: Whether every key is a step; if not, Python reports it.
        self.are_steps = None not in steps
        self.steps = np.repeat(np.array([step or 0 for step in steps], np.int64)[keys], n_rows)
        self.is_p2p = np.repeat(is_p2p != 0, n_rows)
        self.files = np.repeat(files, n_rows)
        self.ranks = np.array(ranks, np.int32)[self.files]
        #: Of each file how many.
        self.counts = np.bincount(files, n_rows).astype(np.int64).tolist()


def operators_of_files(
    paths: Sequence[str], ranks: Sequence[int], *, with_places: bool
) -> CommunicationTables | None:
    """Return the operators of the files of one or more ranks; None where Python must read one of them.

    That is: there is no compiled reader, a file is not of the plain form, or there is something to report.

    Args:
        paths: where they are; one at a time is in memory.
        ranks: whose they are.
        with_places: whether also where each operator lies.
    """
    compiled_reader = compiled()
    if compiled_reader is None:
        return None
    given = compiled_reader.operators(paths, with_places, _NEEDED, _MEASURED)
    if given is None:
        return None
    rows = _Rows(given, ranks)
    packets = _packets(given, rows) if rows.are_steps else None
    if packets is None:
        return None
    spans = _spans(given, rows) if with_places else schema.OPERATOR_SPANS.empty_table()
    return CommunicationTables(_collectives(given, rows), packets, spans)


def _collectives(given: Mapping[str, Any], rows: _Rows) -> pa.Table:
    op_names = texts(given["op_names"])
    stems = array(given["stems"], np.int32)
    op_types, is_p2p = _operations(op_names, stems, texts(given["stem_names"]).to_pylist())
    columns = {
        "rank": pa.array(rows.ranks),
        "step": pa.array(rows.steps),
        "group": named(given["groups"], given["group_names"]),
        "op_name": op_names,
        "op_type": op_types,
        "op_index": column(given["indices"], pa.int32()),
        "is_p2p": pa.array(rows.is_p2p | is_p2p),
        "start_ns": column(given["starts_ns"], pa.int64()),
        "payload_bytes": pa.nulls(len(op_names), pa.float64()),
    }
    for name, values, n_missing in zip(_FIGURES, given["figures"], given["n_missing"], strict=True):
        columns[name] = figures(values, n_missing)
    arrays = [columns[name] for name in schema.COLLECTIVES.names]
    return pa.Table.from_arrays(arrays, schema=schema.COLLECTIVES)


def _packets(given: Mapping[str, Any], rows: _Rows) -> pa.Table | None:
    """Return PACKETS; None where a size is no number, which Python reports."""
    of_operators = array(given["packet_rows"], np.int32)
    groups = array(given["groups"], np.int32)[of_operators]
    entries = PacketEntries(
        rows.ranks[of_operators],
        rows.steps[of_operators],
        pa.DictionaryArray.from_arrays(pa.array(groups), texts(given["group_names"])),
        array(given["packet_transports"], np.int32),
        named(given["packet_sizes"], given["size_names"]),
        array(given["packet_figures"], np.float64).reshape(-1, 2),
    )
    stated: list[object] = []
    try:
        packets = packet_sums(entries, lambda *why: stated.append(why))
    except (OverflowError, ValueError):
        return None
    return None if stated else packets


def _spans(given: Mapping[str, Any], rows: _Rows) -> pa.Table:
    positions = [np.arange(count, dtype=np.int32) for count in rows.counts]
    columns = [
        pa.array(rows.ranks),
        pa.array(rows.steps),
        named(given["keys"], given["key_names"]),
        pa.array(np.concatenate(positions)),
        column(given["offsets"], pa.int64()),
        column(given["lengths"], pa.int32()),
    ]
    return pa.Table.from_arrays(columns, schema=schema.OPERATOR_SPANS)


def _operations(
    op_names: pa.Array, stems: npt.NDArray[np.int32], stem_names: list[str]
) -> tuple[pa.Array, BoolArray]:
    """Return the operations (dictionary), and which are point to point; `stems` say which stem a name has."""
    values = [names.operation(stem) for stem in stem_names]
    if "unknown" in values:
        # The operation stands behind the first number: few profilers name operators so.
        op_types = names.operations(op_names)
    else:
        of_stems = pa.array(values, pa.string()).dictionary_encode()
        codes = of_stems.indices.to_numpy()[stems]
        op_types = pa.DictionaryArray.from_arrays(pa.array(codes), of_stems.dictionary, safe=False)
    return op_types, names.point_to_point(op_types).to_numpy(zero_copy_only=False)


def links_of_files(paths: Sequence[str], ranks: Sequence[int]) -> pa.Table | None:
    """Return the links (LINKS) of the files of one or more ranks; None where Python must read one of them.

    That is: there is no compiled reader, a file is not of the plain form, or there is something to report.

    Args:
        paths: where they are; one at a time is in memory.
        ranks: whose they are.
    """
    compiled_reader = compiled()
    given = None if compiled_reader is None else compiled_reader.links(paths)
    if given is None:
        return None
    rows = _Rows(given, ranks)
    if not rows.are_steps:
        return None
    link_names = LinkNames(
        array(given["keys"], np.int32),
        texts(given["key_names"]).to_pylist(),
        rows.files,
        array(given["operators"], np.int32),
        texts(given["operator_names"]),
    )
    columns = {
        "rank": pa.array(rows.ranks),
        "step": pa.array(rows.steps),
        "src_local": pa.array(array(given["sources"], np.int32)),
        "dst_local": pa.array(array(given["destinations"], np.int32)),
        "transport": named(given["transports"], given["transport_names"]),
        "size_bytes": pa.array(array(given["sizes_bytes"], np.float64), from_pandas=True),
        "time_us": pa.array(array(given["times_us"], np.float64), from_pandas=True),
    }
    return links_table(link_names.described(), pa.array(rows.is_p2p), columns)


#: Bytes, or where they are many: what keeps them, where they lie, and how many they are.
Given: TypeAlias = bytes | tuple[object, int, int]
#: Offsets and letters.
GivenTexts: TypeAlias = tuple[Given, Given]


def buffer(given: Given) -> pa.Buffer:
    """Return the bytes as they lie."""
    if isinstance(given, bytes):
        return pa.py_buffer(given)
    owner, address, n_bytes = given
    return pa.foreign_buffer(address, n_bytes, owner)


def array(given: Given, kind: type[np.generic]) -> npt.NDArray[Any]:
    """Return numbers (N,) as they lie."""
    return np.frombuffer(given if isinstance(given, bytes) else buffer(given), kind)


def column(given: Given, kind: pa.DataType) -> pa.Array:
    """Return numbers; none is missing."""
    content = buffer(given)
    return pa.Array.from_buffers(kind, content.size * 8 // kind.bit_width, [None, content])


def figures(given: Given, n_missing: int) -> pa.Array:
    """Return numbers of float64; NaN becomes null."""
    if n_missing:
        return pa.array(array(given, np.float64), from_pandas=True)
    return column(given, pa.float64())


def texts(given: GivenTexts) -> pa.Array:
    """Return texts of their offsets and letters."""
    offsets, letters = map(buffer, given)
    return pa.Array.from_buffers(pa.string(), max(offsets.size // 4 - 1, 0), [None, offsets, letters])


def named(codes: Given, distinct: GivenTexts) -> pa.DictionaryArray:
    """Return the texts that the codes stand for; -1 is null."""
    numbers_of_texts = column(codes, pa.int32())
    if len(numbers_of_texts) and array(codes, np.int32).min() < 0:
        numbers_of_texts = pc.if_else(pc.less(numbers_of_texts, 0), None, numbers_of_texts)
    return pa.DictionaryArray.from_arrays(numbers_of_texts, texts(distinct), safe=False)
