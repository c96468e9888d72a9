"""Wall time, processor time and peak memory of a command and everything it starts."""

from __future__ import annotations

import os
import resource
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_SAMPLE_EVERY_S = 0.03
#: A sample walks all pages, and what is measured may wait for it: it has 19 of 20 seconds for itself.
_REST_OF_SAMPLING = 19
MIB = 1024 * 1024


@dataclass(frozen=True)
class Measured:
    """One run of one command. `peak_bytes` is the largest sum of proportional set sizes of its processes."""

    wall_s: float
    cpu_s: float
    peak_bytes: int
    exit_code: int
    output: str


def measure(command: Sequence[str], log: Path, **environment: str) -> Measured:
    """Run a command to its end, its output going to `log`.

    Processor time is that of the whole tree, as far as the processes were waited for. Memory is
    sampled; pages that processes share count once.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with log.open("wb") as stream:
        began = time.monotonic()
        process = subprocess.Popen(
            command, stdout=stream, stderr=subprocess.STDOUT, env={**_environment(), **environment}
        )
        peak = _PeakMemory(process.pid)
        peak.start()
        exit_code = process.wait()
        wall = time.monotonic() - began
    peak.stop()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Measured(wall, cpu, peak.bytes, exit_code, log.read_text(errors="replace"))


def _environment() -> dict[str, str]:
    """Return this process's, with bytecode kept, as what pip installs has it."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


class _PeakMemory(threading.Thread):
    """Samples the memory of a process and its descendants until it is stopped."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self._ended = threading.Event()
        self.bytes = 0

    def run(self) -> None:
        took_s = 0.0
        while not self._ended.wait(max(_SAMPLE_EVERY_S, _REST_OF_SAMPLING * took_s)):
            began_s = time.thread_time()
            self.bytes = max(self.bytes, sum(_pss_bytes(pid) for pid in _tree(self._pid)))
            took_s = time.thread_time() - began_s

    def stop(self) -> None:
        self._ended.set()
        self.join()


def _tree(root: int) -> list[int]:
    pids, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        pids.append(pid)
        try:
            for task in os.listdir(f"/proc/{pid}/task"):
                children = Path(f"/proc/{pid}/task/{task}/children").read_text(encoding="ascii")
                waiting += map(int, children.split())
        except OSError:
            continue
    return pids


def _pss_bytes(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
