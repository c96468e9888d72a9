"""msprof_*.json of CANN: a timeline, whose "Overlap Analysis" process holds the step times of the capture.

The export has no steps, so the whole capture is step 0. Times are µs; time stamps may be text.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow as pa

from cluster_analysis import schema
from cluster_analysis.sources.errors import Remark, left_out
from cluster_analysis.sources.json_text import decode, read_bytes

_PROCESS = "Overlap Analysis"
_COLUMNS = {
    "Computing": "computing_us",
    "Communication": "communication_us",
    "Communication(Not Overlapped)": "communication_not_overlapped_us",
    "Free": "free_us",
}


class _Arguments(msgspec.Struct, gc=False):
    name: object = None


class _Event(msgspec.Struct, gc=False):
    name: str = ""
    phase: str = msgspec.field(name="ph", default="")
    pid: int | str | None = None
    begin: float | str | None = msgspec.field(name="ts", default=None)
    length: float | str | None = msgspec.field(name="dur", default=None)
    arguments: _Arguments | None = msgspec.field(name="args", default=None)


_EVENTS: msgspec.json.Decoder[list[_Event]] = msgspec.json.Decoder(list[_Event])


def read_timeline_steps(path: Path, rank: int, remark: Remark) -> pa.Table | None:
    """Return STEPS: one row for the capture; None where the timeline has no overlap analysis.

    Raises:
        BadFileError: it is not such a file.
    """
    events = decode(read_bytes(path), _EVENTS)
    processes = {
        event.pid
        for event in events
        if event.phase == "M" and event.name == "process_name" and _said_name(event) == _PROCESS
    }
    sums = dict.fromkeys(_COLUMNS.values(), 0.0)
    begins: list[float] = []
    ends: list[float] = []
    n_bad = 0
    for event in events:
        if event.pid not in processes or event.phase != "X" or event.name not in _COLUMNS:
            continue
        begin, length = _number(event.begin), _number(event.length)
        if begin is None or length is None:
            n_bad += 1
            continue
        sums[_COLUMNS[event.name]] += length
        begins.append(begin)
        ends.append(begin + length)
    if n_bad:
        remark(left_out(n_bad, "event", "without a time"))
    if not begins:
        return None
    row = {
        **dict.fromkeys(schema.STEPS.names),
        **sums,
        "rank": rank,
        "step": 0,
        "overlapped_us": sums["communication_us"] - sums["communication_not_overlapped_us"],
        "stage_us": max(ends) - min(begins),
    }
    return pa.Table.from_pylist([row], schema=schema.STEPS)


def _said_name(event: _Event) -> object:
    return event.arguments.name if event.arguments else None


def _number(value: float | str | None) -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        return None
