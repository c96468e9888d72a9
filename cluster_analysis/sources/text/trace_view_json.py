"""trace_view.json: what the host did in a capture in text form; see `cluster_reduce.sums.host_times`.

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
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import BinaryIO

import msgspec
import numpy as np

from cluster_analysis.sources.columns.columns import damaged
from cluster_analysis.sources.columns.columns_file import ColumnsFile
from cluster_analysis.sources.columns.place import columns_of
from cluster_analysis.sources.errors import BadFileError, Remark, as_bad_file, tell_left_out
from cluster_analysis.sources.text.json_text import BOM, decode
from cluster_analysis.tables.schema import Counter
from cluster_reduce.sums.host_times import HostTimes
from cluster_reduce.sums.trace_view import add, kind_of
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


def read_trace_view(path: Path, remark: Remark) -> list[Counter]:
    """Return what the host did, and its time in the data loader; nothing where the timeline has no steps.

    Raises:
        BadFileError: the file is cut off or no list of events.
    """
    times, n_bad = HostTimes(), 0
    with as_bad_file(), path.open("rb") as stream:
        for event in chain.from_iterable(_pieces(stream)):
            said = event.arguments
            kind = kind_of(event.name, event.kind, said.task, said.level) if event.phase == "X" else ""
            n_bad += not add(times, kind, event.begin, event.length, said.connection)
    tell_left_out(remark, n_bad, "event", "no_time")
    return [*times.figures()]


def _pieces(stream: BinaryIO) -> Iterator[list[_Event]]:
    """Yield a list's events, some megabytes at a time.

    A piece that is cut within a text, at what only looks like the end of an event, is no JSON: it
    goes on with the next block. So does damaged text, to the end, where it is reported.
    """
    kept, n_before = b"", len(BOM) if stream.read(len(BOM)) == BOM else 0
    stream.seek(n_before)
    while block := stream.read(_BLOCK_BYTES):
        kept += block
        ends = list(_BETWEEN.finditer(kept, max(0, len(kept) - len(block) // 2)))
        if not ends:
            continue
        piece = kept[: ends[-1].start() + 1] + b"]"
        try:
            events = msgspec.json.decode(piece, type=list[_Event])
        except msgspec.DecodeError:
            continue
        yield events
        n_read = ends[-1].end() - 1
        kept, n_before = b"[" + kept[n_read:], n_before + n_read - 1
    try:
        yield decode(kept, list[_Event])
    except BadFileError as error:
        raise BadFileError(_of_file(error.why, n_before), error.advice_kind, *error.also) from error


def _of_file(why: Fact, n_before: int) -> Fact:
    """Return the position in the file for a position in its last piece."""
    values = (
        (name, value + n_before if name in _PLACES and isinstance(value, int) else value)
        for name, value in why.values
    )
    return Fact(why.kind, tuple(values))


#: What hosts make of a timeline.
_METRICS = frozenset(
    ("data_loader_us", "dispatch_delay_us", "dispatched_late_share", "head_copy_us", "idle_us")
)


def read_timeline_columns(path: Path, remark: Remark) -> list[Counter]:
    """Return the same from the columns that a host made of it; `path` is that of the timeline itself.

    Raises:
        BadFileError: its host could not read it, or the columns are damaged.
    """
    file = ColumnsFile(columns_of(path) or path, "timeline")
    why, n_bad = file.texts("why").to_pylist(), file.ints("n_bad").tolist()
    metrics, labels = file.texts("metric").to_pylist(), file.texts("label").to_pylist()
    values = file.floats("value")
    is_sound = (
        len(why) == len(n_bad) == 1
        and len(metrics) == len(labels) == len(values)
        and _METRICS.issuperset(metrics)
        and None not in labels
        and bool(np.isfinite(values).all())
    )
    if not is_sound:
        raise damaged("figures of a timeline")
    if why[0]:
        raise BadFileError(fact("not_read_on_host", detail=why[0][:200]))
    tell_left_out(remark, n_bad[0], "event", "no_time")
    return list(zip(metrics, labels, values.tolist(), strict=True))
