"""communication.json: one entry a communication operator, in ms and MB.

    {"step13": {"p2p": {}, "collective": {"hcom_allReduce__586_0_1@<group>": {
        "Communication Time Info": {"Start Timestamp(us)": …, "Elapse Time(ms)": …, …},
        "Communication Bandwidth Info": {"HCCS": {"Transit Size(MB)": …, "Size Distribution": {…}}, …}}}}}

PROF_* exports lack the step and the p2p/collective level. Totals are skipped. `SDMA` repeats what HCCS,
PCIE and SIO hold, so it is not read. "Idle" is spelled "Idel" in the documentation; both are read.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from contextlib import suppress
from itertools import chain, compress
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import astuple, replace

from cluster_analysis.sources import names, numbers
from cluster_analysis.sources.carried import ABSENT, BadEntryError, carried
from cluster_analysis.sources.communication_tables import CommunicationTables, PacketEntries
from cluster_analysis.sources.compiled.operator_columns import operators_of_files
from cluster_analysis.sources.compiled.packet_sums import packet_sums
from cluster_analysis.sources.errors import BadFileError, Remark
from cluster_analysis.sources.measured import (
    MEASURED_COLLECTIVES,
    NEEDED_COLLECTIVES,
    tell_missing,
    without_negative,
)
from cluster_analysis.sources.text.communication_levels import Decoders, Level, operators_by_step, whole_steps
from cluster_analysis.sources.text.communication_spans import operator_spans
from cluster_analysis.sources.text.json_text import read_with_offset
from cluster_analysis.tables import schema
from cluster_analysis.tables.sent import TRANSPORTS
from cluster_run.facts import fact


class _Time(msgspec.Struct, gc=False, frozen=True):
    start: msgspec.Raw = msgspec.field(name="Start Timestamp(us)", default=msgspec.Raw(b""))
    elapse: float | None = msgspec.field(name="Elapse Time(ms)", default=None)
    transit: float | None = msgspec.field(name="Transit Time(ms)", default=None)
    wait: float | None = msgspec.field(name="Wait Time(ms)", default=None)
    synchronization: float | None = msgspec.field(name="Synchronization Time(ms)", default=None)
    idle: float | None = msgspec.field(name="Idle Time(ms)", default=None)
    idel: float | None = msgspec.field(name="Idel Time(ms)", default=None)


class _Bandwidth(msgspec.Struct, gc=False, frozen=True):
    # In the order of TRANSPORTS.
    hccs: msgspec.Raw = msgspec.field(name="HCCS", default=ABSENT)
    rdma: msgspec.Raw = msgspec.field(name="RDMA", default=ABSENT)
    pcie: msgspec.Raw = msgspec.field(name="PCIE", default=ABSENT)
    sio: msgspec.Raw = msgspec.field(name="SIO", default=ABSENT)
    #: The sum of others, but of links that have no entry of their own (UB, UBoE of A5), all that is told.
    sdma: msgspec.Raw = msgspec.field(name="SDMA", default=ABSENT)


class _Op(msgspec.Struct, gc=False, frozen=True):
    time: _Time | None = msgspec.field(name="Communication Time Info", default=None)
    bandwidth: _Bandwidth = msgspec.field(name="Communication Bandwidth Info", default=_Bandwidth())


_OPERATORS: Decoders[_Op] = Decoders(
    msgspec.json.Decoder(dict[str, Level[_Op]]),
    msgspec.json.Decoder(Level[_Op]),
    msgspec.json.Decoder(dict[str, _Op]),
)

#: In the order of `_Time`, without start and the second spelling of idle.
_TIME_COLUMNS = ("elapse_us", "transit_us", "wait_us", "synchronization_us", "idle_us")


#: Where links stand that have no entry of their own.
_NEAR = TRANSPORTS.index("HCCS")


def read_communication(
    path: Path, rank: int, steps: frozenset[int] | None, remark: Remark, *, with_spans: bool = True
) -> CommunicationTables:
    """Return the operators of one file, their packets, and (`with_spans`) where each operator lies.

    Raises:
        BadFileError: nothing of the file can be used.
    """
    plain = operators_of_files([str(path)], [rank], steps, with_places=with_spans)
    if plain is not None:
        tables = CommunicationTables(plain.collectives(), plain.packets(remark))
        return replace(tables, spans=plain.spans()) if with_spans else tables
    content, n_skipped = read_with_offset(path)
    try:
        rows = _rows_of(content, steps, remark)
    except BadFileError as error:
        content = whole_steps(content, error, remark)
        rows = _rows_of(content, steps, remark)
    collectives = rows.collectives(rank, remark)
    packets = rows.packets(rank, collectives["group"].combine_chunks(), remark)
    if not with_spans:
        return CommunicationTables(collectives, packets)
    return CommunicationTables(collectives, packets, operator_spans(content, n_skipped, rank, steps))


def _rows_of(content: bytes, steps: frozenset[int] | None, remark: Remark) -> _Rows:
    rows = _Rows()
    for step, is_p2p, ops in operators_by_step(content, _OPERATORS, remark):
        if steps is None or step in steps:
            rows.add(step, is_p2p, ops)
    rows.decode_carried(content)
    return rows


class _Rows:
    """The wanted numbers of all operators, in lists, so that the decoded objects can go."""

    def __init__(self) -> None:
        self._keys: list[str] = []
        #: Step, level and number of operators, of each level.
        self._places: list[tuple[int, bool, int]] = []
        #: The digits of the time stamps, a line each, a text for each step and level.
        self._starts: list[bytes] = []
        #: Numbers of 8 bytes, a column each.
        self._times = [bytearray() for _ in _TIME_COLUMNS]
        #: An entry for each operator and transport, undecoded, and then their figures.
        self._entries: list[msgspec.Raw] = []
        self._by_sdma: list[msgspec.Raw] = []
        self._carried = carried([])
        self._sdma = carried([])

    def add(self, step: int, is_p2p: bool, ops: dict[str, _Op]) -> None:
        """Take the numbers of one level of one step; totals and empty entries are left out."""
        for key in [key for key in ops if key.startswith(names.TOTAL_PREFIX)]:
            del ops[key]
        if not ops:
            return
        keys = list(ops)
        times, bandwidths = zip(*map(astuple, ops.values()), strict=True)
        if not all(times):
            keys = list(compress(keys, times))
            bandwidths = tuple(compress(bandwidths, times))
            times = tuple(filter(None, times))
            if not times:
                return
        self._keys += keys
        self._places.append((step, is_p2p, len(keys)))
        self._add_times(times)
        self._entries += chain.from_iterable(astuple(one)[:-1] for one in bandwidths)
        self._by_sdma += [one.sdma for one in bandwidths]

    def decode_carried(self, content: bytes) -> None:
        """Decode what the operators carried, when all of `content` has been added.

        Raises:
            BadFileError: an entry is not of the expected form; it says which, and where it begins.
        """
        entries, self._entries = self._entries, []
        try:
            self._carried = carried(entries)
            with suppress(BadEntryError):  # a sum, of which nothing else is taken
                self._sdma = carried(self._by_sdma)
        except BadEntryError as error:
            row, transport = divmod(error.place, len(TRANSPORTS))
            offset = content.find(bytes(entries[error.place]))
            raise BadFileError(
                fact(
                    "not_of_form_in",
                    place=f"{TRANSPORTS[transport]} of {self._keys[row]!r}",
                    byte=offset,
                    detail=str(error),
                )
            ) from error

    def _add_times(self, times: Sequence[_Time]) -> None:
        starts, *columns, idel = zip(*map(astuple, times), strict=True)
        self._starts.append(b"\n".join(starts))
        if None in columns[-1]:
            pairs = zip(columns[-1], idel, strict=True)
            columns[-1] = tuple(second if first is None else first for first, second in pairs)
        for packed, values in zip(self._times, columns, strict=True):
            packed.extend(_packed(values))

    def collectives(self, rank: int, remark: Remark) -> pa.Table:
        """Return COLLECTIVES of what was added."""
        op_names, groups = names.split_keys(pa.array(self._keys, pa.string()))
        op_types = names.operations(op_names)
        lines = pa.array(self._starts, pa.string())
        starts, _ = numbers.to_ns(pc.split_pattern(lines, "\n").flatten())
        counts = [count for _, _, count in self._places]
        filed_p2p = np.repeat(np.array([is_p2p for _, is_p2p, _ in self._places], bool), counts)
        columns: dict[str, pa.Array] = {
            "rank": numbers.constant(rank, len(self._keys), pa.int32()),
            "step": pa.array(self._steps()),
            "group": groups,
            "op_name": op_names,
            "op_type": op_types,
            "op_index": names.indices_in_group(op_names),
            "is_p2p": pc.or_(pa.array(filed_p2p), names.point_to_point(op_types)),
            "start_ns": starts,
        }
        for name, values in zip(_TIME_COLUMNS, self._times, strict=True):
            columns[name] = _scaled(np.frombuffer(values), numbers.US_PER_MS)
        shape = (-1, len(TRANSPORTS))
        megabytes, milliseconds = (
            values.reshape(shape) for values in (self._carried.size_mb, self._carried.time_ms)
        )
        nameless = self._without_names(megabytes)
        if nameless.any():
            megabytes, milliseconds = megabytes.copy(), milliseconds.copy()
            megabytes[nameless, _NEAR] = self._sdma.size_mb[nameless]
            milliseconds[nameless, _NEAR] = self._sdma.time_ms[nameless]
        for at, name in enumerate(TRANSPORTS):
            columns[f"{name.lower()}_bytes"] = _scaled(megabytes[:, at], numbers.BYTES_PER_MB)
            columns[f"{name.lower()}_us"] = _scaled(milliseconds[:, at], numbers.US_PER_MS)
        columns["payload_bytes"] = (
            _scaled(np.where(nameless, self._sdma.size_mb, np.nan), numbers.BYTES_PER_MB)
            if nameless.any()
            else pa.nulls(len(self._keys), pa.float64())
        )
        table = pa.table(columns, schema=schema.COLLECTIVES)
        tell_missing(table, NEEDED_COLLECTIVES, remark)
        return without_negative(table, MEASURED_COLLECTIVES, remark)

    def _without_names(self, megabytes: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
        """Return which operators used links without an entry: what SDMA carried is no sum of others (N,).

        Their sizes and times take the place of HCCS, which are such links on older machines, and are the
        payload as well: by that they are known.
        """
        sdma_mb = self._sdma.size_mb
        if len(sdma_mb) < len(megabytes):
            return np.zeros(len(megabytes), bool)
        near = np.delete(megabytes, TRANSPORTS.index("RDMA"), axis=1)
        return np.asarray((sdma_mb > 0) & (near == 0).all(axis=1))

    def packets(self, rank: int, groups: pa.DictionaryArray, remark: Remark) -> pa.Table:
        """Return PACKETS of what was added; `groups` names each operator's group."""
        rows, transports = np.divmod(self._carried.packet_places, len(TRANSPORTS))
        entries = PacketEntries(
            self._steps()[rows],
            groups.take(pa.array(rows)),
            transports,
            pc.dictionary_encode(pa.array(self._carried.packet_sizes, pa.string())),
            self._carried.packet_figures,
        )
        return packet_sums(rank, entries, remark)

    def _steps(self) -> npt.NDArray[np.int64]:
        """Return each operator's step."""
        steps = np.array([step for step, _, _ in self._places], np.int64)
        return np.repeat(steps, [count for _, _, count in self._places])


def _packed(values: Sequence[float | None]) -> bytes:
    """Return the values without their objects; what is missing is NaN, which JSON cannot hold itself."""
    # Half the time of an array of Python's or NumPy's own.
    form = f"{len(values)}d"
    try:
        return struct.pack(form, *values)
    except struct.error:
        return struct.pack(form, *[math.nan if value is None else value for value in values])


def _scaled(values: npt.NDArray[np.float64], factor: float) -> pa.Array:
    """Return values times factor; NaN, and what no float64 holds then, becomes null."""
    with np.errstate(over="ignore"):
        scaled = values * factor
    return pa.array(np.where(np.isinf(scaled), np.nan, scaled), from_pandas=True)
