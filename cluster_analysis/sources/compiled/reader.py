"""Communication files by the compiled reader: its columns become the tables that Python makes, too.

It (the C files here) reads files of the plain form that profilers write (`communication.c`), in which nothing
is damaged, missing or below 0, and hands every other one over to Python. Files of several ranks become one
table; one file is a batch of one. It is missing where it could not be built.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster_analysis.sources import names
from cluster_analysis.sources.communication_tables import CommunicationTables, PacketEntries, packet_sums
from cluster_analysis.sources.errors import NotTogetherError, not_together
from cluster_analysis.sources.link_names import LinkNames, links_table
from cluster_analysis.tables import schema
from cluster_reduce.levels import parse_step

try:
    from cluster_analysis.sources.compiled import _files
except ImportError:
    _files = None  # type: ignore[assignment]

#: `python` leaves the compiled reader alone, to compare both.
CHOICE = "CLUSTER_PROFILER_DECODER"
_PYTHON = "python"


def compiled() -> ModuleType | None:
    """Return the compiled reader; None where there is none, or where it is not wanted."""
    return None if os.environ.get(CHOICE) == _PYTHON else _files


def in_use() -> str:
    """Return which reader works here, for people."""
    return "JSON by Python" if compiled() is None else "JSON by the compiled reader"


#: The columns of figures, which the compiled reader names as we do.
_FIGURES = tuple(field.name for field in schema.COLLECTIVES if pa.types.is_float64(field.type))[:-1]
#: A level: key of its step, whether it is point to point, rows, file.
_N_OF_LEVEL = 4
#: Offsets and letters.
_Texts: TypeAlias = tuple[bytes, bytes]


class _Rows:
    """File, rank, step and level of each row (N,), in the order of the files; both files have them."""

    def __init__(self, given: Mapping[str, Any], ranks: Sequence[int]) -> None:
        levels = array(given["levels"], np.int32).reshape(-1, _N_OF_LEVEL)
        keys, is_p2p, n_rows, files = np.ascontiguousarray(levels.T)
        steps = [parse_step(key) for key in texts(given["step_names"]).to_pylist()]
        #: Whether every key is a step of its own (`step10` and `10` are one); if not, Python reports it.
        self.are_steps = None not in steps and len(set(steps)) == len(steps)
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
    reader = compiled()
    given = None if reader is None else reader.operators(_contents(paths), with_places)
    if given is None:
        return None
    rows = _Rows(given, ranks)
    packets = _packets(given, rows) if rows.are_steps else None
    if packets is None:
        return None
    spans = _spans(given, rows) if with_places else schema.OPERATOR_SPANS.empty_table()
    return CommunicationTables(_collectives(given, rows), packets, spans)


def _contents(paths: Sequence[str]) -> Iterator[bytes]:
    """Give whole files, one at a time; of one that cannot be read nothing, which is not plain."""
    for path in paths:
        try:
            with open(path, "rb", 0) as file:
                yield file.read()
        except OSError:
            yield b""


def _collectives(given: Mapping[str, Any], rows: _Rows) -> pa.Table:
    return schema.rows(
        schema.COLLECTIVES,
        rows.ranks,
        step=rows.steps,
        group=named(given["groups"], given["group_names"]),
        **names.of_operators(texts(given["op_names"]), pa.array(rows.is_p2p)),
        start_ns=array(given["starts_ns"], np.int64),
        **{name: pa.array(array(given[name], np.float64), from_pandas=True) for name in _FIGURES},
    )


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
    try:
        return packet_sums(entries, not_together)
    except (NotTogetherError, OverflowError, ValueError):
        return None


def _spans(given: Mapping[str, Any], rows: _Rows) -> pa.Table:
    return schema.rows(
        schema.OPERATOR_SPANS,
        rows.ranks,
        step=rows.steps,
        key=named(given["keys"], given["key_names"]),
        position=np.concatenate([np.arange(count, dtype=np.int32) for count in rows.counts]),
        offset=array(given["offsets"], np.int64),
        length=array(given["lengths"], np.int32),
    )


def links_of_files(paths: Sequence[str], ranks: Sequence[int]) -> pa.Table | None:
    """Return the links (LINKS) of the files of one or more ranks; None where Python must read one of them.

    That is: there is no compiled reader, a file is not of the plain form, or there is something to report.

    Args:
        paths: where they are; one at a time is in memory.
        ranks: whose they are.
    """
    reader = compiled()
    given = None if reader is None else reader.links(_contents(paths))
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
    return links_table(
        rows.ranks,
        link_names,
        pa.array(rows.is_p2p),
        step=rows.steps,
        src_local=array(given["sources"], np.int32),
        dst_local=array(given["destinations"], np.int32),
        transport=named(given["transports"], given["transport_names"]),
        size_bytes=pa.array(array(given["sizes_bytes"], np.float64), from_pandas=True),
        time_us=pa.array(array(given["times_us"], np.float64), from_pandas=True),
    )


def array(given: bytes, kind: type[np.generic]) -> npt.NDArray[Any]:
    """Return numbers (N,) as they lie."""
    return np.frombuffer(given, kind)


def texts(given: _Texts) -> pa.Array:
    """Return texts of their offsets and letters."""
    offsets, letters = map(pa.py_buffer, given)
    return pa.Array.from_buffers(pa.string(), max(offsets.size // 4 - 1, 0), [None, offsets, letters])


def named(codes: bytes, distinct: _Texts) -> pa.DictionaryArray:
    """Return the texts that the codes stand for; -1 is null."""
    places = array(codes, np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(places, mask=places < 0), texts(distinct), safe=False)
