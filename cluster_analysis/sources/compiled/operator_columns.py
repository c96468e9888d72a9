"""communication.json by the compiled reader: its columns made into the same tables that Python makes.

The reader takes a file of the plain form only (`communication.h`), so that nothing here can be
damaged, and counts what is missing or below 0, so that nobody has to look for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.sources import names, numbers
from cluster_analysis.sources.compiled.reader import compiled
from cluster_analysis.sources.errors import Remark
from cluster_analysis.sources.measured import (
    MEASURED_COLLECTIVES,
    NEEDED_COLLECTIVES,
    tell_missing,
    without_negative,
)
from cluster_analysis.sources.packets import PacketEntries, packet_sums
from cluster_analysis.tables import schema

_DICTIONARY = schema.COLLECTIVES.field("group").type
#: The columns of figures, as the compiled reader has them too.
_FIGURES = tuple(field.name for field in schema.COLLECTIVES if pa.types.is_float64(field.type))[:-1]


class OperatorColumns:
    """The columns of one file: operators in its order, without totals."""

    def __init__(self, given: Mapping[str, Any], rank: int) -> None:
        self._given = given
        self._rank = rank
        self._levels = Levels(given)
        self._n_rows = len(given["keys"]) // 4

    def collectives(self, remark: Remark) -> pa.Table:
        """Return COLLECTIVES."""
        given, n_rows = self._given, self._n_rows
        op_names = texts(given["op_names"])
        op_types, is_p2p = self._operations(op_names)
        columns = {
            "rank": numbers.constant(self._rank, n_rows, pa.int32()),
            "step": pa.array(self._levels.steps),
            "group": self._groups(),
            "op_name": op_names,
            "op_type": op_types,
            "op_index": whole(given["indices"], pa.int32()),
            "is_p2p": pa.array(self._levels.is_p2p | is_p2p),
            "start_ns": whole(given["starts_ns"], pa.int64()),
            "payload_bytes": pa.nulls(n_rows, pa.float64()),
        }
        for name, values, n_missing in zip(_FIGURES, given["figures"], given["n_missing"], strict=True):
            columns[name] = figures(values, n_missing)
        arrays = [columns[name] for name in schema.COLLECTIVES.names]
        table = pa.Table.from_arrays(arrays, schema=schema.COLLECTIVES)
        if any(given["n_missing"]):
            tell_missing(table, NEEDED_COLLECTIVES, remark)
        return without_negative(table, MEASURED_COLLECTIVES, remark) if any(given["n_negative"]) else table

    def packets(self, remark: Remark) -> pa.Table:
        """Return PACKETS."""
        given = self._given
        rows = np.frombuffer(given["packet_rows"], np.int32)
        if not len(rows):
            return schema.empty(schema.PACKETS)
        entries = PacketEntries(
            self._levels.steps[rows],
            self._groups().take(pa.array(rows)),
            np.frombuffer(given["packet_transports"], np.int32),
            named(given["packet_sizes"], given["size_names"]),
            np.frombuffer(given["packet_figures"]).reshape(-1, 2),
        )
        return packet_sums(self._rank, entries, remark)

    def spans(self, n_skipped: int) -> pa.Table:
        """Return OPERATOR_SPANS of a file that was read without its first `n_skipped` bytes."""
        given, n_rows = self._given, self._n_rows
        offsets = np.frombuffer(given["offsets"], np.int64)
        columns = [
            numbers.constant(self._rank, n_rows, pa.int32()),
            pa.array(self._levels.steps),
            named(given["keys"], given["key_names"]),
            pa.array(np.arange(n_rows, dtype=np.int32)),
            pa.array(offsets + n_skipped if n_skipped else offsets),
            whole(given["lengths"], pa.int32()),
        ]
        return pa.Table.from_arrays(columns, schema=schema.OPERATOR_SPANS)

    def _groups(self) -> pa.DictionaryArray:
        return named(self._given["groups"], self._given["group_names"])

    def _operations(self, op_names: pa.Array) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
        """Return the operations (dictionary), and which are point to point."""
        stems = np.frombuffer(self._given["stems"], np.int32)
        values = [_operation(stem) for stem in texts(self._given["stem_names"]).to_pylist()]
        if "unknown" in values:
            # The operation stands behind the first number: few profilers name operators so.
            op_types = names.operations(op_names)
            return op_types, names.point_to_point(op_types).to_numpy(zero_copy_only=False)
        distinct = list(dict.fromkeys(values))
        codes = np.array([distinct.index(value) for value in values], np.int32)[stems]
        op_types = pa.DictionaryArray.from_arrays(
            pa.array(codes), pa.array(distinct, pa.string()), safe=False
        )
        is_p2p = names.point_to_point(pa.array(values, pa.string()).dictionary_encode())
        return op_types, is_p2p.to_numpy(zero_copy_only=False)[stems]


class Levels:
    """Step and level of each row of a file; both communication files have them."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        levels = np.frombuffer(given["levels"], np.int32).reshape(-1, 3)
        keys = [numbers.parse_step(key) for key in texts(given["step_names"]).to_pylist()]
        #: False: a key is no step, which Python says of it.
        self.are_steps = None not in keys
        self.numbers = [key or 0 for key in keys]
        counts = levels[:, 2]
        self.steps = np.repeat(np.array(self.numbers, np.int64)[levels[:, 0]], counts)
        self.is_p2p = np.repeat(levels[:, 1] != 0, counts)

    def all_in(self, steps: frozenset[int] | None) -> bool:
        """Return whether every key is a step, and one of these (None: all)."""
        return self.are_steps and (steps is None or steps.issuperset(self.numbers))


def operator_columns(content: bytes, rank: int, steps: frozenset[int] | None) -> OperatorColumns | None:
    """Return the operators of a communication.json; None where Python must read it.

    That is: there is no compiled reader, the file is not of the plain form, or steps of it are left out.
    """
    compiled_reader = compiled()
    given = None if compiled_reader is None else compiled_reader.operators(content)
    if given is None or not Levels(given).all_in(steps):
        return None
    return OperatorColumns(given, rank)


@lru_cache(maxsize=4096)
def _operation(stem: str) -> str:
    return names.operation(stem)


def whole(content: bytes, kind: pa.DataType) -> pa.Array:
    """Return whole numbers, which are all there."""
    return pa.Array.from_buffers(kind, len(content) * 8 // kind.bit_width, [None, pa.py_buffer(content)])


def figures(content: bytes, n_missing: int) -> pa.Array:
    """Return numbers of float64; NaN becomes null."""
    if n_missing:
        return pa.array(np.frombuffer(content), from_pandas=True)
    return whole(content, pa.float64())


def texts(given: tuple[bytes, bytes]) -> pa.Array:
    """Return texts of their offsets and letters."""
    offsets, letters = given
    n_texts = max(len(offsets) // 4 - 1, 0)
    return pa.Array.from_buffers(pa.string(), n_texts, [None, pa.py_buffer(offsets), pa.py_buffer(letters)])


def named(codes: bytes, distinct: tuple[bytes, bytes]) -> pa.DictionaryArray:
    """Return the texts that the codes stand for; -1 is null."""
    numbers_of_texts = whole(codes, pa.int32())
    if len(codes) and np.frombuffer(codes, np.int32).min() < 0:
        numbers_of_texts = pc.if_else(pc.less(numbers_of_texts, 0), None, numbers_of_texts)
    return pa.DictionaryArray.from_arrays(numbers_of_texts, texts(distinct), safe=False)
