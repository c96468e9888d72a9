"""communication.json: one entry a communication operator, in ms and MB.

    {"step13": {"p2p": {}, "collective": {"hcom_allReduce__586_0_1@<group>": {
        "Communication Time Info": {"Start Timestamp(us)": …, "Elapse Time(ms)": …, …},
        "Communication Bandwidth Info": {"HCCS": {"Transit Size(MB)": …, "Size Distribution": {…}}, …}}}}}

PROF_* exports lack the step and the p2p/collective level. Totals are skipped. `SDMA` repeats what HCCS,
PCIE and SIO hold, so it is not read. "Idle" is spelled "Idel" in the documentation; both are read.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import chain
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from cluster_analysis.sources import names, numbers
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
from cluster_analysis.sources.text.communication_levels import Level, levels_by_step, whole_steps
from cluster_analysis.sources.text.communication_spans import operator_spans
from cluster_analysis.sources.text.json_text import read_with_offset
from cluster_analysis.tables import schema
from cluster_analysis.tables.sent import TRANSPORTS

_NO_TEXT = msgspec.Raw(b"")


class _Time(msgspec.Struct, gc=False, frozen=True):
    start: msgspec.Raw = msgspec.field(name="Start Timestamp(us)", default=_NO_TEXT)
    elapse: float | None = msgspec.field(name="Elapse Time(ms)", default=None)
    transit: float | None = msgspec.field(name="Transit Time(ms)", default=None)
    wait: float | None = msgspec.field(name="Wait Time(ms)", default=None)
    synchronization: float | None = msgspec.field(name="Synchronization Time(ms)", default=None)
    idle: float | None = msgspec.field(name="Idle Time(ms)", default=None)
    idel: float | None = msgspec.field(name="Idel Time(ms)", default=None)


class _Entry(msgspec.Struct, gc=False, frozen=True):
    """What one operator carried over one transport."""

    size: float | None = msgspec.field(name="Transit Size(MB)", default=None)
    time: float | None = msgspec.field(name="Transit Time(ms)", default=None)
    #: By size in MB: number of packets, and their time in ms.
    packets: dict[str, tuple[float, float]] = msgspec.field(name="Size Distribution", default_factory=dict)


_NO_ENTRY = _Entry()


class _Bandwidth(msgspec.Struct, gc=False, frozen=True):
    hccs: _Entry = msgspec.field(name="HCCS", default=_NO_ENTRY)
    rdma: _Entry = msgspec.field(name="RDMA", default=_NO_ENTRY)
    pcie: _Entry = msgspec.field(name="PCIE", default=_NO_ENTRY)
    sio: _Entry = msgspec.field(name="SIO", default=_NO_ENTRY)
    #: The sum of others, but of links that have no entry of their own (UB, UBoE of A5), all that is told.
    sdma: msgspec.Raw = msgspec.field(name="SDMA", default=_NO_TEXT)


class _Op(msgspec.Struct, gc=False, frozen=True):
    time: _Time | None = msgspec.field(name="Communication Time Info", default=None)
    bandwidth: _Bandwidth = msgspec.field(name="Communication Bandwidth Info", default=_Bandwidth())


_ENTRY: msgspec.json.Decoder[_Entry] = msgspec.json.Decoder(_Entry)
_LEVELS: msgspec.json.Decoder[Level[_Op]] = msgspec.json.Decoder(Level[_Op])
_FLAT: msgspec.json.Decoder[dict[str, _Op]] = msgspec.json.Decoder(dict[str, _Op])

_TIME_COLUMNS = ("elapse_us", "transit_us", "wait_us", "synchronization_us", "idle_us")


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
    for step, is_p2p, ops in levels_by_step(content, _LEVELS, _FLAT, remark):
        if steps is None or step in steps:
            rows.add(step, is_p2p, ops)
    return rows


class _Rows:
    """The wanted numbers of all operators, in lists, so that the decoded objects can go."""

    def __init__(self) -> None:
        self._keys: list[str] = []
        #: Step, level and number of operators, of each level.
        self._places: list[tuple[int, bool, int]] = []
        #: The digits of the time stamps.
        self._starts: list[bytes] = []
        #: Of each operator its times, as `_TIME_COLUMNS` has them, in ms.
        self._times: list[tuple[float | None, ...]] = []
        #: Of each operator and transport the size in MB and the time in ms.
        self._sizes: list[float | None] = []
        self._carrying: list[float | None] = []
        #: Of each operator the size in MB of what has no transport's name.
        self._payloads: list[float | None] = []
        #: Of each operator and transport the packets.
        self._packets: list[dict[str, tuple[float, float]]] = []

    def add(self, step: int, is_p2p: bool, ops: dict[str, _Op]) -> None:
        """Take the numbers of one level of one step; totals and empty entries are left out."""
        n_before = len(self._keys)
        for key, op in ops.items():
            time = op.time
            if time is None or key.startswith(names.TOTAL_PREFIX):
                continue
            idle = time.idel if time.idle is None else time.idle
            self._keys.append(key)
            self._starts.append(bytes(time.start))
            self._times.append((time.elapse, time.transit, time.wait, time.synchronization, idle))
            self._add_carried(op.bandwidth)
        self._places.append((step, is_p2p, len(self._keys) - n_before))

    def _add_carried(self, bandwidth: _Bandwidth) -> None:
        """Take what an operator carried.

        Where the links have no entry of their own SDMA is no sum of others: it takes the place of HCCS,
        which are such links on older machines, and is the payload as well. By that they are known.
        """
        hccs, payload = bandwidth.hccs, None
        if bandwidth.sdma and hccs.size == bandwidth.pcie.size == bandwidth.sio.size == 0:
            with suppress(msgspec.DecodeError, UnicodeDecodeError):  # a sum, of which nothing else is taken
                sdma = _ENTRY.decode(bandwidth.sdma)
                if sdma.size is not None and sdma.size > 0:
                    hccs, payload = _Entry(sdma.size, sdma.time, hccs.packets), sdma.size
        self._payloads.append(payload)
        for entry in (hccs, bandwidth.rdma, bandwidth.pcie, bandwidth.sio):  # in the order of TRANSPORTS
            self._sizes.append(entry.size)
            self._carrying.append(entry.time)
            self._packets.append(entry.packets)

    def collectives(self, rank: int, remark: Remark) -> pa.Table:
        """Return COLLECTIVES of what was added."""
        op_names, groups = names.split_keys(pa.array(self._keys, pa.string()))
        op_types = names.operations(op_names)
        starts, _ = numbers.to_ns(pa.array(self._starts, pa.binary()).cast(pa.string()))
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
            "payload_bytes": _scaled(self._payloads, 1, numbers.BYTES_PER_MB)[0],
        }
        columns |= zip(
            _TIME_COLUMNS, _scaled(self._times, len(_TIME_COLUMNS), numbers.US_PER_MS), strict=True
        )
        sizes = _scaled(self._sizes, len(TRANSPORTS), numbers.BYTES_PER_MB)
        times = _scaled(self._carrying, len(TRANSPORTS), numbers.US_PER_MS)
        for name, size, time in zip(TRANSPORTS, sizes, times, strict=True):
            columns[f"{name.lower()}_bytes"] = size
            columns[f"{name.lower()}_us"] = time
        table = pa.table(columns, schema=schema.COLLECTIVES)
        tell_missing(table, NEEDED_COLLECTIVES, remark)
        return without_negative(table, MEASURED_COLLECTIVES, remark)

    def packets(self, rank: int, groups: pa.DictionaryArray, remark: Remark) -> pa.Table:
        """Return PACKETS of what was added; `groups` names each operator's group."""
        lengths = list(map(len, self._packets))
        rows, transports = np.divmod(np.repeat(np.arange(len(lengths)), lengths), len(TRANSPORTS))
        figures = [one for packets in self._packets for one in packets.values()]
        entries = PacketEntries(
            self._steps()[rows],
            groups.take(pa.array(rows)),
            transports,
            pc.dictionary_encode(pa.array(chain.from_iterable(self._packets), pa.string())),
            np.array(figures, np.float64).reshape(-1, 2),
        )
        return packet_sums(rank, entries, remark)

    def _steps(self) -> npt.NDArray[np.int64]:
        """Return each operator's step."""
        steps = np.array([step for step, _, _ in self._places], np.int64)
        return np.repeat(steps, [count for _, _, count in self._places])


def _scaled(values: object, n_columns: int, factor: float) -> list[pa.Array]:
    """Return columns times factor; what is missing, and what no float64 holds then, becomes null."""
    with np.errstate(over="ignore"):
        scaled = np.array(values, np.float64).reshape(-1, n_columns) * factor
    return [pa.array(one, from_pandas=True) for one in np.where(np.isinf(scaled), np.nan, scaled).T]
