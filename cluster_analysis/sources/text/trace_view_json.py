"""trace_view.json: what the host did in a capture in text form; `sources.host_times` says what is made of it.

The file is one list of events and grows to gigabytes, so it is decoded in pieces of whole events. Times are
µs, as text with three decimals or as numbers; their ns are exact. Events as torch_npu 2.14 writes them:

| event | recognised by | used for |
| --- | --- | --- |
| `ProfilerStep#N`, `aten::copy_`, `enumerate(DataLoader)…` | `cat` cpu_op | steps, copies, data loader |
| `GC` | `cat` GC | Python's garbage collector |
| `AscendCL@aclrtSynchronize…`, other calls of CANN | `level` in `args` | waiting, dispatching, launches |
| kernels, `MEMCPY_ASYNC` | `Task Type` in `args` | starts after their launch, copies of the device |
| Computing, Communication | no `args` | when the device was busy |
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np
import numpy.typing as npt

from cluster_analysis.sources import numbers
from cluster_analysis.sources.errors import BadFileError, Remark, left_out
from cluster_analysis.sources.host_times import HostTimes, as_spans
from cluster_analysis.sources.text.json_text import decode
from cluster_analysis.tables.schema import Counter
from cluster_reduce.sums.trace_view import connection_of, kind_of, nanoseconds
from cluster_run.facts import Fact, fact

_BLOCK_BYTES = 8 << 20
#: Where one event ends and the next begins; inside a text it may stand too, and then the piece is not JSON.
_BETWEEN = re.compile(rb"\}\s*,\s*\{")
#: Pattern of a position in an error message.
_PLACES = ("byte", "n_bytes")


class _Arguments(msgspec.Struct, gc=False):
    task: str | None = msgspec.field(name="Task Type", default=None)
    level: str | None = None
    connection: object = msgspec.field(name="connection_id", default=None)


class _Event(msgspec.Struct, gc=False):
    name: str = ""
    phase: str = msgspec.field(name="ph", default="")
    kind: str = msgspec.field(name="cat", default="")
    begin: str | float | None = msgspec.field(name="ts", default=None)
    length: str | float | None = msgspec.field(name="dur", default=None)
    arguments: _Arguments = msgspec.field(name="args", default_factory=_Arguments)


_EVENTS: msgspec.json.Decoder[list[_Event]] = msgspec.json.Decoder(list[_Event])


def read_trace_view(path: Path, remark: Remark) -> list[Counter]:
    """Return what the host did, and its time in the data loader; nothing where the timeline has no steps.

    Raises:
        BadFileError: the file is cut off or no list of events.
    """
    found = _Spans()
    try:
        with path.open("rb") as stream:
            for events in _pieces(stream):
                found.add(events)
    except OSError as error:
        raise BadFileError(fact("unreadable", detail=str(error.strerror or error))) from error
    if found.n_bad:
        remark(left_out(found.n_bad, "event", "no_time"))
    return found.counters()


def _pieces(stream: BinaryIO) -> Iterator[list[_Event]]:
    """Yield a list's events, some megabytes at a time.

    A piece that is cut within a text, at what only looks like the end of an event, is no JSON: it
    goes on with the next block. So does damaged text, to the end, where it is reported.
    """
    kept, n_before = b"", 0
    while block := stream.read(_BLOCK_BYTES):
        kept += block
        ends = list(_BETWEEN.finditer(kept, max(0, len(kept) - len(block) // 2)))
        if not ends:
            continue
        piece = kept[: ends[-1].start() + 1] + b"]"
        try:
            events = _EVENTS.decode(piece)
        except msgspec.DecodeError:
            continue
        yield events
        n_read = ends[-1].end() - 1
        kept, n_before = b"[" + kept[n_read:], n_before + n_read - 1
    try:
        yield decode(kept, _EVENTS)
    except BadFileError as error:
        raise BadFileError(_of_file(error.why, n_before), error.advice_kind, *error.also) from error


def _of_file(why: Fact, n_before: int) -> Fact:
    """Return the position in the file for a position in its last piece."""
    values = (
        (name, value + n_before if name in _PLACES and isinstance(value, int) else value)
        for name, value in why.values
    )
    return Fact(why.kind, tuple(values))


class _Spans:
    """Begins and ends of the intervals found so far, ns, one after the other."""

    def __init__(self) -> None:
        self._spans: defaultdict[str, array[int]] = defaultdict(lambda: array("q"))
        # Numbers of a call or kernel that belong together, and when each began.
        self._launches, self._starts = array("q"), array("q")
        self.n_bad = 0

    def add(self, events: Iterable[_Event]) -> None:
        """Take events up."""
        for event in events:
            said = event.arguments
            kind = kind_of(event.name, event.kind, said.task, said.level) if event.phase == "X" else ""
            if not kind:
                continue
            begin, length = nanoseconds(event.begin), nanoseconds(event.length)
            if begin is None or length is None:
                self.n_bad += 1
                continue
            self._spans[kind].extend((begin, begin + length))
            number = connection_of(kind, said.connection)
            if number is not None:
                (self._starts if kind == "kernel" else self._launches).extend((number, begin))

    def counters(self) -> list[Counter]:
        """Return what is made of them; nothing without steps."""
        spans = defaultdict(lambda: as_spans([]), {name: as_spans(one) for name, one in self._spans.items()})
        if not len(spans["step"]):
            return []
        loading_ns = int((spans["loader"][:, 1] - spans["loader"][:, 0]).sum())
        loading = [("data_loader_us", "", loading_ns / numbers.NS_PER_US)] if "loader" in self._spans else []
        times = HostTimes(
            spans["step"],
            spans["busy"],
            spans["copy"],
            spans["device_copy"],
            {
                "synchronising": spans["synchronise"],
                "collecting": spans["collect"],
                "dispatching": np.concatenate([spans["call"], spans["synchronise"]]),
            },
            self._delays_us(),
            has_framework=True,
        )
        return loading + times.counters()

    def _delays_us(self) -> npt.NDArray[np.float64]:
        """Return the time from each kernel's launch, the first call with its number, to its start."""
        launches, starts = (np.array(one, np.int64).reshape(-1, 2) for one in (self._launches, self._starts))
        launches = launches[np.lexsort(launches.T[::-1])]
        which, first = np.unique(launches[:, 0], return_index=True)
        at = np.searchsorted(which, starts[:, 0])
        is_known = at < len(which)
        is_known[is_known] = which[at[is_known]] == starts[is_known, 0]
        delays_ns = starts[is_known, 1] - launches[first[at[is_known]], 1]
        return np.asarray(delays_ns / numbers.NS_PER_US)
