"""The input pipeline of MindSpore beyond its operations: queues to the device, and the host's processors.

| file | metric | label |
| --- | --- | --- |
| device_queue_profiling_*.txt (ms), dataset_iterator_profiling_*.txt | input_queue_{get,push,batch}_us | |
| the same | input_queue_empty_share: steps that found the queue to the device empty | |
| minddata_aicpu_*.txt | input_next_empty_share: fetches of the device that found it empty | |
| minddata_cpu_utilization_*.json (percent) | host_cpu_busy_share | user, sys, io, all |

Rules of the tutorial: more than 0.3 of empty steps point at data processing; else a fetch that found nothing
points at the transfer to the device. Above 0.8 the processors themselves are the limit.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from cluster_analysis.sources.counters import read_minddata_pipeline, read_minddata_summary
from cluster_analysis.sources.errors import BadFileError, Remark, tell_left_out
from cluster_analysis.sources.numbers import US_PER_MS
from cluster_analysis.sources.reading import Reading
from cluster_analysis.sources.text.csv_text import read_lines
from cluster_analysis.sources.text.json_text import decode, read_bytes
from cluster_analysis.tables.schema import Counter
from cluster_run.facts import fact

_TIMES = {"0": "get", "1": "push", "2": "batch"}
_PERCENT = 100.0
_NEXT = "GetNext"


def read_input_pipeline(reading: Reading) -> list[Counter]:
    """Return the counters of all these files of a rank, and how full the queues between operations are."""
    return [
        *(
            reading.first(
                ("minddata_pipeline", read_minddata_pipeline), ("minddata_summary", read_minddata_summary)
            )
            or []
        ),
        *reading.joined(
            ("device_queue", read_device_queue),
            ("device_fetches", read_device_fetches),
            ("host_processors", read_host_processors),
        ),
    ]


def read_device_queue(path: Path, remark: Remark) -> list[Counter]:
    """Return mean times of a batch, and how often the queue was empty.

    A line is `0 kind step cost …` of a time (kind 0 fetched, 1 pushed, 2 both) or `1 capacity step size …`.
    """
    times: dict[str, list[float]] = {}
    sizes: list[float] = []
    n_bad = 0
    for line in _rows(path, remark):
        try:
            if line[0] == "1":
                sizes.append(float(line[3]))
            else:
                times.setdefault(_TIMES[line[1]], []).append(float(line[3]))
        except (IndexError, ValueError, KeyError):
            n_bad += 1
    tell_left_out(remark, n_bad, "line", "not_readable")
    if not times and not sizes:
        raise BadFileError(fact("no_step_in_it"))
    found: list[Counter] = [
        (f"input_queue_{name}_us", "", US_PER_MS * sum(values) / len(values))
        for name, values in times.items()
    ]
    return found + _empty("input_queue_empty_share", sizes)


def read_device_fetches(path: Path, remark: Remark) -> list[Counter]:
    """Return how often the device found no batch: lines `GetNext_dequeue_wait start end queue_size`."""
    sizes = []
    for line in _rows(path, remark):
        if line[0].startswith(_NEXT) and len(line) > 3 and line[3].isdecimal():
            sizes.append(float(line[3]))
    return _empty("input_next_empty_share", sizes)


class _Device(msgspec.Struct):
    user: list[float] = msgspec.field(name="user_utilization", default_factory=list)
    system: list[float] = msgspec.field(name="sys_utilization", default_factory=list)
    io: list[float] = msgspec.field(name="io_utilization", default_factory=list)
    idle: list[float] = msgspec.field(name="idle_utilization", default_factory=list)


class _Utilization(msgspec.Struct):
    device_info: _Device


def read_host_processors(path: Path, _: Remark) -> list[Counter]:
    """Return how busy the host's processors were on average, 0 to 1."""
    own = decode(read_bytes(path), _Utilization).device_info
    found: list[Counter] = [
        ("host_cpu_busy_share", label, sum(values) / len(values) / _PERCENT)
        for label, values in (("user", own.user), ("sys", own.system), ("io", own.io))
        if values
    ]
    if own.idle:
        found.append(("host_cpu_busy_share", "all", 1.0 - sum(own.idle) / len(own.idle) / _PERCENT))
    return found


def _rows(path: Path, remark: Remark) -> list[list[str]]:
    lines = read_lines(path, remark).decode("utf-8", errors="replace").splitlines()
    return [cells for line in lines if (cells := line.split())]


def _empty(metric: str, sizes: list[float]) -> list[Counter]:
    return [(metric, "", sum(size == 0 for size in sizes) / len(sizes))] if sizes else []
