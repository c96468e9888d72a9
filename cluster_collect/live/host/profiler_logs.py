"""Parse logs of torch_npu's dynamic profiler: the only place where file mode reports anything."""

from __future__ import annotations

import os
import re
import time
from typing import Any

_NAME = re.compile(r"^dp_.*_(\d+)_rank_(-?\d+)\.log(\.1)?$")
_LINE = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3}) \[")
#: Meaning of a line, and the number in it.
_KINDS = (
    ("accepted", re.compile(r"Start step will be set to (-?\d+)\.")),
    ("started", re.compile(r"Start Dynamic Profiler at (\d+) step")),
    ("stopped", re.compile(r"Stop Dynamic Profiler at (\d+) step")),
    ("poll", re.compile(r"poll interval time change to (\d+)s")),
    ("left_out", re.compile(r"Rank (-?\d+) not in valid rank_list")),
)
#: Time zones of a container and of its host differ by whole quarters of an hour.
_ZONE_S = 900
#: A log is rotated at 200 KiB; of a training log only its end is read.
_MAX_BYTES = 1 << 20


class Logs:
    """The logs that were read, and how far."""

    def __init__(self) -> None:
        self._read: dict[tuple[int, int], int] = {}
        self._rests: dict[tuple[int, int], str] = {}

    def events(self, directory: str, pids: list[int]) -> list[dict[str, Any]]:
        """Return what the profilers of these processes have said since the last call, in order of time."""
        events: list[dict[str, Any]] = []
        try:
            names = sorted(os.listdir(directory), reverse=True)  # `.log.1` holds what is older
        except FileNotFoundError:
            return []
        for name in names:
            match = _NAME.match(name)
            if match is not None and int(match.group(1)) in pids:
                pid, rank = int(match.group(1)), int(match.group(2))
                events += [
                    dict(one, pid=pid, rank=rank) for one in self._of_file(os.path.join(directory, name))
                ]
        return sorted(events, key=lambda one: one["at_s"])

    def _of_file(self, path: str) -> list[dict[str, Any]]:
        lines, written_s = self._new_lines(path)
        timed = [(_time_of(line), line) for line in lines]
        known = [at_s for at_s, _ in timed if at_s is not None]
        shift_s = round((known[-1] - written_s) / _ZONE_S) * _ZONE_S if known else 0
        return [
            {"at_s": at_s - shift_s, "kind": kind, "n": int(match.group(1))}
            for at_s, line in timed
            if at_s is not None
            for kind, pattern in _KINDS
            for match in [pattern.search(line)]
            if match is not None
        ]

    def numbers(self, path: str, pattern: str) -> list[dict[str, Any]]:
        """Return the step numbers that a training log tells since the last call, by a pattern with one group.

        Each has the time at which it was found, which is the time of the call.
        """
        wanted = re.compile(pattern)
        found = [wanted.search(line) for line in self._new_lines(path)[0]]
        return [{"at_s": time.time(), "n": int(one.group(1))} for one in found if one is not None]

    def _new_lines(self, path: str) -> tuple[list[str], float]:
        with open(path, "rb") as stream:
            status = os.fstat(stream.fileno())
            identity = (status.st_dev, status.st_ino)
            begin = self._read.get(identity, max(0, status.st_size - _MAX_BYTES))
            if begin > status.st_size:
                begin = 0  # it was cut
            stream.seek(begin)
            data = stream.read(_MAX_BYTES)
        self._read[identity] = begin + len(data)
        text = self._rests.get(identity, "") + data.decode(errors="replace")
        *lines, self._rests[identity] = text.split("\n")
        return lines, status.st_mtime


def _time_of(line: str) -> float | None:
    match = _LINE.match(line)
    if match is None:
        return None
    return time.mktime(time.strptime(match.group(1), "%Y-%m-%d %H:%M:%S")) + int(match.group(2)) / 1000
