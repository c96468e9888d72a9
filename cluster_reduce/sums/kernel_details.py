"""kernel_details.csv → columns: kernels summed by name and shapes, and each row of communication.

Times are summed as whole picoseconds, as the analysis sums them: the order does not matter. Memory grows with
the kinds of kernels, not with the rows.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator
from typing import Any

from cluster_reduce.form import UnfitError, Writer

#: Columns of the file for each text that identifies a kernel.
COLUMNS_OF_KEYS = {
    "op_type": "Type",
    "core_type": "Accelerator Core",
    "name": "Name",
    "input_shapes": "Input Shapes",
    "output_shapes": "Output Shapes",
    "op_state": "OP State",
}
CORE = COLUMNS_OF_KEYS["core_type"]
#: Its other columns.
DURATION, WAIT, STEP, START = "Duration(us)", "Wait Time(us)", "Step Id", "Start Time(us)"
#: Without these the file is not read.
NEEDED = (COLUMNS_OF_KEYS["op_type"], CORE, COLUMNS_OF_KEYS["name"], DURATION, START)
#: Cores of the rows that are communication operators.
COMMUNICATION = ("HCCL", "COMMUNICATION")
#: Ends of the names of kernels that carry out such an operator, which has a row of its own.
CARRIERS = ("AivKernel", "AicpuKernel")
#: Value of a missing number.
_NONE = ("", "N/A", "NA", "null", "None")
_TIME = re.compile(r"[ \t]*[0-9]{1,9}(?:\.[0-9]{1,9})?[ \t]*")
_WAITED = re.compile(r"[ \t]*-?[0-9]{1,9}(?:\.[0-9]{1,9})?[ \t]*")
_STAMP = re.compile(r"[ \t]*([0-9]{1,16})(?:\.([0-9]{1,3}))?[ \t]*")
_MAX_NS = 9100000000000000000
_PS_PER_US = 1e6
#: Sums of all times stay below it.
_MOST_PS = 1 << 61
#: Value of an unknown start.
NO_START = -1


_OURS = {
    name.replace(" ", "").casefold(): name
    for name in (*COLUMNS_OF_KEYS.values(), DURATION, WAIT, STEP, START)
}


def as_we_spell(header: list[str]) -> list[str]:
    """Return names of columns, those that are read as we spell them: MindSpore's `Step ID` is `Step Id`."""
    return [_OURS.get(name.replace(" ", "").casefold(), name) for name in header]


class _Strict(csv.excel):
    strict = True


class _Kind:
    """Kernels of one kind: how many, ps in all, least and most, and of waiting, None where unknown."""

    __slots__ = ("least", "most", "n", "total", "wait")

    def __init__(self) -> None:
        self.n = self.total = self.most = 0
        self.least = _MOST_PS
        self.wait: int | None = None

    def add(self, length: int, wait: int | None) -> None:
        self.n += 1
        self.total += length
        self.least = min(self.least, length)
        self.most = max(self.most, length)
        if wait is not None:
            self.wait = wait + (self.wait or 0)


class _Calls:
    """The rows of communication."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.names: list[str] = []
        self.starts: list[int] = []
        self.lengths: list[float] = []


def reduce_kernel_details(path: bytes) -> bytes:
    """Return the columns of the file at `path`.

    Raises:
        UnfitError: anything in the file is not as usual.
    """
    try:
        with open(path, encoding="utf-8", newline="") as stream:
            kinds, calls = _summed(stream)
    except (UnicodeDecodeError, csv.Error):
        raise UnfitError("no CSV in UTF-8") from None
    if not _ends_in_a_line(path):
        raise UnfitError("a last line without its end")
    writer = Writer("kernels", os.stat(path).st_size)
    for at, key in enumerate(COLUMNS_OF_KEYS):
        add = writer.names if key == "name" else writer.texts
        add(key, [texts[at] for texts in kinds])
    found = list(kinds.values())
    writer.ints("n", [one.n for one in found])
    writer.ints("ps_min", [one.least for one in found])
    writer.ints("ps_max", [one.most for one in found])
    writer.ints("ps", [one.total for one in found])
    writer.ints("wait.rows", [row for row, one in enumerate(found) if one.wait is not None])
    writer.ints("wait_ps", [one.wait for one in found if one.wait is not None])
    writer.texts("call.step", calls.steps)
    writer.names("call.name", calls.names)
    writer.ints("call.start_ns", calls.starts)
    writer.floats("call.us", calls.lengths)
    return writer.content()


def _summed(stream: Any) -> tuple[dict[tuple[str, ...], _Kind], _Calls]:
    header = stream.readline()
    names = as_we_spell([name.strip() for name in header.split(",")])
    is_odd = '"' in header or "\ufeff" in header or len(set(names)) < len(names)
    if is_odd or not set(NEEDED) <= set(names):
        raise UnfitError("another header")
    places = [names.index(name) if name in names else len(names) for name in COLUMNS_OF_KEYS.values()]
    core, duration, start = map(names.index, (CORE, DURATION, START))
    wait = names.index(WAIT) if WAIT in names else len(names)
    step = names.index(STEP) if STEP in names else len(names)
    kinds: dict[tuple[str, ...], _Kind] = {}
    calls = _Calls()
    n_ps = 0
    for cells in _rows(stream, len(names)):
        time = cells[duration]
        if time in _NONE and cells[core] not in COMMUNICATION:
            continue
        if not _TIME.fullmatch(time):
            raise UnfitError("an unusual duration")
        length_us = float(time)
        if cells[core] in COMMUNICATION and cells[places[2]].endswith(CARRIERS):
            continue
        if cells[core] in COMMUNICATION:
            calls.steps.append("0" if step == len(names) else cells[step])
            calls.names.append(cells[places[2]])
            calls.starts.append(_start_ns(cells[start]))
            calls.lengths.append(length_us)
            continue
        texts = tuple([cells[place].replace('"', "") for place in places])
        kind = kinds.get(texts)
        if kind is None:
            kind = kinds[texts] = _Kind()
        length, waited = round(length_us * _PS_PER_US), _wait_ps(cells[wait])
        n_ps += length + abs(waited or 0)
        kind.add(length, waited)
    if n_ps > _MOST_PS:
        raise UnfitError("times of many days")
    return kinds, calls


def _rows(stream: Any, n_cells: int) -> Iterator[list[str]]:
    """Yield the cells of each line, and an empty one for columns that the file lacks."""
    reader = csv.reader(stream, dialect=_Strict)
    for n_lines, cells in enumerate(reader, start=1):
        # A text with line ends in it is not read by the analysis.
        if len(cells) != n_cells or reader.line_num != n_lines:
            raise UnfitError("a line of other cells")
        cells.append("")
        yield cells


def _wait_ps(cell: str) -> int | None:
    if cell in _NONE:
        return None
    if not _WAITED.fullmatch(cell):
        raise UnfitError("an unusual time of waiting")
    return round(float(cell) * _PS_PER_US)


def _start_ns(cell: str) -> int:
    if cell in _NONE:
        return NO_START
    match = _STAMP.fullmatch(cell)
    found = int(match.group(1)) * 1000 + int((match.group(2) or "").ljust(3, "0")) if match else _MAX_NS
    if found >= _MAX_NS:
        raise UnfitError("an unusual time stamp")
    return found


def _ends_in_a_line(path: bytes) -> bool:
    with open(path, "rb") as stream:
        stream.seek(-1, 2)
        return stream.read() == b"\n"
