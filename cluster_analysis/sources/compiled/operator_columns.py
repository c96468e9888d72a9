"""communication.json by the compiled reader: its columns made into the same tables that Python makes.

The reader takes a file of the plain form only (`communication.h`), so that nothing here can be
damaged, and counts what is missing or below 0, so that nobody has to look for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster_analysis.sources import numbers
from cluster_analysis.sources.compiled.arrays import figures, named, texts, whole
from cluster_analysis.sources.compiled.operator_names import operations
from cluster_analysis.sources.compiled.reader import compiled
from cluster_analysis.sources.errors import Remark
from cluster_analysis.sources.measured import (
    MEASURED_COLLECTIVES,
    NEEDED_COLLECTIVES,
    tell_missing,
    without_negative,
)
from cluster_analysis.sources.packets import PacketEntries, packet_sums_of
from cluster_analysis.tables import schema

#: The columns of figures, as the compiled reader has them too.
_FIGURES = tuple(field.name for field in schema.COLLECTIVES if pa.types.is_float64(field.type))[:-1]


class OperatorColumns:
    """The columns of one file: operators in its order, without totals."""

    def __init__(self, given: Mapping[str, Any], levels: Levels, rank: int) -> None:
        self.given = given
        self.rank = rank
        self.levels = levels
        self.n_rows = len(given["keys"]) // 4

    def collectives(self, remark: Remark) -> pa.Table:
        """Return COLLECTIVES."""
        given, n_rows = self.given, self.n_rows
        op_names = texts(given["op_names"])
        op_types, is_p2p = self._operations(op_names)
        columns = {
            "rank": numbers.constant(self.rank, n_rows, pa.int32()),
            "step": pa.array(self.levels.steps),
            "group": self._groups(),
            "op_name": op_names,
            "op_type": op_types,
            "op_index": whole(given["indices"], pa.int32()),
            "is_p2p": pa.array(self.levels.is_p2p | is_p2p),
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

    def spans(self, n_skipped: int) -> pa.Table:
        """Return OPERATOR_SPANS of a file that was read without its first `n_skipped` bytes."""
        given, n_rows = self.given, self.n_rows
        offsets = np.frombuffer(given["offsets"], np.int64)
        columns = [
            numbers.constant(self.rank, n_rows, pa.int32()),
            pa.array(self.levels.steps),
            named(given["keys"], given["key_names"]),
            pa.array(np.arange(n_rows, dtype=np.int32)),
            pa.array(offsets + n_skipped if n_skipped else offsets),
            whole(given["lengths"], pa.int32()),
        ]
        return pa.Table.from_arrays(columns, schema=schema.OPERATOR_SPANS)

    def _groups(self) -> pa.DictionaryArray:
        return named(self.given["groups"], self.given["group_names"])

    def _operations(self, op_names: pa.Array) -> tuple[pa.Array, npt.NDArray[np.bool_]]:
        """Return the operations (dictionary), and which are point to point."""
        stems = np.frombuffer(self.given["stems"], np.int32)
        return operations(op_names, stems, texts(self.given["stem_names"]).to_pylist())


def packets_of(files: Sequence[OperatorColumns], remark: Remark) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """Return PACKETS of several files, one behind the other, and the place in `files` of each row's."""
    given = [one.given for one in files]
    rows = [np.frombuffer(one["packet_rows"], np.int32) for one in given]
    groups, group_names = shared(given, "groups", "group_names")
    sizes, size_names = shared(given, "packet_sizes", "size_names")
    begins = np.cumsum([0, *(one.n_rows for one in files)])
    rows_of_all = np.concatenate([own + begin for own, begin in zip(rows, begins, strict=False)])
    entries = PacketEntries(
        np.concatenate([one.levels.steps for one in files])[rows_of_all],
        _dictionary(groups[rows_of_all], group_names),
        np.frombuffer(b"".join([one["packet_transports"] for one in given]), np.int32),
        _dictionary(sizes, size_names),
        np.frombuffer(b"".join([one["packet_figures"] for one in given])).reshape(-1, 2),
    )
    owners = np.repeat(np.arange(len(files)), [len(own) for own in rows])
    return packet_sums_of([one.rank for one in files], owners, entries, remark)


class Levels:
    """Step and level of each row of a file; both communication files have them."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        levels = np.frombuffer(given["levels"], np.int32).reshape(-1, 3)
        keys = _steps_of(*given["step_names"])
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
    if given is None:
        return None
    levels = Levels(given)
    return OperatorColumns(given, levels, rank) if levels.all_in(steps) else None


@lru_cache(maxsize=16)
def _steps_of(offsets: bytes, letters: bytes) -> list[int | None]:
    """Return the steps that keys name; the ranks' files have the same."""
    return [numbers.parse_step(key) for key in texts((offsets, letters)).to_pylist()]


def shared(
    files: Sequence[Mapping[str, Any]], codes: str, named: str
) -> tuple[npt.NDArray[np.int32], list[str]]:
    """Return which text each row of all files has, -1 for none, and the distinct texts.

    Args:
        files: what the compiled reader gave of each.
        codes: the column that says which of its file's texts each row has.
        named: these texts.
    """
    known: dict[str, int] = {}
    parts = []
    for one in files:
        own = texts(one[named]).to_pylist()
        # The last place is that of -1.
        places = np.array([*(known.setdefault(text, len(known)) for text in own), -1], np.int32)
        parts.append(places[np.frombuffer(one[codes], np.int32)])
    return np.concatenate(parts), list(known)


def _dictionary(codes: npt.NDArray[np.int32], values: Sequence[str]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(values, pa.string()))
