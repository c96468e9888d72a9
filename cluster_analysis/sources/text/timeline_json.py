"""msprof_*.json of CANN: a timeline, whose "Overlap Analysis" process holds the step times of the capture.

The export has no steps, so the whole capture is step 0. Times are µs; time stamps may be text. A large
timeline is cut into slices, `msprof_slice_0_*.json` and so on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import pyarrow as pa

from cluster_analysis.sources.errors import BadFileError, Remark, tell_left_out
from cluster_analysis.sources.text.json_text import decode, read_bytes
from cluster_analysis.tables import schema
from cluster_run.facts import fact

#: Role of a timeline of a whole capture; its further slices are `prof_timeline/1` and so on.
TIMELINE = "prof_timeline"
_SLICE = re.compile(r"^msprof_slice_(\d{1,9})_")
#: Role of timelines by iteration: `iteration/msprof/2/7` is the seventh iteration of model 2.
ROLE = "iteration"
#: Kind, model and iteration.
NAME = re.compile(r"^(msprof|hccl|step_trace)_\d+_(\d+)_(\d+)\.json$")
_PROCESS = "Overlap Analysis"
COLUMNS = {
    "Computing": "computing_us",
    "Communication": "communication_us",
    "Communication(Not Overlapped)": "communication_not_overlapped_us",
    "Free": "free_us",
}


_Number = float | str | None


class Arguments(msgspec.Struct, gc=False):
    """Further values of an event, as far as they are read."""

    name: object = None
    task: object = msgspec.field(name="task type", default=None)
    kernel_task: object = msgspec.field(name="Task Type", default=None)
    source: object = msgspec.field(name="src rank", default=None)
    destination: object = msgspec.field(name="dst rank", default=None)
    transport: object = msgspec.field(name="transport type", default=None)
    link: object = msgspec.field(name="link type", default=None)
    size: object = msgspec.field(name="size(Byte)", default=None)
    iteration: object = msgspec.field(name="Iteration ID", default=None)
    forward_start: object = msgspec.field(name="FP Start", default=None)
    backward_end: object = msgspec.field(name="BP End", default=None)
    iteration_end: object = msgspec.field(name="Iteration End", default=None)


class Event(msgspec.Struct, gc=False):
    """One event of a timeline, as far as it is read."""

    name: str = ""
    phase: str = msgspec.field(name="ph", default="")
    category: str = msgspec.field(name="cat", default="")
    pid: int | str | None = None
    tid: int | str | None = None
    begin: _Number = msgspec.field(name="ts", default=None)
    length: _Number = msgspec.field(name="dur", default=None)
    arguments: Arguments | None = msgspec.field(name="args", default=None)


def role_of(path: Path) -> str | None:
    """Return the role of a timeline by iteration by its name; None for any other file."""
    match = NAME.match(path.name)
    return "/".join((ROLE, match.group(1), match.group(2), str(int(match.group(3))))) if match else None


def is_iteration_export(files: Mapping[str, object]) -> bool:
    """Return whether a rank's files are timelines by iteration."""
    return any(role.startswith(f"{ROLE}/") for role in files)


def slice_number(path: Path) -> int:
    """Return which slice of a timeline a file is; -1 for a whole timeline."""
    match = _SLICE.match(path.name)
    return int(match.group(1)) if match else -1


def read_events(path: Path) -> list[Event]:
    """Return all events of one file."""
    return decode(read_bytes(path), list[Event])


def read_timeline_steps(paths: Sequence[Path], rank: int, remark: Remark) -> pa.Table | None:
    """Return STEPS: one row for the capture; None where the timeline has no overlap analysis.

    Args:
        paths: the timeline, or all its slices in order.
        rank: whose it is.
        remark: called for events without a time.

    Raises:
        BadFileError: a part of it is no such file, or is missing: the others' sums would be too small.
    """
    expected = [-1] if len(paths) == 1 and slice_number(paths[0]) < 0 else list(range(len(paths)))
    found = [slice_number(path) for path in paths]
    if found != expected:
        raise BadFileError(fact("not_a_whole_timeline", slices=tuple(found)), "export_again")
    sums = dict.fromkeys(COLUMNS.values(), 0.0)
    begins: list[float] = []
    ends: list[float] = []
    n_bad = 0
    for event in _overlap_events(paths):
        begin, length = number(event.begin), number(event.length)
        if begin is None or length is None:
            n_bad += 1
            continue
        sums[COLUMNS[event.name]] += length
        begins.append(begin)
        ends.append(begin + length)
    tell_left_out(remark, n_bad, "event", "no_time")
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


def _overlap_events(paths: Sequence[Path]) -> Iterator[Event]:
    """Yield the events of the overlap analysis. The first slice may name the processes of all."""
    processes: set[int | str | None] = set()
    for path in paths:
        try:
            events = read_events(path)
        except BadFileError as error:
            raise BadFileError(
                fact("of_part", part=path.name), error.advice_kind, error.why, *error.also
            ) from error
        yield from overlap_events(events, processes)


def overlap_events(events: Sequence[Event], processes: set[int | str | None]) -> Iterator[Event]:
    """Yield the events of one file's overlap analysis; `processes` gathers whose they are."""
    processes |= {
        event.pid
        for event in events
        if event.phase == "M"
        and event.name == "process_name"
        and event.arguments
        and event.arguments.name == _PROCESS
    }
    for event in events:
        if event.pid in processes and event.phase == "X" and event.name in COLUMNS:
            yield event


def number(value: object) -> float | None:
    """Return what a cell says as a finite number; None where it says none (`N/A`)."""
    if not isinstance(value, (int, float, str)) or isinstance(value, bool):
        return None
    try:
        found = float(value)
    except ValueError:
        return None
    return found if math.isfinite(found) else None
