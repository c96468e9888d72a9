"""The engine whose tasks run on the workers of a Dask cluster, ours or another's.

Large values stay on the workers: a batch's tables are cut by step there, and a step's pieces meet on
the worker that reduces it. Dask runs the tasks of a lost worker again, those it had finished included.
"""

from __future__ import annotations

import asyncio
import logging
import operator
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from distributed import Client, Future, KilledWorker, wait
from distributed.comm.core import CommClosedError

from cluster_analysis.engine.clusters.checks import check_workers
from cluster_analysis.engine.clusters.reach import NO_WORKERS_DEADLINE_S
from cluster_analysis.engine.graph import marked, renamed, task
from cluster_analysis.engine.protocol import (
    N_ATTEMPTS,
    Engine,
    EngineError,
    Graph,
    Kept,
    Key,
    OnProgress,
    Place,
    TaskEnd,
    ignored,
)
from cluster_run.errors import in_one_line

#: For workers to come, and for a connection to be closed.
CONNECT_DEADLINE_S = 20.0
#: For a value that is there to arrive; a lost scheduler is noticed sooner.
_ARRIVAL_DEADLINE_S = 300.0
_LOOK_EVERY_S = 5.0
_LOST_DEADLINE_S = 1.0


@dataclass(frozen=True)
class DaskKept:
    """The outcome of a task that returns `(small, large)`, on some worker."""

    pair: Future

    def piece(self, key: int) -> tuple[Any, ...]:
        """Return the task that cuts the tables of one step out, where they lie."""
        return task(_cut_out, self.pair, key)


class OwnClient(Client):
    """A client that only we close.

    Dask's own closes itself when it is forgotten, and waits for an answer then. One that was
    interrupted while it connected would keep the program from ending.
    """

    def __del__(self) -> None:
        """Leave it: `close` was called, or there was never a connection."""


class DaskEngine(Engine):
    """Tasks on the workers of one scheduler. It never rests: it holds the tables."""

    def __init__(
        self,
        client: Client,
        address: str,
        place: Place | None = None,
        *,
        remarks: Sequence[str] = (),
        stop: Callable[[], object] = lambda: None,
    ) -> None:
        """Take over a client.

        Args:
            client: connected.
            address: the scheduler's, for messages.
            place: what workers must see to do the work; None if all are processes that we started here.
            remarks: what the user should know.
            stop: ends what was started for it, once the client is closed.

        Raises:
            EngineError: none of the workers can do the work.
        """
        self.name = f"Dask at {address}"
        self.shares_scratch = place is None
        self.remarks = tuple(remarks)
        self._workers: list[str] | None = None
        self.address = address
        self.client = client
        self._place = place
        self._stop = stop
        if place is not None:
            checked = check_workers(client, place, address)
            self._workers, self.writes_output = list(checked.workers), checked.writes_output
            self.remarks += tuple(f"left out: {one}" for one in checked.left_out)
        self._known = set(self._workers or ())
        threads = client.nthreads()
        self.n_workers = max(1, sum(threads.get(one, 0) for one in self._workers or threads))

    def run(self, graph: Graph, keys: Sequence[Key], on_progress: OnProgress = ignored) -> list[TaskEnd[Any]]:
        """Compute `keys`; return their outcomes in the order of the keys."""
        futures = self._submitted(graph, keys)
        outcomes = []
        futures.reverse()
        while futures:
            # Each is dropped on the cluster once it is here.
            outcomes.append(self._outcome(futures.pop()))
            on_progress(len(outcomes))
        return outcomes

    def run_keeping(
        self, graph: Graph, keys: Sequence[Key], on_progress: OnProgress = ignored
    ) -> list[TaskEnd[tuple[Any, Kept]]]:
        """Bring the small halves here, leave the large ones there."""
        pairs = self._submitted(graph, keys)
        small: Graph = {
            ("small", number): task(operator.itemgetter(0), pair) for number, pair in enumerate(pairs)
        }
        outcomes = self.run(small, list(small), on_progress)
        return [
            outcome if outcome.failure else TaskEnd((outcome.value, DaskKept(pair)))
            for pair, outcome in zip(pairs, outcomes, strict=True)
        ]

    def close(self) -> None:
        """Close the connection, and the cluster if it was started here."""
        # A lost connection has no other end to be told.
        is_running = self.client.status == "running"
        try:
            self.client.close(timeout=CONNECT_DEADLINE_S if is_running else _LOST_DEADLINE_S)
        finally:
            self._stop()

    def _submitted(self, graph: Graph, keys: Sequence[Key]) -> list[Future]:
        if not keys:
            return []
        mark = uuid.uuid4().hex
        with self._lost_is_one_line():
            self._meet_newcomers()
        with self._lost_is_one_line(), warnings.catch_warnings():
            # A job's topology and small tables are some MB; what is large lies on the workers.
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
            return list(
                self.client.get(
                    renamed(graph, mark),
                    [marked(key, mark) for key in keys],
                    workers=self._workers,
                    sync=False,
                )
            )

    def _meet_newcomers(self) -> None:
        """Ask workers that joined since the last graph; those that can do the work take part in the next."""
        if self._place is None or self._workers is None:
            return
        new = sorted(set(self.client.nthreads()) - self._known)
        self._known.update(new)
        with suppress(EngineError):
            later = check_workers(self.client, self._place, self.address, new) if new else None
            if later is not None and (later.writes_output or not self.writes_output):
                self._workers += later.workers

    def _outcome(self, future: Future) -> TaskEnd[Any]:
        with self._lost_is_one_line():
            self._await(future)
            try:
                found: TaskEnd[Any] = future.result(timeout=_ARRIVAL_DEADLINE_S)
            except KilledWorker:
                return TaskEnd(failure=f"its worker died {N_ATTEMPTS} times or more, out of memory perhaps")
            except (CancelledError, CommClosedError, asyncio.TimeoutError):
                raise
            except Exception as error:
                return TaskEnd(failure=f"{type(error).__name__}: {in_one_line(error, 'no message')}")
            return found

    def _await(self, future: Future) -> None:
        idle_s = 0.0
        while True:
            try:
                wait(future, timeout=_LOOK_EVERY_S)
            except asyncio.TimeoutError:  # Dask's; before Python 3.11 it is not the built-in one
                if self.client.status != "running":
                    raise
                idle_s = 0.0 if self._has_workers() else idle_s + _LOOK_EVERY_S
                if idle_s >= NO_WORKERS_DEADLINE_S:
                    raise EngineError(
                        f"the Dask cluster at {self.address} has had no worker for {idle_s:.0f} s",
                        "start workers, or leave --scheduler out",
                    ) from None
            else:
                return

    def _has_workers(self) -> bool:
        there = self.client.nthreads()
        return any(one in there for one in self._workers or there)

    @contextmanager
    def _lost_is_one_line(self) -> Iterator[None]:
        try:
            yield
        except (CancelledError, CommClosedError, asyncio.TimeoutError) as error:
            raise EngineError(
                f"the Dask scheduler at {self.address} was lost; nothing was written",
                "see its log and run this again, or leave --scheduler out to work on this machine",
            ) from error


def be_quiet() -> None:
    """Have Dask log nothing: it logs a lost connection with tracebacks; the user gets one line from us."""
    # Its parts have levels of their own.
    for name in ("distributed", "tornado", "asyncio", *logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _cut_out(pair: tuple[Any, Any], key: int) -> Any:
    return pair[1].piece(key)
