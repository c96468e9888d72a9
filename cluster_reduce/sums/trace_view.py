"""trace_view.json → figures of the host's work: a file of any size, event by event.

It never travels as it is. Columns of an unreadable file hold the reason.
"""

from __future__ import annotations

import codecs
import json
import os
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, BinaryIO

from cluster_reduce.form import UnfitError, Writer
from cluster_reduce.sums.host_times import HostTimes

KIND = "timeline"
_BLOCK_BYTES = 1 << 20
#: An event has some hundred bytes, with call stacks some ten thousand.
_MOST_EVENT_LETTERS = 16 << 20
_BEGIN = re.compile(r"[ \t\r\n]*\[[ \t\r\n]*")
_BETWEEN = re.compile(r"[ \t\r\n]*,[ \t\r\n]*(?=\{)")
_END = re.compile(r"[ \t\r\n]*\][ \t\r\n]*")
#: Tasks that compute; the others are events and waits between streams.
KERNEL_TASKS = frozenset(["AI_CORE", "AI_VECTOR_CORE", "AI_CPU", "MIX_AIC", "MIX_AIV"])
_BUSY = frozenset(["Computing", "Communication"])
_SYNCHRONISE, _COPY = "AscendCL@aclrtSynchronize", "MEMCPY"
#: Meaning of a call of PyTorch, by the begin of its name.
_CALLS = (("ProfilerStep#", "step"), ("aten::copy_", "copy"), ("enumerate(DataLoader)", "loader"))
_MOST_NS, _MOST_INT = 1 << 62, 1 << 63
_NONE = type(None)


def reduce_trace_view(path: bytes) -> bytes:
    """Return the columns of the file at `path`.

    Raises:
        UnfitError: it is damaged, or no list of events.
    """
    times = HostTimes()
    n_bad = 0
    with open(path, "rb") as stream:
        for event in _events(stream):
            n_bad += not _take(event, times)
    return _written(os.stat(path).st_size, times, n_bad, "")


def unread(size_bytes: int, why: str) -> bytes:
    """Return the columns of a file that could not be read, and why."""
    return _written(size_bytes, HostTimes(), 0, why)


def _written(size_bytes: int, times: HostTimes, n_bad: int, why: str) -> bytes:
    figures = times.figures()
    writer = Writer(KIND, size_bytes)
    writer.texts("why", [why])
    writer.ints("n_bad", [n_bad])
    writer.texts("metric", [metric for metric, _, _ in figures])
    writer.texts("label", [label for _, label, _ in figures])
    writer.floats("value", [value for _, _, value in figures])
    return writer.content()


def _events(stream: BinaryIO) -> Iterator[dict[str, Any]]:
    """Yield the events of a list. No more of the file is held than a block and one event."""
    scan = json.JSONDecoder(parse_constant=lambda _: None).raw_decode
    letters = codecs.getincrementaldecoder("utf-8-sig")()
    text, before, is_last = "", _BEGIN, False
    try:
        while not is_last:
            block = stream.read(_BLOCK_BYTES)
            is_last = not block
            text += letters.decode(block, is_last)
            at = 0
            while True:
                found = before.match(text, at)
                # An object ends where it ends: whatever comes behind it, it is not cut.
                if found is None or not text.startswith("{", found.end()):
                    break
                try:
                    event, end = scan(text, found.end())
                except ValueError:
                    break
                yield event
                at, before = end, _BETWEEN
            text = text[at:]
            if len(text) > _MOST_EVENT_LETTERS:
                raise UnfitError("damaged, or no list of events")
    except (UnicodeDecodeError, RecursionError):
        raise UnfitError("damaged, or no list of events") from None
    begun = None if before is _BETWEEN else before.match(text)
    if not _END.fullmatch(text, begun.end() if begun else 0) or (before is _BEGIN and begun is None):
        raise UnfitError("cut off, or damaged")


def _take(event: dict[str, Any], times: HostTimes) -> bool:
    """Take an event up; whether that could be done."""
    name, phase, category = event.get("name", ""), event.get("ph", ""), event.get("cat", "")
    said = event.get("args", {})
    if not (type(name) is type(phase) is type(category) is str and type(said) is dict):
        raise UnfitError("an event of another form")
    task, level = said.get("Task Type"), said.get("level")
    begin, length = event.get("ts"), event.get("dur")
    if {type(task), type(level)} - {str, _NONE} or {type(begin), type(length)} - {str, int, float, _NONE}:
        raise UnfitError("an event of another form")
    if phase != "X":
        return True
    kind = kind_of(name, category, task, level)
    return add(times, kind, begin, length, said.get("connection_id"))


def kind_of(name: str, category: str, task: str | None, level: str | None) -> str:
    """Return what an event is of, "" for one that is not read.

    Args:
        name: of the event.
        category: its `cat`.
        task: its `Task Type`.
        level: its `level`.
    """
    if level is not None:
        return "synchronise" if name.startswith(_SYNCHRONISE) else "call"
    if task is not None:
        return "device_copy" if name.startswith(_COPY) else "kernel" if task in KERNEL_TASKS else ""
    if category == "cpu_op":
        return next((kind for start, kind in _CALLS if name.startswith(start)), "")
    if category:
        return "collect" if category == "GC" else ""
    return "busy" if name in _BUSY else ""


def add(times: HostTimes, kind: str, begin_us: Any, length_us: Any, connection: Any) -> bool:
    """Take an event of a kind up; whether that could be done."""
    if not kind:
        return True
    begin, length = nanoseconds(begin_us), nanoseconds(length_us)
    if begin is None or length is None:
        return False
    end = begin + length
    if kind == "step":
        if end > begin:
            times.steps.append((begin, end))
    elif kind == "loader":
        times.has_loader = True
        times.loading_ns += max(0, end - begin)
    elif kind in ("call", "synchronise"):
        times.dispatching.add(begin, end)
        if kind == "synchronise":
            times.synchronising.add(begin, end)
    elif kind != "kernel":
        spans = {"busy": times.busy, "copy": times.copies, "device_copy": times.device_copies}
        spans.get(kind, times.collecting).add(begin, end)
    # The number that connects calls and kernels.
    is_one = isinstance(connection, int) and abs(connection) < _MOST_INT
    if is_one and kind in ("kernel", "call", "synchronise"):
        (times.starts if kind == "kernel" else times.launches).extend((connection, begin))
    return True


def nanoseconds(time_us: Any) -> int | None:
    """Return a time in ns, exactly; None for what is no time."""
    try:
        if type(time_us) is int:
            time_us = float(time_us)
        scaled = Decimal(time_us or 0).scaleb(3)
        return int(scaled) if time_us is not None and abs(scaled) < _MOST_NS else None
    except (ArithmeticError, ValueError):
        return None
