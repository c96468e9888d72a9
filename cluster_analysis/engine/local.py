"""Work in this process, in threads of it, or in local processes."""

from __future__ import annotations

import multiprocessing
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

from cluster_analysis.engine.handover import Handed, handed
from cluster_analysis.engine.protocol import N_ATTEMPTS, KeptOutcome, Outcome

R = TypeVar("R")

#: Tasks handed to the pool ahead of the one whose value is awaited, per worker: bounds the values in memory.
_N_AHEAD = 4


class SerialEngine:
    """One task after the other, in this process: nothing to start."""

    name = "in-process"
    n_workers = 1
    wants_files = False
    shares_files = True

    def run(self, function: Callable[..., R], calls: Sequence[tuple[Any, ...]]) -> Iterator[Outcome[R]]:
        """Call each when its outcome is asked for."""
        return (_tried(function, call) for call in calls)

    def run_keeping(
        self, function: Callable[..., tuple[R, Any]], calls: Sequence[tuple[Any, ...]]
    ) -> Iterator[KeptOutcome[R]]:
        """Keep the large half as it is."""
        return map(_split, self.run(function, calls))

    def close(self) -> None:
        """Nothing was started."""


class ThreadEngine:
    """Threads of this process: for slow file systems; decoding itself holds the interpreter's lock."""

    wants_files = False
    shares_files = True

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers
        self.name = f"{n_workers} threads"
        self._pool = ThreadPoolExecutor(n_workers, thread_name_prefix="analyse")

    def run(self, function: Callable[..., R], calls: Sequence[tuple[Any, ...]]) -> Iterator[Outcome[R]]:
        """Run ahead of the caller by a few tasks only."""
        running: list[Future[Outcome[R]]] = []
        for call in calls:
            running.append(self._pool.submit(_tried, function, call))
            if len(running) >= self.n_workers * _N_AHEAD:
                yield running.pop(0).result()
        for future in running:
            yield future.result()

    def run_keeping(
        self, function: Callable[..., tuple[R, Any]], calls: Sequence[tuple[Any, ...]]
    ) -> Iterator[KeptOutcome[R]]:
        """Keep the large half as it is."""
        return map(_split, self.run(function, calls))

    def close(self) -> None:
        """Wait for the running tasks, drop the others."""
        self._pool.shutdown(cancel_futures=True)


class ProcessEngine:
    """Local processes. When one dies, all unfinished tasks run again in new ones.

    A pool does not say which task killed its worker. So what was unfinished then is run again one at
    a time, and only a task that is alone when its worker dies is counted against.
    """

    wants_files = True
    shares_files = True

    def __init__(self, n_workers: int, scratch: Path) -> None:
        """Start nothing yet.

        Args:
            n_workers: how many processes.
            scratch: directory in which large values are handed over.
        """
        self.n_workers = n_workers
        self.name = f"{n_workers} processes"
        self._pool: ProcessPoolExecutor | None = None
        self._paths = (f"{scratch}/value-{number}" for number in count())

    def run(self, function: Callable[..., R], calls: Sequence[tuple[Any, ...]]) -> Iterator[Outcome[R]]:
        """Run ahead of the caller by a few tasks only."""
        position = 0
        while position < len(calls):
            suspects: Sequence[tuple[Any, ...]] = ()
            for outcome in self._run_until_broken(function, calls[position:]):
                if outcome is None:
                    suspects = calls[position : position + self.n_workers * _N_AHEAD]
                    break
                position += 1
                yield outcome
            for call in suspects:
                yield self._run_alone(function, call)
            position += len(suspects)

    def run_keeping(
        self, function: Callable[..., tuple[R, Any]], calls: Sequence[tuple[Any, ...]]
    ) -> Iterator[KeptOutcome[R]]:
        """Keep the large half as it is: a reference to files, or tables that came back."""
        return map(_split, self.run(function, calls))

    def close(self) -> None:
        """Stop the processes; tasks that have not begun are dropped."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def _run_until_broken(
        self, function: Callable[..., R], calls: Sequence[tuple[Any, ...]]
    ) -> Iterator[Outcome[R] | None]:
        running: list[Future[Outcome[R] | Handed[Outcome[R]]]] = []
        waiting = iter(calls)
        try:
            while True:
                for call in waiting:
                    running.append(self._submitted(function, call))
                    if len(running) >= self.n_workers * _N_AHEAD:
                        break
                if not running:
                    return
                yield _taken(running.pop(0).result())
        except BrokenProcessPool:
            self.close()
            yield None

    def _run_alone(self, function: Callable[..., R], call: tuple[Any, ...]) -> Outcome[R]:
        for _ in range(N_ATTEMPTS):
            try:
                return _taken(self._submitted(function, call).result())
            except BrokenProcessPool:
                self.close()
        return Outcome(failure=f"its worker process died {N_ATTEMPTS} times, out of memory perhaps")

    def _submitted(
        self, function: Callable[..., R], call: tuple[Any, ...]
    ) -> Future[Outcome[R] | Handed[Outcome[R]]]:
        return self._processes().submit(_tried_by_worker, function, call, next(self._paths))

    def _processes(self) -> ProcessPoolExecutor:
        if self._pool is None:
            # Forked: a worker starts in milliseconds with all modules loaded. Arrow, NumPy and the
            # allocators prepare themselves for a fork; newer Pythons warn of their threads all the same.
            self._pool = ProcessPoolExecutor(
                self.n_workers, mp_context=multiprocessing.get_context("fork"), initializer=_begin_worker
            )
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
                self._pool.submit(_nothing).result()
        return self._pool


def _begin_worker() -> None:
    import gc  # noqa: PLC0415
    import signal  # noqa: PLC0415

    import pyarrow as pa  # noqa: PLC0415

    # Ctrl-C reaches the whole group; the parent alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.freeze()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)


def _nothing() -> None:
    """Be a task, so that the pool starts its processes now."""


def _tried_by_worker(
    function: Callable[..., R], call: tuple[Any, ...], path: str
) -> Outcome[R] | Handed[Outcome[R]]:
    import pyarrow as pa  # noqa: PLC0415

    outcome = handed(_tried(function, call), path)
    # What Arrow keeps for its next tables is missing to the other workers.
    pa.default_memory_pool().release_unused()
    return outcome


def _taken(outcome: Outcome[R] | Handed[Outcome[R]]) -> Outcome[R]:
    if not isinstance(outcome, Handed):
        return outcome
    try:
        return outcome.take()
    except OSError as error:
        return Outcome(failure=_one_line(error))


def _tried(function: Callable[..., R], call: tuple[Any, ...]) -> Outcome[R]:
    for attempt in range(N_ATTEMPTS):
        try:
            return Outcome(value=function(*call))
        except Exception as error:
            if attempt == N_ATTEMPTS - 1:
                return Outcome(failure=_one_line(error))
    raise AssertionError("unreachable")


def _one_line(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].name}, line {frames[-1].lineno})" if frames else ""
    text = " ".join(str(error).split()) or "no message"
    return f"{type(error).__name__}: {text}{place}"


def _split(outcome: Outcome[tuple[R, Any]]) -> KeptOutcome[R]:
    if outcome.value is None:
        return KeptOutcome(failure=outcome.failure)
    return KeptOutcome(value=outcome.value[0], kept=outcome.value[1])
