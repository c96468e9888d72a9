"""communication.json → columns: one row an operator, one a step, group, transport and packet size.

Of an operator's times only the elapsed one comes: no verdict looks at the others, and noise is what columns
consist of. Their sums over a step and group do come, as the analysis would make them.
"""

from __future__ import annotations

import math
import re
from typing import Any

from cluster_reduce.form import TRANSPORTS, UnfitError, Writer
from cluster_reduce.levels import levels
from cluster_reduce.strict_json import Number, float_of, number_of, object_of

#: In the order of the analysis.
#: Column of each time.
TIMES = {
    "elapse": ("Elapse Time(ms)",),
    "transit": ("Transit Time(ms)",),
    "wait": ("Wait Time(ms)",),
    "synchronization": ("Synchronization Time(ms)",),
    "idle": ("Idle Time(ms)", "Idel Time(ms)"),
}
#: Those of which only sums come.
SUMMED = ("transit", "wait", "synchronization", "idle")
#: Whose sum is SDMA, where they have entries of their own.
_PARTS = ("HCCS", "PCIE", "SIO")
_START = "Start Timestamp(us)"
#: µs with at most three decimals, so ns are whole.
_STAMP = re.compile(r"([0-9]{1,16})(?:\.([0-9]{1,3}))?")
_MAX_NS = 9100000000000000000
_US_PER_MS = 1000.0
_SIZE = re.compile(r"[0-9]{1,15}(\.[0-9]{1,30})?(e[-+]?[0-9]{1,2})?")
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
        # By operator, transport and packet size: how many, and their time.
        self.packets: list[tuple[int, str, float, float, float]] = []

    def add(self, key: str, times: dict[str, Any], bandwidth: dict[str, Any]) -> None:
        if _is_under_sdma_alone(bandwidth):
            raise UnfitError("links that have no entry of their own")
        for at, transport in enumerate(TRANSPORTS):
            entry = object_of(bandwidth[transport]) if transport in bandwidth else {}
            self._carry(len(self.keys), at, entry)
        self.keys.append(key)
        self.starts.append(_start_ns(times[_START]) if _START in times else NO_START)
        for name, spellings in TIMES.items():
            given = [float_of(times[spelling]) for spelling in spellings if spelling in times]
            self.times[name].append(next((one for one in given if one is not None), None))

    def _carry(self, row: int, transport: int, entry: dict[str, Any]) -> None:
        size = float_of(entry.get("Transit Size(MB)"))
        time = float_of(entry.get("Transit Time(ms)"))
        packets = object_of(entry.get("Size Distribution", {}))
        if size == time == 0 and not packets:
            return
        place = row * len(TRANSPORTS) + transport
        if size is time is None and not packets:
            self.absent.append(place)
            return
        for packet_size, figures in packets.items():
            if type(figures) is not list or len(figures) != 2 or not _SIZE.fullmatch(packet_size):
                raise UnfitError("packets of an unusual form")
            count, time_ms = map(number_of, figures)
            self.packets.append((row, TRANSPORTS[transport], float(packet_size), count, time_ms))
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
    groups = [group if mark else "" for _, mark, group in split]
    writer.names("name", [name if mark else key for key, (name, mark, _) in zip(rows.keys, split)])
    writer.texts("group", groups)
    writer.stamps("start_ns", rows.starts)
    writer.floats("elapse", rows.times["elapse"])
    writer.ints("absent", rows.absent)
    writer.ints("entry", rows.entries)
    writer.floats("size_mb", rows.sizes)
    writer.floats("time_ms", rows.carrying)
    steps_of_rows = [step for step, count in zip(steps, counts) for _ in range(count)]
    _write_packets(writer, rows.packets, steps_of_rows, groups)
    for name in SUMMED:
        writer.floats(f"sum.{name}", _sums_us(steps_of_rows, groups, rows.times[name]))
    return writer.content()


def _is_under_sdma_alone(bandwidth: dict[str, Any]) -> bool:
    """Whether what was carried stands under SDMA and under no part of it, as of UB and UBoE."""

    def size_of(name: str) -> float | None:
        return float_of(object_of(bandwidth.get(name, {})).get("Transit Size(MB)"))

    return (size_of("SDMA") or 0.0) > 0 and all(size_of(name) == 0 for name in _PARTS)


def _write_packets(
    writer: Writer, packets: list[tuple[int, str, float, float, float]], steps: list[int], groups: list[str]
) -> None:
    """Write the sums of each step, group, transport and size, in the order of the analysis: exact ones."""
    found: dict[tuple[int, str, str, float], tuple[list[float], list[float]]] = {}
    for row, transport, size, count, time in packets:
        counts, times = found.setdefault((steps[row], groups[row], transport, size), ([], []))
        counts.append(count)
        times.append(time)
    keys = sorted(found)
    try:
        sums = [tuple(map(math.fsum, found[key])) for key in keys]
    except OverflowError:
        raise UnfitError("packets of an unusual form") from None
    writer.ints("packet.step", [step for step, _, _, _ in keys])
    writer.texts("packet.group", [group for _, group, _, _ in keys])
    writer.texts("packet.transport", [transport for _, _, transport, _ in keys])
    writer.floats("packet.size_mb", [size for _, _, _, size in keys])
    writer.ints("packet.count", [round(count) for count, _ in sums])
    writer.floats("packet.time_ms", [time for _, time in sums])


def _sums_us(steps: list[int], groups: list[str], times_ms: list[float | None]) -> list[float | None]:
    """Return the sum of each step and group, in the order of their first rows; None where no row has a time.

    The order of a sum decides its last digit: it is that of the rows.
    """
    sums: dict[tuple[int, str], float | None] = {}
    for step, group, time_ms in zip(steps, groups, times_ms):
        before = sums.setdefault((step, group), None)
        time_us = math.inf if time_ms is None else time_ms * _US_PER_MS
        if time_us < math.inf:
            sums[step, group] = time_us if before is None else before + time_us
    return list(sums.values())


def _start_ns(value: object) -> int:
    match = _STAMP.fullmatch(value) if type(value) is Number else None
    if match is None:
        raise UnfitError("an unusual time stamp")
    found = int(match.group(1)) * 1000 + int((match.group(2) or "").ljust(3, "0"))
    if found > _MAX_NS:
        raise UnfitError("a time stamp that is too large")
    return found
