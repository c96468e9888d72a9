"""Dask's schedulers on this machine: synchronous, over threads, and over processes that we fork."""

from __future__ import annotations

import multiprocessing
import signal
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import Any

import dask.local
import dask.threaded
import numpy.ma  # noqa: F401 - `pa.array` imports this when first called: once here, not in each worker
import pyarrow as pa
import pyarrow.acero  # and `group_by` this

from cluster_analysis.engine.handover import dumps, loads
from cluster_analysis.engine.protocol import (
    N_ATTEMPTS,
    Engine,
    EngineError,
    Graph,
    Key,
    OnProgress,
    TaskEnd,
    ignored,
)
from cluster_run.command_line import release_signals, signals_held
from cluster_run.errors import spoken

#: Tasks of each process that Dask hands to the pool: this process may be busy while they work.
_N_HANDED = 3
#: Dask's callbacks: for a graph, before each task, after each, and in the end.
_Callbacks = tuple[Any, Any, Any, Any, Any]


class InProcessEngine(Engine):
    """One task after the other, in this process: nothing to start. The others get the same elsewhere."""

    name = "in-process"
    n_workers = 1

    def run(self, graph: Graph, keys: Sequence[Key], on_progress: OnProgress = ignored) -> list[TaskEnd[Any]]:
        """Compute `keys`; return their outcomes in the order of the keys."""
        if not keys:
            return []
        waiting = set(keys)

        def ended(key: Key, *_: Any) -> None:
            if key in waiting:
                waiting.discard(key)
                on_progress(len(keys) - len(waiting))

        return list(self._get(graph, list(keys), [(None, None, None, ended, None)]))

    def _get(self, graph: Graph, keys: list[Key], callbacks: list[_Callbacks]) -> Any:
        return dask.local.get_sync(graph, keys, callbacks=callbacks)


class ThreadEngine(InProcessEngine):
    """Threads of this process: for slow file systems; decoding itself holds the interpreter's lock."""

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers
        self.name = f"{n_workers} threads"
        self._pool = ThreadPoolExecutor(n_workers, thread_name_prefix="analyse")

    def close(self) -> None:
        """Wait for the running tasks, drop the others."""
        self._pool.shutdown(cancel_futures=True)

    def _get(self, graph: Graph, keys: list[Key], callbacks: list[_Callbacks]) -> Any:
        return dask.threaded.get(graph, keys, pool=self._pool, callbacks=callbacks)


class ProcessEngine(InProcessEngine):
    """Local processes. If one dies, unfinished tasks run again in new ones.

    For Dask a worker that dies ends the graph. Here it costs its task alone. A pool does not say which task
    killed its worker: those that were handed over are run again one at a time, and only a task that is alone
    when its worker dies is counted against.
    """

    wants_files = True

    def __init__(self, n_workers: int, scratch: Path) -> None:
        """Start nothing yet.

        Args:
            n_workers: how many processes.
            scratch: directory in which large values are handed over.
        """
        self.n_workers = n_workers
        self.name = f"{n_workers} processes"
        self._pool: ProcessPoolExecutor | None = None
        self._scratch = str(scratch)

    def rest(self) -> None:
        """Let the processes end while other work begins: they hold memory; the next work starts new ones."""
        if self._pool is not None:
            self._pool.shutdown(wait=False)
            self._pool = None

    def close(self) -> None:
        """Stop the processes; tasks that have not begun are dropped."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
            self._pool = None

    def _get(self, graph: Graph, keys: list[Key], callbacks: list[_Callbacks]) -> Any:
        done: Graph = {}
        running: set[Key] = set()

        def begun(key: Key, *_: Any) -> None:
            running.add(key)

        def ended(key: Key, outcome: Any, *_: Any) -> None:
            running.discard(key)
            done[key] = outcome

        watched = [*callbacks, (None, None, begun, ended, None)]
        while True:
            try:
                return self._get_once({**graph, **done}, keys, watched)
            except BrokenProcessPool:
                self.close()
                for suspect in sorted(running):
                    outcome = self._get_alone({**graph, **done}, suspect)
                    for _, _, _, on_outcome, _ in watched:
                        on_outcome(suspect, outcome)

    def _get_alone(self, graph: Graph, key: Key) -> TaskEnd[Any]:
        for _ in range(N_ATTEMPTS):
            try:
                (outcome,) = self._get_once(graph, [key], [])
            except BrokenProcessPool:
                self.close()
            else:
                return outcome
        return TaskEnd(failure=f"its worker process died {N_ATTEMPTS} times, out of memory perhaps")

    def _get_once(self, graph: Graph, keys: list[Key], callbacks: list[_Callbacks]) -> Sequence[TaskEnd[Any]]:
        try:
            found: Sequence[TaskEnd[Any]] = dask.local.get_async(
                self._processes().submit,
                self.n_workers * _N_HANDED,
                graph,
                keys,
                callbacks=callbacks,
                dumps=partial(dumps, self._scratch),
                loads=loads,
            )
        except OSError as error:
            raise EngineError(
                f"{self._scratch}: a value could not be handed from process to process: {spoken(error)}",
                "name another directory with --scratch",
            ) from error
        return found

    def _processes(self) -> ProcessPoolExecutor:
        if self._pool is None:
            # Forked: a worker starts in milliseconds with all modules loaded. Arrow, NumPy and the
            # allocators prepare themselves for a fork; newer Pythons warn of their threads all the same.
            self._pool = ProcessPoolExecutor(
                self.n_workers, mp_context=multiprocessing.get_context("fork"), initializer=_begin_worker
            )
            with signals_held(), warnings.catch_warnings():
                warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
                self._pool.submit(int)  # any task: the pool starts its processes now
        return self._pool


def _begin_worker() -> None:
    # Ctrl-C, and a terminal that closes, reach the whole group; the parent alone decides what they mean.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    release_signals()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
