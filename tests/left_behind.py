"""No server outlives its tests, even where pytest is killed: another process waits for the end of pytest."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

_MARK = "STARTED_BY_TESTS_BELOW"
_LOOKS_S = 0.5
_ENDS_S = 10.0
_WAITING: list[subprocess.Popen[bytes]] = []


def end_with_this_process(directory: Path) -> None:
    """After this process, kill what it starts from now on, and what has `directory` in its arguments."""
    mark = f"{directory}/"
    # Some servers write a title over their environment: these have a file of the directory in the title.
    os.environ[_MARK] = mark
    outside = {name: value for name, value in os.environ.items() if name != _MARK}
    command = [sys.executable, "-S", "-E", __file__, str(os.getpid())]
    waiting = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, env=outside)
    assert waiting.stdin is not None
    waiting.stdin.write(os.fsencode(mark))
    waiting.stdin.close()
    _WAITING.append(waiting)


def marked(mark: bytes) -> list[int]:
    """Return the processes whose environment or command line has the mark."""
    found = []
    for process in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):  # it ended, or is somebody else's
            told = [Path(f"/proc/{process}/{name}").read_bytes() for name in ("cmdline", "environ")]
            if any(mark in one for one in told):
                found.append(int(process))
    return found


def _wait_and_kill(parent: int) -> None:
    mark = sys.stdin.buffer.read()
    while os.getppid() == parent:
        time.sleep(_LOOKS_S)
    end_s = time.monotonic() + _ENDS_S
    while (left := marked(mark)) and time.monotonic() < end_s:
        for process in left:
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)
        time.sleep(_LOOKS_S)


if __name__ == "__main__":
    _wait_and_kill(int(sys.argv[1]))
