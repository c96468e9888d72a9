"""communication.json → columns: one row an operator, one a step, group, transport and packet size.

This is the reference reader: hosts run it, and so does the analysis, where there is no compiled reader or a
file is not of the plain form. Those columns that a host sends lack some: of an operator's times only the
elapsed one comes, and the sums of the others by step and group, because columns of all would be mostly noise.
Places of operators in the text are only of use beside the text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any

from cluster_reduce.form import OF_HOST, SUMMED, TRANSPORTS, UnfitError, Writer
from cluster_reduce.json_walk import Walk
from cluster_reduce.levels import Level, Levels, no_more_than_usual

#: Column of each time.
TIMES = {
    "elapse": ("Elapse Time(ms)",),
    "transit": ("Transit Time(ms)",),
    "wait": ("Wait Time(ms)",),
    "synchronization": ("Synchronization Time(ms)",),
    "idle": ("Idle Time(ms)", "Idel Time(ms)"),
}
#: A time, and its parts: profilers take the idle one from the others.
_PARTS = ("elapse", "transit", "wait", "idle")
#: Value of an unknown start.
NO_START = -1
_START, _SIZE, _TIME, _PACKETS = (
    "Start Timestamp(us)",
    "Transit Size(MB)",
    "Transit Time(ms)",
    "Size Distribution",
)
#: The digits of a start as the text has them: no float64 holds all of them.
_DIGITS = re.compile(r'"Start Timestamp\(us\)"\s*:\s*([0-9]+)(?:\.([0-9]*))?(?![0-9.eE])')
_MAX_NS = 9199999999999999999
_NS_PER_US = 1000
_N_DECIMALS = 3
_US_PER_MS = 1000.0
#: A spreadsheet may keep six digits.
_ROUNDED = 1e-3
_PACKET_SIZE = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?\s*")
_NUMBERS = {int, float, type(None)}
_PAIRS = [[int, float], [int, int], [float, float], [float, int]]


def reduce_communication(content: bytes) -> bytes:
    """Return the columns that a host sends.

    Raises:
        UnfitError: there is something to report, so that the file travels as it is.
    """
    writer = Writer("communication", len(content))
    writer.take(operator_columns(content, no_more_than_usual, is_for_sending=True))
    return writer.content()


def operator_columns(
    content: bytes, tell: Callable[..., None], *, is_for_sending: bool = False
) -> Iterator[tuple[str, str, Sequence[Any]]]:
    """Give the columns of a file's operators, as `Writer.take` takes them.

    Args:
        content: the file.
        tell: takes facts about it where the rest counts: see `Levels`.
        is_for_sending: whether a host sends it.

    Raises:
        DamagedError: nothing of it can be used.
    """
    levels = Levels(content, tell)
    rows = _Rows(levels.walk)
    for level in levels:
        rows.add(level)
    rows.finish(tell)
    yield from rows.columns(is_for_sending=is_for_sending)


class _Rows:
    """The numbers of all operators, in lists, so that the decoded objects can go."""

    def __init__(self, walk: Walk) -> None:
        self._walk = walk
        #: Each level, how many operators of it have times, and how many it has.
        self._levels: list[tuple[Level, int, int]] = []
        self._keys: list[str] = []
        self._starts: list[int] = []
        self._times: dict[str, list[Any]] = {name: [] for name in TIMES}
        #: Entries that are not there: which of all operators and transports.
        self._absent: list[int] = []
        #: Entries that carried anything: which they are, size and time.
        self._entries: list[int] = []
        self._sizes: list[Any] = []
        self._carrying: list[Any] = []
        #: Operators whose links have no entry of their own.
        self._nameless: list[int] = []
        #: Operator, transport, packet size, how many and their time.
        self._packets: list[tuple[int, str, str, list[Any]]] = []
        self._sums: list[tuple[tuple[int, str, str, float], float, float]] = []
        #: Keys of all operators, and where they lie.
        self._places: list[tuple[str, int, int]] = []

    def add(self, level: Level) -> None:
        """Take the numbers of one level of one step; entries without times are left out, and told later."""
        n_before = len(self._keys)
        for key, (operator, begin, end) in level.operators.items():
            self._places.append((key, begin, end))
            times = operator.get("Communication Time Info")
            if times is None:
                continue
            _object(level, times)
            self._keys.append(key)
            self._starts.append(self._start_ns(times.get(_START), begin, end))
            for name, spellings in TIMES.items():
                given = times.get(spellings[0])
                self._times[name].append(times.get(spellings[-1]) if given is None else given)
            self._add_carried(level, _object(level, operator.get("Communication Bandwidth Info")))
        empty = level._replace(operators={})
        self._levels.append((empty, len(self._keys) - n_before, len(level.operators)))

    def _add_carried(self, level: Level, bandwidth: dict[str, Any]) -> None:
        """Take what an operator carried.

        Where no link of a host has an entry that we know, that of another name (SDMA, which is a sum
        otherwise, or a newer link) takes the place of HCCS, as on older machines. It equals the payload,
        which identifies it.
        """
        row = len(self._keys) - 1
        nameless = _nameless(level, bandwidth)
        if nameless:
            bandwidth["HCCS"] = bandwidth[nameless]
            self._nameless.append(row)
        for place, name in enumerate(TRANSPORTS, row * len(TRANSPORTS)):
            entry = bandwidth.get(name)
            if entry is None:
                self._absent.append(place)
                continue
            entry = _object(level, entry)
            size, time, packets = entry.get(_SIZE), entry.get(_TIME), entry.get(_PACKETS)
            if not packets and size == time == 0:
                continue
            if not packets and size is time is None:
                self._absent.append(place)
                continue
            for packet_size, figures in _object(level, packets).items():
                self._packets.append((row, name, packet_size, figures))
            self._entries.append(place)
            self._sizes.append(size)
            self._carrying.append(time)

    def _start_ns(self, given: object, begin: int, end: int) -> int:
        """Return a start with every digit of the text, cut to ns."""
        if type(given) not in (int, float):
            return NO_START
        match = _DIGITS.search(self._walk.text, begin, end)
        if match is not None and float(f"{match.group(1)}.{match.group(2) or 0}") == given:
            decimals = (match.group(2) or "")[:_N_DECIMALS].ljust(_N_DECIMALS, "0")
            found = int(match.group(1)) * _NS_PER_US + int(decimals)
        else:
            number = Decimal(repr(given))
            found = int(number * _NS_PER_US) if number.is_finite() else NO_START
        return found if 0 <= found <= _MAX_NS else NO_START

    def finish(self, tell: Callable[..., None]) -> None:
        """Turn the collected values into numbers, and sum the packets.

        Raises:
            DamagedError: something in the place of a number is none.
        """
        rows = range(len(self._keys))
        n_timeless = len(self._places) - len(rows)
        # Where no operator has times, the step times tell how long they communicated.
        if n_timeless and rows:
            tell(("left_out", {"n_parts": n_timeless, "part": "operator", "reason": "no_time"}))
        self._times = {
            name: self._floats(TIMES[name][0], values, rows) for name, values in self._times.items()
        }
        rows_of_entries = [entry // len(TRANSPORTS) for entry in self._entries]
        self._sizes = self._floats(_SIZE, self._sizes, rows_of_entries)
        self._carrying = self._floats(_TIME, self._carrying, rows_of_entries)
        self._sums = self._packet_sums(tell)

    def _floats(self, name: str, values: Sequence[Any], rows: Sequence[int]) -> list[Any]:
        """Return numbers as float64, None for a missing one."""
        kinds = set(map(type, values))
        if kinds <= {float}:
            return list(values)
        if not kinds <= _NUMBERS:
            at = next(at for at, value in enumerate(values) if type(value) not in _NUMBERS)
            raise self._wrong(rows[at], f"{name}: {type(values[at]).__name__} in place of a number")
        try:
            return [value if value is None else float(value) for value in values]
        except OverflowError:
            at = next(at for at, value in enumerate(values) if type(value) is int and not _fits(value))
            raise self._wrong(rows[at], f"{name}: a number beyond float64") from None

    def _wrong(self, row: int, detail: str) -> UnfitError:
        levels = [level for level, n_rows, _ in self._levels for _ in range(n_rows)]
        return levels[row].wrong(f"{detail}, in {self._keys[row]!r}")

    def _packet_sums(
        self, tell: Callable[..., None]
    ) -> list[tuple[tuple[int, str, str, float], float, float]]:
        """Return the sums of each step, group, transport and size, in this order: exact ones."""
        steps, groups = self._steps(), self._groups()
        found: dict[tuple[int, str, str, float], tuple[list[float], list[float]]] = {}
        n_bad = 0
        for row, transport, packet_size, figures in self._packets:
            if type(figures) is not list or list(map(type, figures)) not in _PAIRS:
                raise self._wrong(row, "packets that are not their number and time")
            size = _packet_size(packet_size)
            if size == math.inf:
                n_bad += 1
                continue
            sums = found.get((steps[row], groups[row], transport, size))
            if sums is None:
                sums = found[steps[row], groups[row], transport, size] = ([], [])
            sums[0].append(figures[0])
            sums[1].append(figures[1])
        if n_bad:
            tell(("left_out", {"n_parts": n_bad, "part": "packet_size", "reason": "no_number"}))
        try:
            return [
                (key, round(math.fsum(counts)), math.fsum(times))
                for key, (counts, times) in sorted(found.items())
            ]
        except (OverflowError, ValueError):
            raise self._wrong(0, "packets beyond float64") from None

    def _steps(self) -> list[int]:
        return [level.step for level, n_rows, _ in self._levels for _ in range(n_rows)]

    def _groups(self) -> list[str]:
        return [group if mark else "" for _, mark, group in (key.rpartition("@") for key in self._keys)]

    def columns(self, *, is_for_sending: bool) -> Iterator[tuple[str, str, Sequence[Any]]]:
        """Give the columns."""
        groups = self._groups()
        yield "ints", "step", [level.step for level, _, _ in self._levels]
        yield "ints", "is_p2p", [int(level.is_p2p) for level, _, _ in self._levels]
        yield "ints", "n_operators", [n_rows for _, n_rows, _ in self._levels]
        split = [key.rpartition("@") for key in self._keys]
        yield "names", "name", [name if mark else key for key, (name, mark, _) in zip(self._keys, split)]
        yield "texts", "group", groups
        yield "ints", "start_ns", self._starts
        yield "floats", "elapse", self._times["elapse"]
        yield "ints", "absent", self._absent
        yield "ints", "entry", self._entries
        yield "floats", "size_mb", self._sizes
        yield "floats", "time_ms", self._carrying
        if self._nameless:
            yield "ints", "nameless", self._nameless
        yield "ints", "packet.step", [step for (step, _, _, _), _, _ in self._sums]
        yield "texts", "packet.group", [group for (_, group, _, _), _, _ in self._sums]
        yield "texts", "packet.transport", [transport for (_, _, transport, _), _, _ in self._sums]
        yield "floats", "packet.size_mb", [size for (_, _, _, size), _, _ in self._sums]
        yield "ints", "packet.count", [int(count) for _, count, _ in self._sums]
        yield "floats", "packet.time_ms", [time for _, _, time in self._sums]
        if is_for_sending:
            if any(time is not None and time < 0 for name in SUMMED for time in self._times[name]):
                raise UnfitError("times below 0")
            n_odd = sum(map(_is_other_than_its_parts, *(self._times[name] for name in _PARTS)))
            # Where most are so, the parts mean something else, and the analysis reports nothing either.
            if 0 < n_odd <= len(self._keys) / 2:
                raise UnfitError("times that are not their parts together")
            steps = self._steps()
            for name in SUMMED:
                yield "floats", f"sum.{name}", _sums_us(steps, groups, self._times[name])
            return
        for name in SUMMED:
            yield "floats", name, self._times[name]
        yield "ints", "n_places", [n_all for _, _, n_all in self._levels]
        yield "texts", "key", [key for key, _, _ in self._places]
        ends = self._walk.bytes_at([place for _, begin, end in self._places for place in (begin, end)])
        yield "ints", "begin", ends[::2]
        yield "ints", "end", ends[1::2]


def _is_other_than_its_parts(elapse: float | None, *parts: float | None) -> bool:
    """Return whether an operator took another time than its parts together, which the analysis reports."""
    known = [one for one in parts if one is not None]
    if elapse is None or len(known) < len(parts):
        return False
    return abs(sum(known) - elapse) * _US_PER_MS > max(_ROUNDED * abs(elapse) * _US_PER_MS, 1.0)


def _object(level: Level, given: object) -> dict[str, Any]:
    """Return an object; an empty one for what is missing."""
    if given is None:
        return {}
    if type(given) is not dict:
        raise level.wrong(f"{type(given).__name__} in place of an object")
    return given


def _nameless(level: Level, bandwidth: dict[str, Any]) -> str | None:
    """Return the entry that carried most of those that have no column; None where it is a sum of others."""
    if any(_object(level, bandwidth.get(one)).get(_SIZE) != 0 for one in OF_HOST):
        return None
    sizes = {
        name: entry[_SIZE]
        for name, entry in bandwidth.items()
        if name not in TRANSPORTS
        and type(entry) is dict
        and type(entry.get(_SIZE)) in (int, float)
        and type(entry.get(_TIME)) in _NUMBERS
    }
    most = max(sizes, key=sizes.__getitem__, default=None)
    return most if most is not None and sizes[most] > 0 else None


@lru_cache(maxsize=1 << 16)
def _packet_size(text: str) -> float:
    """Return a size as the file has it, infinite for what is no number."""
    return float(text) if _PACKET_SIZE.fullmatch(text) else math.inf


def _fits(value: int) -> bool:
    try:
        float(value)
    except OverflowError:
        return False
    return True


def _sums_us(
    steps: Sequence[int], groups: Sequence[str], times_ms: Sequence[float | None]
) -> list[float | None]:
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
