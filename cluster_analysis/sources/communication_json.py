"""communication.json: one entry a communication operator, in ms and MB.

    {"step13": {"p2p": {}, "collective": {"hcom_allReduce__586_0_1@<group>": {
        "Communication Time Info": {"Start Timestamp(us)": …, "Elapse Time(ms)": …, …},
        "Communication Bandwidth Info": {"HCCS": {"Transit Size(MB)": …, "Size Distribution": {…}}, …}}}}}

PROF_* exports lack the step and the p2p/collective level. Totals are skipped. `SDMA` repeats what HCCS,
PCIE and SIO hold, so it is not read. "Idle" is spelled "Idel" in the documentation; both are read.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis import schema
from cluster_analysis.sources import names, numbers
from cluster_analysis.sources.communication_levels import Level, levels_by_step
from cluster_analysis.sources.errors import Remark, left_out
from cluster_analysis.sources.json_text import read_bytes
from cluster_analysis.sources.packets import TRANSPORTS, PacketSums


class _Time(msgspec.Struct, gc=False, frozen=True):
    start: msgspec.Raw = msgspec.field(name="Start Timestamp(us)", default=msgspec.Raw(b""))
    elapse: float | None = msgspec.field(name="Elapse Time(ms)", default=None)
    transit: float | None = msgspec.field(name="Transit Time(ms)", default=None)
    wait: float | None = msgspec.field(name="Wait Time(ms)", default=None)
    synchronization: float | None = msgspec.field(name="Synchronization Time(ms)", default=None)
    idle: float | None = msgspec.field(name="Idle Time(ms)", default=None)
    idel: float | None = msgspec.field(name="Idel Time(ms)", default=None)


class _Transport(msgspec.Struct, gc=False, frozen=True):
    size: float | None = msgspec.field(name="Transit Size(MB)", default=None)
    time: float | None = msgspec.field(name="Transit Time(ms)", default=None)
    packets: dict[str, tuple[float, float]] = msgspec.field(name="Size Distribution", default_factory=dict)


_NO_TRANSPORT = _Transport()


class _Bandwidth(msgspec.Struct, gc=False, frozen=True):
    hccs: _Transport = msgspec.field(name="HCCS", default=_NO_TRANSPORT)
    rdma: _Transport = msgspec.field(name="RDMA", default=_NO_TRANSPORT)
    pcie: _Transport = msgspec.field(name="PCIE", default=_NO_TRANSPORT)
    sio: _Transport = msgspec.field(name="SIO", default=_NO_TRANSPORT)


class _Op(msgspec.Struct, gc=False, frozen=True):
    time: _Time | None = msgspec.field(name="Communication Time Info", default=None)
    bandwidth: _Bandwidth = msgspec.field(name="Communication Bandwidth Info", default=_Bandwidth())


_TIME_COLUMNS = {
    "elapse_us": "time.elapse",
    "transit_us": "time.transit",
    "wait_us": "time.wait",
    "synchronization_us": "time.synchronization",
    "idle_us": "time.idle",
}
_FIELDS = (
    "time.start",
    *_TIME_COLUMNS.values(),
    *(f"bandwidth.{name.lower()}.{field}" for name in TRANSPORTS for field in ("size", "time", "packets")),
)
_NUMBERS, _IDEL, _OF_OP = attrgetter(*_FIELDS), attrgetter("time.idel"), attrgetter("time")

_LEVELS_BY_STEP: msgspec.json.Decoder[dict[str, Level[_Op]]] = msgspec.json.Decoder(dict[str, Level[_Op]])
_LEVELS: msgspec.json.Decoder[Level[_Op]] = msgspec.json.Decoder(Level[_Op])
_FLAT: msgspec.json.Decoder[dict[str, _Op]] = msgspec.json.Decoder(dict[str, _Op])


def read_communication(
    path: Path, rank: int, steps: frozenset[int] | None, remark: Remark
) -> tuple[pa.Table, pa.Table]:
    """Return the operators (COLLECTIVES) and the packets (PACKETS) of one file.

    Raises:
        BadFileError: nothing of the file can be used.
    """
    rows = _Rows()
    for step, is_p2p, ops in _ops_by_step(read_bytes(path), remark):
        if steps is None or step in steps:
            rows.add(step, is_p2p, ops)
    return rows.collectives(rank, remark), rows.packets(rank)


def _ops_by_step(content: bytes, remark: Remark) -> Iterator[tuple[int, bool, dict[str, _Op]]]:
    """Yield the operators of each step and level (`is_p2p`)."""
    try:
        # Nearly all files have this form, and one pass over the file is all they need.
        document: dict[str, Level[_Op]] | None = _LEVELS_BY_STEP.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        document = None
    if document is None or not all(numbers.parse_step(key) is not None for key in document):
        # Without steps, or damaged: this says what is wrong, and where.
        yield from levels_by_step(content, _LEVELS, _FLAT, remark)
        return
    while document:
        # A step's objects go as soon as its numbers are taken.
        key = next(iter(document))
        level = document.pop(key)
        step = numbers.parse_step(key) or 0
        yield step, True, level.p2p
        yield step, False, level.collective


class _Rows:
    """The wanted numbers of all operators, in lists, so that the decoded objects can go."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.steps: list[int] = []
        self.is_p2p: list[bool] = []
        #: The digits of the time stamps, a line each, a text for each step and level.
        self.starts: list[bytes] = []
        self.times = {name: array("d") for name in _TIME_COLUMNS}
        self.sizes = {name: array("d") for name in TRANSPORTS}
        self.transit = {name: array("d") for name in TRANSPORTS}
        self.packet_sums = PacketSums()

    def add(self, step: int, is_p2p: bool, ops: dict[str, _Op]) -> None:
        """Take the numbers of one level of one step; totals and empty entries are left out."""
        for key in [key for key in ops if key.startswith(names.TOTAL_PREFIX)]:
            del ops[key]
        if None in map(_OF_OP, ops.values()):
            ops = {key: op for key, op in ops.items() if op.time is not None}
        if not ops:
            return
        self.keys.extend(ops)
        self.steps.extend([step] * len(ops))
        self.is_p2p.extend([is_p2p] * len(ops))
        # All numbers of an operator at once, while it is in the processor's cache.
        columns = dict(zip(_FIELDS, zip(*map(_NUMBERS, ops.values()), strict=True), strict=True))
        self.starts.append(b"\n".join(columns["time.start"]))
        if None in columns["time.idle"]:
            pairs = zip(columns["time.idle"], map(_IDEL, ops.values()), strict=True)
            columns["time.idle"] = tuple(idel if idle is None else idle for idle, idel in pairs)
        for name, field in _TIME_COLUMNS.items():
            self.times[name].extend(_packed(columns[field]))
        for name in TRANSPORTS:
            used = f"bandwidth.{name.lower()}"
            self.sizes[name].extend(_packed(columns[f"{used}.size"]))
            self.transit[name].extend(_packed(columns[f"{used}.time"]))
            self.packet_sums.add(step, name, zip(ops, columns[f"{used}.packets"], strict=True))

    def collectives(self, rank: int, remark: Remark) -> pa.Table:
        """Return COLLECTIVES of what was added."""
        op_names, groups = names.split_keys(pa.array(self.keys, pa.string()))
        op_types = names.operations(op_names)
        lines = pa.array(self.starts, pa.string())
        starts, n_bad = numbers.to_ns(pc.split_pattern(lines, "\n").flatten())
        if n_bad:
            remark(left_out(n_bad, "start time stamp", f"of {len(self.keys)}, without a number"))
        columns: dict[str, pa.Array] = {
            "rank": numbers.constant(rank, len(self.keys), pa.int32()),
            "step": pa.array(self.steps, pa.int64()),
            "group": groups,
            "op_name": op_names,
            "op_type": op_types,
            "op_index": names.indices_in_group(op_names),
            "is_p2p": pc.or_(pa.array(self.is_p2p, pa.bool_()), names.point_to_point(op_types)),
            "start_ns": starts,
        }
        for name, values in self.times.items():
            columns[name] = _scaled(values, numbers.US_PER_MS)
        for name in TRANSPORTS:
            columns[f"{name.lower()}_bytes"] = _scaled(self.sizes[name], numbers.BYTES_PER_MB)
            columns[f"{name.lower()}_us"] = _scaled(self.transit[name], numbers.US_PER_MS)
        return pa.table(columns, schema=schema.COLLECTIVES)

    def packets(self, rank: int) -> pa.Table:
        """Return PACKETS of what was added: sums over the operators of a group and step."""
        return self.packet_sums.table(rank)


def _packed(values: Sequence[float | None]) -> array[float]:
    """Return the values without their objects; what is missing is NaN, which JSON cannot hold itself."""
    try:
        return array("d", values)  # type: ignore[arg-type]
    except TypeError:
        return array("d", [math.nan if value is None else value for value in values])


def _scaled(values: array[float], factor: float) -> pa.Array:
    """Return values times factor; NaN becomes null."""
    return pa.array(np.frombuffer(values, dtype=np.float64) * factor, from_pandas=True)
