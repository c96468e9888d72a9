"""communication.json by the compiled reader: its columns made into the same tables that Python makes.

The reader takes files of the plain form only (`communication.h`), in which nothing is damaged, missing or
below 0. Files of several ranks become one table; one file is a batch of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster_analysis.sources import numbers
from cluster_analysis.sources.compiled.arrays import array, column, figures, named, texts
from cluster_analysis.sources.compiled.layout import Layout
from cluster_analysis.sources.compiled.operator_names import operations
from cluster_analysis.sources.compiled.packet_sums import packets_of_totals
from cluster_analysis.sources.compiled.reader import compiled
from cluster_analysis.sources.measured import MEASURED_COLLECTIVES, NEEDED_COLLECTIVES
from cluster_analysis.tables import schema

#: The columns of figures, as the compiled reader has them too.
_FIGURES = tuple(field.name for field in schema.COLLECTIVES if pa.types.is_float64(field.type))[:-1]


#: A level: key of its step, whether it is point to point, rows, file.
_N_OF_LEVEL = 4
#: Sums of operators, and the use of groups by rank, as in operator_sums.h.
_TOTAL = np.dtype(
    [
        ("sums", np.float64, len(_FIGURES)),
        ("file", np.int32),
        ("step", np.int32),
        ("group", np.int32),
        ("known", np.uint32),
    ]
)
_USE = np.dtype([(name, np.int32) for name in ("file", "group", "stem", "is_p2p", "n")])


def _bits(names: Iterable[str]) -> int:
    return sum(1 << _FIGURES.index(name) for name in names if name in _FIGURES)


_NEEDED, _MEASURED = _bits(NEEDED_COLLECTIVES.columns), _bits(MEASURED_COLLECTIVES)


class OperatorColumns:
    """The columns of some files, one behind the other: operators in their order, without totals."""

    def __init__(
        self, given: Mapping[str, Any], levels: RowPlaces, ranks: Sequence[int], packets: pa.Table
    ) -> None:
        self._given = given
        self._levels = levels
        #: PACKETS.
        self.packets = packets
        #: Of each file its rank, and how many operators it has.
        self.ranks = ranks
        self.counts = levels.counts
        #: Which rows are of which file and step.
        self.layout = levels.layout

    def collectives(self) -> pa.Table:
        """Return COLLECTIVES, laid by step."""
        given = self._given
        op_names = texts(given["op_names"])
        stems = array(given["stems"], np.int32)
        op_types, is_p2p = operations(op_names, stems, texts(given["stem_names"]).to_pylist())
        columns = {
            "rank": self._ranks_of(self._levels.owners),
            "step": pa.array(self._levels.steps),
            "group": named(given["groups"], given["group_names"]),
            "op_name": op_names,
            "op_type": op_types,
            "op_index": column(given["indices"], pa.int32()),
            "is_p2p": pa.array(self._levels.is_p2p | is_p2p),
            "start_ns": column(given["starts_ns"], pa.int64()),
            "payload_bytes": pa.nulls(len(op_names), pa.float64()),
        }
        for name, values, n_missing in zip(_FIGURES, given["figures"], given["n_missing"], strict=True):
            columns[name] = figures(values, n_missing)
        arrays = [columns[name] for name in schema.COLLECTIVES.names]
        return pa.Table.from_arrays(arrays, schema=schema.COLLECTIVES)

    def totals(self) -> pa.Table:
        """Return TOTALS, in the order of the files; no two keys may name one step."""
        found = np.frombuffer(self._given["totals"], _TOTAL)
        columns = [
            self._ranks_of(found["file"]),
            pa.array(self.layout.steps[found["step"]]),
            self._groups_of(found["group"]),
        ]
        for at, values in enumerate(found["sums"].T.copy()):
            is_unknown = (found["known"] >> at & 1) == 0
            columns.append(pa.array(values, mask=is_unknown if is_unknown.any() else None))
        columns.append(pa.nulls(len(found), pa.float64()))
        return pa.Table.from_arrays(columns, schema=schema.TOTALS)

    def uses(self) -> pa.Table:
        """Return USES of COLLECTIVES."""
        found = np.frombuffer(self._given["uses"], _USE)
        stem_names = texts(self._given["stem_names"])
        stems = np.ascontiguousarray(found["stem"])
        op_types, is_p2p = operations(stem_names.take(pa.array(stems)), stems, stem_names.to_pylist())
        columns = [
            self._ranks_of(found["file"]),
            self._groups_of(found["group"]),
            op_types,
            pa.array((found["is_p2p"] != 0) | is_p2p),
            pa.array(found["n"].astype(np.int64)),
        ]
        return pa.Table.from_arrays(columns, schema=schema.USES)

    def spans(self) -> pa.Table:
        """Return OPERATOR_SPANS."""
        given, layout = self._given, self.layout
        owners = layout.rows_in_files(layout.files)
        positions = [np.arange(count, dtype=np.int32) for count in self.counts if count > 0]
        columns = [
            self._ranks_of(owners),
            pa.array(layout.rows_in_files(layout.steps[layout.keys])),
            named(given["keys"], given["key_names"]),
            pa.array(np.concatenate(positions)),
            column(given["offsets"], pa.int64()),
            column(given["lengths"], pa.int32()),
        ]
        return pa.Table.from_arrays(columns, schema=schema.OPERATOR_SPANS)

    def _ranks_of(self, owners: npt.NDArray[np.int32]) -> pa.Array:
        return pa.array(np.array(self.ranks, np.int32)[owners])

    def _groups_of(self, groups: npt.NDArray[np.int32]) -> pa.Array:
        return named(np.ascontiguousarray(groups).tobytes(), self._given["group_names"])


class RowPlaces:
    """Step and level of each row of some files; both communication files have them.

    Rows are laid by step, those of a step in the order of the files; places in the texts are not.
    """

    def __init__(self, given: Mapping[str, Any]) -> None:
        levels = array(given["levels"], np.int32).reshape(-1, _N_OF_LEVEL)
        keys = _steps_of(*given["step_names"])
        #: Of each file how many rows it has.
        self.counts: list[int] = array(given["counts"], np.int32).tolist()
        #: False: a key is no step, which Python says of it.
        self._are_steps = None not in keys
        self._numbers = [key or 0 for key in keys]
        keys_of_levels, is_p2p, n_rows, files = np.ascontiguousarray(levels.T)
        order = np.argsort(keys_of_levels, kind="stable")
        steps = np.array(self._numbers, np.int64)
        #: Which rows are of which file and step.
        self.layout = Layout(files, keys_of_levels, steps, n_rows, order)
        self.steps = self.layout.rows_of(steps[keys_of_levels])
        self.is_p2p = self.layout.rows_of(is_p2p != 0)
        self.owners = self.layout.rows_of(files)

    def are_plain(self, steps: frozenset[int] | None) -> bool:
        """Return whether every key is a step of its own, and one of these (None: all)."""
        are_wanted = steps is None or steps.issuperset(self._numbers)
        return self._are_steps and are_wanted and self.layout.are_distinct()


def operators_of_files(
    paths: Sequence[str], ranks: Sequence[int], steps: frozenset[int] | None = None, *, with_places: bool
) -> OperatorColumns | None:
    """Return the operators of the files of one or more ranks; None where Python must read one of them.

    That is: there is no compiled reader, a file is not of the plain form, there is something to report, or
    steps of it are left out.

    Args:
        paths: where they are; one at a time is in memory.
        ranks: whose they are.
        steps: the steps that are wanted; None for all.
        with_places: whether `spans` will be asked for.
    """
    compiled_reader = compiled()
    if compiled_reader is None:
        return None
    given = compiled_reader.operators(paths, with_places, _NEEDED, _MEASURED)
    levels = None if given is None else RowPlaces(given)
    if levels is None or not levels.are_plain(steps):
        return None
    groups, sizes = texts(given["group_names"]), texts(given["size_names"])
    packets = packets_of_totals(ranks, given["packet_totals"], levels.layout.steps, groups, sizes)
    return None if packets is None else OperatorColumns(given, levels, ranks, packets)


@lru_cache(maxsize=16)
def _steps_of(offsets: bytes, letters: bytes) -> list[int | None]:
    """Return the steps that keys name; the ranks' files have the same."""
    return [numbers.parse_step(key) for key in texts((offsets, letters)).to_pylist()]
