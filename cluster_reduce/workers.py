"""One process for each file that is reduced, some at a time: a failure costs its file only."""

from __future__ import annotations

import os
import resource
import select
import signal
import time
from collections.abc import Callable
from typing import NamedTuple

from cluster_reduce.form import UnfitError
from cluster_reduce.reduction import reduced

_PIECE_BYTES = 1 << 16
_UNFIT, _NO_MEMORY, _UNFORESEEN = 3, 4, 5
_STDIN, _STDOUT = 0, 1
_TOO_LATE, _TOO_LARGE = "not read within --columns-deadline", "more memory than --columns-memory"


class Reduced(NamedTuple):
    """A file that is done: its columns, or None and why.

    One that `is_over_limits` may be read at another time, with more time or memory.
    """

    name: bytes
    content: bytes | None
    why: str = ""
    is_over_limits: bool = False


class GoneError(Exception):
    """The process that asked is gone."""


class Workers:
    """Reduces files; `close` ends what still runs. `output` is what only their maker writes to."""

    def __init__(
        self,
        names: list[bytes],
        n_at_a_time: int,
        memory_bytes: int,
        end_s: float,
        output: Callable[[], int] = lambda: _STDOUT,
    ) -> None:
        self._output = output
        self._used: list[bytes] = []
        self._waiting = list(reversed(names))
        self._n_at_a_time = n_at_a_time
        self._memory_bytes = memory_bytes
        self._end_s = end_s
        # By the pipe: process, file, what came so far.
        self._running: dict[int, tuple[int, bytes, list[bytes]]] = {}
        self._done: list[Reduced] = []

    def take(self, wait_s: float) -> Reduced | None:
        """Return a file that is done; nothing after `wait_s` seconds.

        Raises:
            GoneError: the connection has ended.
        """
        while not self._done and (self._waiting or self._running):
            self._start()
            if time.monotonic() >= self._end_s:
                self._give_up()
            elif not self._listen(wait_s):
                return None
        return self._done.pop() if self._done else None

    @property
    def are_done(self) -> bool:
        """Whether nothing more will come."""
        return not (self._done or self._waiting or self._running)

    def have_worked(self) -> bool:
        """Whether any of them has used a processor since this was asked last: one that hangs does not."""
        before, self._used = self._used, [_used(process) for process, _, _ in self._running.values()]
        return self._used != before

    def close(self) -> None:
        """End all processes."""
        for pipe, (process, _, _) in self._running.items():
            os.kill(process, signal.SIGKILL)
            os.close(pipe)
            os.waitpid(process, 0)
        self._running.clear()

    def _give_up(self) -> None:
        """The time is over: the rest travels as it is."""
        names = [name for _, name, _ in self._running.values()] + self._waiting
        self._done += [Reduced(name, None, _TOO_LATE, is_over_limits=True) for name in names]
        self._waiting.clear()
        self.close()

    def _start(self) -> None:
        while self._waiting and len(self._running) < self._n_at_a_time:
            name = self._waiting.pop()
            here, there = os.pipe()
            process = os.fork()
            if process == 0:
                # A dying worker must leave no pipe open in another one.
                for pipe in {_STDIN, _STDOUT, self._output(), here, *self._running}:
                    os.close(pipe)
                self._work(name, there)
            os.close(there)
            self._running[here] = (process, name, [])

    def _work(self, name: bytes, pipe: int) -> None:
        """Do a worker's work, and end it: nothing of its maker may run here."""
        status = _UNFORESEEN
        try:
            signal.alarm(max(1, int(self._end_s - time.monotonic()) + 1))
            resource.setrlimit(resource.RLIMIT_AS, (self._memory_bytes, self._memory_bytes))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            _write(pipe, reduced(name))
            status = 0
        except UnfitError as error:
            _write(pipe, str(error).encode())
            status = _UNFIT
        except OSError as error:
            _write(pipe, (error.strerror or "not readable").encode())
            status = _UNFIT
        except MemoryError:
            status = _NO_MEMORY
        finally:
            os._exit(status)

    def _listen(self, wait_s: float) -> bool:
        """Take what workers write; return whether anything came."""
        # The end may have passed since it was looked at: `select` refuses a time below 0.
        wait_s = max(0.0, min(wait_s, self._end_s - time.monotonic()))
        ready, _, _ = select.select([_STDIN, *self._running], [], [], wait_s)
        if _STDIN in ready and not os.read(_STDIN, _PIECE_BYTES):
            raise GoneError
        for pipe in ready:
            if pipe == _STDIN:
                continue
            process, name, pieces = self._running[pipe]
            piece = os.read(pipe, _PIECE_BYTES)
            if piece:
                pieces.append(piece)
                continue
            del self._running[pipe]
            os.close(pipe)
            status = os.waitpid(process, 0)[1]
            self._done.append(_result(name, status, b"".join(pieces)))
        return bool(ready)


def _write(pipe: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(pipe, rest) :]


def _used(process: int) -> bytes:
    """Return number, user time and system time of a process, as the kernel counts them."""
    try:
        with open(f"/proc/{process}/stat", "rb") as stream:
            times = stream.read().rpartition(b")")[2].split()[11:13]
    except OSError:
        return b""
    return b" ".join([b"%d" % process, *times])


def _result(name: bytes, status: int, content: bytes) -> Reduced:
    """Return what a process that ended so has made, or why it has made nothing."""
    if status == 0:
        return Reduced(name, content)
    if not os.WIFEXITED(status):
        why = f"its reader was killed by signal {os.WTERMSIG(status)}"
        return Reduced(name, None, why, is_over_limits=True)
    code = os.WEXITSTATUS(status)
    whys = {_UNFIT: content.decode(errors="replace"), _NO_MEMORY: _TOO_LARGE}
    return Reduced(name, None, whys.get(code, "its reader failed"), is_over_limits=code == _NO_MEMORY)
