"""Timelines that CANN of 2023 and older exported by model and iteration: `PROF_*/device_N/timeline/`.

| file | what is read of it |
| --- | --- |
| `msprof_{device}_{model}_{iteration}.json` | kernels by name, what overlaps what, the iteration itself |
| `hccl_{device}_{model}_{iteration}.json` | operators ("Communication Kernel"), tasks of their planes |
| `step_trace_{device}_{model}_{n}.json` | all iterations: forward and backward, tail, and the time before |

Times are µs of the device's clock. Tasks of a plane state their ranks, size, type of link and length. What
moves data is counted as the writer of `hccl_raw_*.csv` counted it: `Reduce_Inline` and `Memcpy`; and of RDMA
two sends with the wait that follows them (MindSpore's profiling tutorial).
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence

from msgspec import Struct

from cluster_analysis.sources.text.timeline_json import COLUMNS, Event, number, overlap_events
from cluster_reduce.sums.trace_view import KERNEL_TASKS

_OPERATORS = "Communication Kernel"
#: How HCCL writes that the other end of a task is not known.
_NO_RANK = 0xFFFFFFFF
_MOVES = frozenset({"reduceinline", "memcpy"})
_RDMA_SENDS = frozenset({"rdmasend", "rdmasendpayload", "rdmasendnotify"})
_RDMA_WAIT = "notifywait"


class Iteration(Struct, frozen=True):
    """One iteration, µs: its begin and end, the end of what computes, and the begin of its forward pass."""

    number: int
    begin_us: float
    forward_us: float | None
    backward_end_us: float | None
    end_us: float


class Move(Struct, frozen=True):
    """Data moved between two ranks of one operator; ranks are as the file has them."""

    source: int
    destination: int
    transport: str
    size_bytes: float
    time_us: float


class Operator(Struct, frozen=True):
    """One communication operator of one rank and iteration, with what its planes moved."""

    name: str
    begin_us: float
    elapse_us: float
    moves: Sequence[Move]


class Kernel(Struct, frozen=True):
    """One task that computes."""

    name: str
    core: str
    time_us: float


def iterations(events: Sequence[Event]) -> Iterator[Iteration]:
    """Yield the iterations of a step trace."""
    for event in events:
        said = event.arguments
        begin, length = number(event.begin), number(event.length)
        if event.category != "Iteration Time" or said is None or begin is None or length is None:
            continue
        which = number(said.iteration)
        if which is not None:
            yield Iteration(
                int(which),
                begin,
                number(said.forward_start),
                number(said.backward_end),
                number(said.iteration_end) or begin + length,
            )


def overlap_sums(events: Sequence[Event]) -> dict[str, float] | None:
    """Return the summed times of the overlap analysis by column; None where the file has none."""
    sums: dict[str, float] | None = None
    for event in overlap_events(events, set()):
        length = number(event.length)
        if length is not None:
            sums = sums if sums is not None else dict.fromkeys(COLUMNS.values(), 0.0)
            sums[COLUMNS[event.name]] += length
    return sums


def kernels(events: Sequence[Event]) -> Iterator[Kernel]:
    """Yield what computed."""
    for event in events:
        said, length = event.arguments, number(event.length)
        task = str(said.kernel_task) if said is not None else ""
        if task in KERNEL_TASKS and length is not None:
            yield Kernel(event.name, task, length)


def operators(events: Sequence[Event]) -> list[Operator]:
    """Return the communication operators of one iteration by their begin, each with its planes' tasks."""
    threads = {
        (event.pid, event.tid)
        for event in events
        if event.name == "thread_name" and event.arguments and event.arguments.name == _OPERATORS
    }
    spans = sorted(
        (begin, length, event.name)
        for event in events
        if event.phase == "X" and (event.pid, event.tid) in threads
        if (begin := number(event.begin)) is not None and (length := number(event.length)) is not None
    )
    begins = [begin for begin, _, _ in spans]
    moved: list[list[Move]] = [[] for _ in spans]
    planes: dict[object, list[tuple[float, Event]]] = {}
    for event in events:
        begin = number(event.begin)
        if event.phase == "X" and event.arguments and event.arguments.task is not None and begin is not None:
            planes.setdefault(event.tid, []).append((begin, event))
    for tasks in planes.values():
        tasks.sort(key=lambda one: one[0])
        for begin, move in _moves(tasks):
            at = bisect.bisect_right(begins, begin) - 1
            if at >= 0 and begin <= begins[at] + spans[at][1]:
                moved[at].append(move)
    return [
        Operator(name, begin, length, tuple(moves))
        for (begin, length, name), moves in zip(spans, moved, strict=True)
    ]


def _moves(tasks: Sequence[tuple[float, Event]]) -> Iterator[tuple[float, Move]]:
    """Yield what one plane moved, with its begin."""
    at = 0
    while at < len(tasks):
        begin, event = tasks[at]
        said = event.arguments
        assert said is not None
        three = [one for _, one in tasks[at : at + 3]]
        kinds = [_kind(one) for one in three]
        if len(three) == 3 and _RDMA_SENDS.issuperset(kinds[:2]) and kinds[2] == _RDMA_WAIT:
            size = sum(_size(one) for one in three[:2])
            time_us = sum(number(one.length) or 0.0 for one in three)
            yield from _between(begin, event, "RDMA", size, time_us)
            at += 3
            continue
        if kinds[0] in _MOVES:
            link = str(said.link or "")
            transport = link if link and link != "INVALID_TYPE" else str(said.transport or "")
            yield from _between(begin, event, transport, _size(event), number(event.length) or 0.0)
        at += 1


def _between(
    begin: float, event: Event, transport: str, size: float, time_us: float
) -> Iterator[tuple[float, Move]]:
    assert event.arguments is not None
    ends = [number(one) for one in (event.arguments.source, event.arguments.destination)]
    source, destination = (int(one) if one is not None and one != _NO_RANK else None for one in ends)
    if source is not None and destination is not None and source != destination:
        yield begin, Move(source, destination, transport, size, time_us)


def _kind(event: Event) -> str:
    """The task in one spelling: CANN wrote `Notify Wait`, `Notify_Wait` and `Reduce inline`."""
    said = event.arguments
    return str(said.task if said else "").lower().replace("_", "").replace(" ", "")


def _size(event: Event) -> float:
    return (number(event.arguments.size) if event.arguments else None) or 0.0
