"""communication.json: one entry a communication operator, in ms and MB.

    {"step13": {"p2p": {}, "collective": {"hcom_allReduce__586_0_1@<group>": {
        "Communication Time Info": {"Start Timestamp(us)": …, "Elapse Time(ms)": …, …},
        "Communication Bandwidth Info": {"HCCS": {"Transit Size(MB)": …, "Size Distribution": {…}}, …}}}}}

PROF_* exports lack the step and the p2p/collective level. Totals are skipped. `SDMA` repeats what HCCS,
PCIE and SIO hold, so it is not read. "Idle" is spelled "Idel" in the documentation; both are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis import schema
from cluster_analysis.sources import names, numbers
from cluster_analysis.sources.communication_raw import TOTAL_PREFIX
from cluster_analysis.sources.errors import BadFileError, Remark
from cluster_analysis.sources.json_text import decode, read_bytes

TRANSPORTS = ("HCCS", "RDMA", "PCIE", "SIO")


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
    time: _Time = msgspec.field(name="Communication Time Info")
    bandwidth: _Bandwidth = msgspec.field(name="Communication Bandwidth Info", default=_Bandwidth())


class _Level(msgspec.Struct, gc=False, frozen=True):
    p2p: dict[str, _Op] = {}
    collective: dict[str, _Op] = {}


_STEPS: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LEVELS: msgspec.json.Decoder[_Level] = msgspec.json.Decoder(_Level)
_FLAT: msgspec.json.Decoder[dict[str, _Op]] = msgspec.json.Decoder(dict[str, _Op])


def read_communication(
    path: Path, rank: int, steps: frozenset[int] | None, remark: Remark
) -> tuple[pa.Table, pa.Table]:
    """Return the operators (COLLECTIVES) and the packets (PACKETS) of one file.

    Raises:
        BadFileError: nothing of the file can be used.
    """
    content = read_bytes(path)
    collectives: list[pa.Table] = []
    packets: list[pa.Table] = []
    for step, ops in _ops_by_step(content, remark):
        if steps is not None and step not in steps:
            continue
        table = _collectives(rank, step, ops, remark)
        bandwidths = [op.bandwidth for _, level in ops for op in level.values()]
        collectives.append(table)
        packets.append(_packets(rank, step, table["group"], bandwidths))
    if not collectives:
        return schema.empty(schema.COLLECTIVES), schema.empty(schema.PACKETS)
    return _joined(collectives), _joined(packets)


_LeveledOps = list[tuple[bool, dict[str, _Op]]]


def _ops_by_step(content: bytes, remark: Remark) -> Iterator[tuple[int, _LeveledOps]]:
    """Yield each step with its operators, one step decoded at a time: `(is_p2p, operators)` a level."""
    document = decode(content, _STEPS)
    if any("@" in key or key.startswith(TOTAL_PREFIX) for key in document):
        yield 0, [(False, _without_totals(decode(content, _FLAT)))]
        return
    if document and document.keys() <= {"p2p", "collective"}:
        yield 0, _leveled(decode(content, _LEVELS))
        return
    for key, raw in document.items():
        step = numbers.parse_step(key)
        if step is None:
            remark(f"{key!r} is not a step, and was passed over")
            continue
        try:
            yield step, _leveled(decode(bytes(raw), _LEVELS))
        except BadFileError as error:
            raise BadFileError(f"{error.message}, in {key!r} at byte {content.find(bytes(raw))}") from error


def _leveled(level: _Level) -> _LeveledOps:
    return [(True, _without_totals(level.p2p)), (False, _without_totals(level.collective))]


def _without_totals(ops: dict[str, _Op]) -> dict[str, _Op]:
    return {key: op for key, op in ops.items() if not key.startswith(TOTAL_PREFIX)}


def _collectives(rank: int, step: int, leveled: _LeveledOps, remark: Remark) -> pa.Table:
    keys = pa.array(list(chain.from_iterable(ops for _, ops in leveled)), pa.string())
    ops = list(chain.from_iterable(ops.values() for _, ops in leveled))
    filed_p2p = pa.array(np.repeat([is_p2p for is_p2p, _ in leveled], [len(ops) for _, ops in leveled]))
    times = [op.time for op in ops]
    op_names, groups = names.split_keys(keys)
    op_types = names.operations(op_names)
    starts, n_bad = numbers.to_ns(pa.array([bytes(time.start).strip(b'"') for time in times], pa.binary()))
    if n_bad:
        remark(f"{n_bad} of {len(ops)} start time stamps of step {step} are no numbers, and were left out")
    idles = [time.idle if time.idle is not None else time.idel for time in times]
    columns: dict[str, pa.Array] = {
        "rank": numbers.constant(rank, len(ops), pa.int32()),
        "step": numbers.constant(step, len(ops), pa.int64()),
        "group": groups,
        "op_name": op_names,
        "op_type": op_types,
        "op_index": names.indices_in_group(op_names),
        "is_p2p": pc.or_(filed_p2p, names.point_to_point(op_types)),
        "start_ns": starts,
        "elapse_us": _scaled([time.elapse for time in times], numbers.US_PER_MS),
        "transit_us": _scaled([time.transit for time in times], numbers.US_PER_MS),
        "wait_us": _scaled([time.wait for time in times], numbers.US_PER_MS),
        "synchronization_us": _scaled([time.synchronization for time in times], numbers.US_PER_MS),
        "idle_us": _scaled(idles, numbers.US_PER_MS),
    }
    for name in TRANSPORTS:
        used = [getattr(op.bandwidth, name.lower()) for op in ops]
        columns[f"{name.lower()}_bytes"] = _scaled([one.size for one in used], numbers.BYTES_PER_MB)
        columns[f"{name.lower()}_us"] = _scaled([one.time for one in used], numbers.US_PER_MS)
    return pa.table(columns, schema=schema.COLLECTIVES)


def _scaled(values: list[float | None], factor: float) -> pa.Array:
    """Return values times factor; what is missing or not finite is null."""
    array = pa.array(values, pa.float64())
    return pc.multiply(array, factor)


def _packets(rank: int, step: int, groups: pa.Array, bandwidths: list[_Bandwidth]) -> pa.Table:
    sums: dict[tuple[str, str, float], list[float]] = {}
    names_of_groups = groups.to_pylist()
    for name in TRANSPORTS:
        attribute = name.lower()
        for group, bandwidth in zip(names_of_groups, bandwidths, strict=True):
            for size, (count, total_ms) in getattr(bandwidth, attribute).packets.items():
                entry = sums.setdefault((group, name, float(size)), [0.0, 0.0])
                entry[0] += count
                entry[1] += total_ms
    return packet_table(rank, step, sums)


def packet_table(rank: int, step: int, sums: Mapping[tuple[str, str, float], list[float]]) -> pa.Table:
    """Return PACKETS of `{(group, transport, size in MB): [count, total ms]}`, in that order."""
    ordered = sorted(sums)
    columns = {
        "rank": numbers.constant(rank, len(ordered), pa.int32()),
        "step": numbers.constant(step, len(ordered), pa.int64()),
        "group": numbers.encoded([group for group, _, _ in ordered]),
        "transport": numbers.encoded([name for _, name, _ in ordered]),
        "packet_bytes": pa.array([size * numbers.BYTES_PER_MB for _, _, size in ordered], pa.float64()),
        "n_packets": pa.array([int(sums[key][0]) for key in ordered], pa.int64()),
        "total_us": pa.array([sums[key][1] * numbers.US_PER_MS for key in ordered], pa.float64()),
    }
    return pa.table(columns, schema=schema.PACKETS)


def _joined(tables: list[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables).unify_dictionaries().combine_chunks()
