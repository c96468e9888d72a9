"""communication.json → columns: one row an operator, one a packet size."""

from __future__ import annotations

import re
from array import array
from typing import Any

from cluster_reduce.form import UnfitError, Writer
from cluster_reduce.levels import levels
from cluster_reduce.strict_json import Number, float_of, number_of, object_of

#: In the order of the analysis.
TRANSPORTS = ("HCCS", "RDMA", "PCIE", "SIO")
#: Column of each time.
TIMES = {
    "elapse": ("Elapse Time(ms)",),
    "transit": ("Transit Time(ms)",),
    "wait": ("Wait Time(ms)",),
    "synchronization": ("Synchronization Time(ms)",),
    "idle": ("Idle Time(ms)", "Idel Time(ms)"),
}
_START = "Start Timestamp(us)"
#: µs with at most three decimals, so ns are whole.
_STAMP = re.compile(r"([0-9]{1,16})(?:\.([0-9]{1,3}))?")
_MAX_NS = 9100000000000000000
#: What the time of an entry often is.
_CARRYING = [("elapse",), ("transit", "idle"), ("transit",)]
#: What stands for a start that is not told.
NO_START = -1


class _Rows:
    def __init__(self) -> None:
        self.keys: list[str] = []
        self.starts: list[int] = []
        self.times: dict[str, list[float | None]] = {name: [] for name in TIMES}
        # Entries that are not there: which of all operators and transports.
        self.absent: list[int] = []
        # Entries that carried anything: which they are, size and time.
        self.entries: list[int] = []
        self.sizes: list[float | None] = []
        self.carrying: list[float | None] = []
        # Packet sizes: which of those entries.
        self.packet_entries: list[int] = []
        self.packet_sizes: list[str] = []
        self.packet_counts: list[float] = []
        self.packet_times: list[float] = []

    def add(self, key: str, times: dict[str, Any], bandwidth: dict[str, Any]) -> None:
        for at, transport in enumerate(TRANSPORTS):
            entry = object_of(bandwidth[transport]) if transport in bandwidth else {}
            self._carry(len(self.keys) * len(TRANSPORTS) + at, entry)
        self.keys.append(key)
        self.starts.append(_start_ns(times[_START]) if _START in times else NO_START)
        for name, spellings in TIMES.items():
            given = [float_of(times[spelling]) for spelling in spellings if spelling in times]
            self.times[name].append(next((one for one in given if one is not None), None))

    def _carry(self, place: int, entry: dict[str, Any]) -> None:
        size = float_of(entry.get("Transit Size(MB)"))
        time = float_of(entry.get("Transit Time(ms)"))
        packets = object_of(entry.get("Size Distribution", {}))
        if size == time == 0 and not packets:
            return
        if size is time is None and not packets:
            self.absent.append(place)
            return
        for packet_size, figures in packets.items():
            if type(figures) is not list or len(figures) != 2:
                raise UnfitError("no pair of figures")
            self.packet_entries.append(len(self.entries))
            self.packet_sizes.append(packet_size)
            self.packet_counts.append(number_of(figures[0]))
            self.packet_times.append(number_of(figures[1]))
        self.entries.append(place)
        self.sizes.append(size)
        self.carrying.append(time)


def reduce_communication(content: bytes) -> bytes:
    """Return the columns.

    Raises:
        UnfitError: anything in the file is not as usual.
    """
    rows = _Rows()
    steps: list[int] = []
    counts: list[int] = []
    are_p2p: list[int] = []
    for step, is_p2p, operators in levels(content):
        n_before = len(rows.keys)
        for key, operator in operators.items():
            times = operator.get("Communication Time Info")
            bandwidth = object_of(operator.get("Communication Bandwidth Info", {}))
            if times is not None:
                rows.add(key, object_of(times), bandwidth)
        steps.append(step)
        are_p2p.append(int(is_p2p))
        counts.append(len(rows.keys) - n_before)
    writer = Writer("communication", len(content))
    writer.ints("step", steps)
    writer.ints("is_p2p", are_p2p)
    writer.ints("n_operators", counts)
    split = [key.rpartition("@") for key in rows.keys]
    writer.names("name", [name if mark else key for key, (name, mark, _) in zip(rows.keys, split)])
    writer.texts("group", [group if mark else "" for _, mark, group in split])
    writer.stamps("start_ns", rows.starts)
    _write_times(writer, rows.times)
    writer.ints("absent", rows.absent)
    writer.ints("entry", rows.entries)
    writer.ints("entry.operator", [place // len(TRANSPORTS) for place in rows.entries])
    writer.floats("size_mb", rows.sizes)
    writer.floats("time_ms", rows.carrying, _CARRYING, "entry.operator")
    writer.ints("packet.entry", rows.packet_entries)
    writer.texts("packet.size_mb", rows.packet_sizes)
    writer.floats("packet.count", rows.packet_counts)
    writer.floats("packet.time_ms", rows.packet_times, [("time_ms",)], "packet.entry")
    return writer.content()


def _write_times(writer: Writer, times: dict[str, list[float | None]]) -> None:
    """What is neither transit nor waiting is idle, and an operator that waits mostly synchronises."""
    writer.floats("transit", times["transit"])
    writer.floats("wait", times["wait"])
    synchronization = times["synchronization"]
    rows = [row for row, value in enumerate(synchronization) if value != 0]
    writer.ints("synchronization.rows", rows)
    given = [synchronization[row] for row in rows]
    writer.floats("synchronization", given, [("wait",)], "synchronization.rows")
    if _is_difference(times["idle"], times["elapse"], times["transit"], times["wait"]):
        writer.floats("elapse", times["elapse"], [("transit", "wait")])
        writer.difference("idle", len(times["idle"]), ("elapse", "transit", "wait"))
    else:
        writer.floats("idle", times["idle"])
        writer.floats("elapse", times["elapse"], [("transit", "wait", "idle")])


def _is_difference(values: list[float | None], *parts: list[float | None]) -> bool:
    """Whether values are the first parts less the others, to the last bit: so their writer made them."""
    given = [[value for value in column if value is not None] for column in (values, *parts)]
    if any(len(column) < len(values) for column in given):
        return False
    made = [total - one - other for total, one, other in zip(*given[1:])]
    return array("d", made).tobytes() == array("d", given[0]).tobytes()


def _start_ns(value: object) -> int:
    match = _STAMP.fullmatch(value) if type(value) is Number else None
    if match is None:
        raise UnfitError("an unusual time stamp")
    found = int(match.group(1)) * 1000 + int((match.group(2) or "").ljust(3, "0"))
    if found > _MAX_NS:
        raise UnfitError("a time stamp that is too large")
    return found
