"""Work on a Dask cluster that somebody else runs. Only the modules `engine_*` know Dask.

Large values stay on the workers: a batch's tables are cut by step there, and a step's pieces meet on
the worker that reduces it. Dask runs the tasks of a lost worker again, those it had finished included.
"""

from __future__ import annotations

import logging
import operator
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any, TypeVar

from distributed import Client, Future, KilledWorker, wait
from distributed.comm.core import CommClosedError
from distributed.security import Security

from cluster_analysis.engine.protocol import N_ATTEMPTS, EngineError, KeptOutcome, Outcome
from cluster_analysis.options import TlsFiles

R = TypeVar("R")

CONNECT_DEADLINE_S = 20.0
#: For a value that is there to arrive; a lost scheduler is noticed sooner.
_ARRIVAL_DEADLINE_S = 300.0
#: How long a cluster may be without any worker before the analysis gives up.
NO_WORKERS_DEADLINE_S = 120.0
_LOOK_EVERY_S = 5.0
_LOST_DEADLINE_S = 1.0


@dataclass(frozen=True)
class DaskPart:
    """One step's tables of one batch, on some worker."""

    future: Future


@dataclass(frozen=True)
class DaskKept:
    """The value of `read_batch`, on some worker."""

    client: Client
    pair: Future

    def part(self, key: int) -> DaskPart:
        """Have the tables of one step cut out, where they lie."""
        return DaskPart(self.client.submit(_cut_out, self.pair, key, pure=False, retries=N_ATTEMPTS - 1))


class _Client(Client):
    """A client that is closed by us and by nobody else.

    Dask's own closes itself when it is forgotten, and waits for an answer then. One that was
    interrupted while it connected would keep the program from ending.
    """

    def __del__(self) -> None:
        """Leave it: `close` was called, or there was never a connection."""


class DaskEngine:
    """Tasks on the workers of one scheduler."""

    wants_files = False
    shares_files = False

    def __init__(self, client: Client, address: str, cluster: Any = None) -> None:
        self.name = f"Dask at {address}"
        self._address = address
        self._client = client
        self._cluster = cluster
        self.n_workers = max(1, sum(client.nthreads().values()))

    def run(self, function: Callable[..., R], calls: Sequence[tuple[Any, ...]]) -> Iterator[Outcome[R]]:
        """Submit all; give the outcomes in the order of the calls, each dropped once it was given."""
        futures = [self._submit(function, call) for call in calls]
        futures.reverse()
        while futures:
            yield self._outcome(futures.pop())

    def run_keeping(
        self, function: Callable[..., tuple[R, Any]], calls: Sequence[tuple[Any, ...]]
    ) -> Iterator[KeptOutcome[R]]:
        """Bring the small halves here, leave the large ones there."""
        pairs = [self._submit(function, call) for call in calls]
        smalls = [self._client.submit(operator.itemgetter(0), pair, pure=False) for pair in pairs]
        for pair, small in zip(pairs, smalls, strict=True):
            outcome = self._outcome(small)
            if outcome.failure:
                yield KeptOutcome(failure=outcome.failure)
            else:
                yield KeptOutcome(value=outcome.value, kept=DaskKept(self._client, pair))

    def close(self) -> None:
        """Close the connection, and the cluster if it was started here."""
        # One that was lost has nobody to say goodbye to.
        is_running = self._client.status == "running"
        self._client.close(timeout=CONNECT_DEADLINE_S if is_running else _LOST_DEADLINE_S)
        if self._cluster is not None:
            self._cluster.close(timeout=CONNECT_DEADLINE_S)

    def _submit(self, function: Callable[..., Any], call: tuple[Any, ...]) -> Future:
        arguments = [
            [one.future if isinstance(one, DaskPart) else one for one in value]
            if isinstance(value, list)
            else value
            for value in call
        ]
        return self._client.submit(function, *arguments, pure=False, retries=N_ATTEMPTS - 1)

    def _outcome(self, future: Future) -> Outcome[Any]:
        self._await(future)
        try:
            return Outcome(value=future.result(timeout=_ARRIVAL_DEADLINE_S))
        except KilledWorker:
            return Outcome(failure=f"its worker died {N_ATTEMPTS} times or more, out of memory perhaps")
        except (CancelledError, CommClosedError, TimeoutError) as error:
            raise self._lost() from error
        except Exception as error:
            text = " ".join(str(error).split()) or "no message"
            return Outcome(failure=f"{type(error).__name__}: {text}")

    def _await(self, future: Future) -> None:
        idle_s = 0.0
        while True:
            try:
                wait(future, timeout=_LOOK_EVERY_S)
            except TimeoutError:
                if self._client.status != "running":
                    raise self._lost() from None
                idle_s = 0.0 if self._client.scheduler_info()["workers"] else idle_s + _LOOK_EVERY_S
                if idle_s >= NO_WORKERS_DEADLINE_S:
                    raise EngineError(
                        f"the Dask cluster at {self._address} has had no worker for {idle_s:.0f} s",
                        "start workers, or leave --scheduler out",
                    ) from None
            except (CancelledError, CommClosedError) as error:
                raise self._lost() from error
            else:
                return

    def _lost(self) -> EngineError:
        return EngineError(
            f"the Dask scheduler at {self._address} was lost; nothing was written",
            "see its log and run this again, or leave --scheduler out to work on this machine",
        )


def connect(address: str, tls: TlsFiles | None) -> DaskEngine:
    """Connect to a running scheduler; without `tls` the certificates of Dask's own configuration count.

    Raises:
        EngineError: it cannot be reached, refuses, or has no workers in time.
    """
    security = None
    if tls is not None:
        security = Security(
            tls_ca_file=tls.ca_file,
            tls_client_cert=tls.certificate,
            tls_client_key=tls.key,
            require_encryption=True,
        )
    _be_quiet()
    try:
        # How long it tries is Dask's own setting, distributed.comm.timeouts.connect: 30 s.
        client = _Client(address, security=security, name="cluster-analyse")
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        raise EngineError(
            f"no Dask scheduler at {address}: {' '.join(str(error).split()) or type(error).__name__}",
            "check the address and that it runs; tls:// needs --tls-ca-file, --tls-cert and --tls-key",
        ) from error
    try:
        client.wait_for_workers(1, timeout=CONNECT_DEADLINE_S)
    except TimeoutError:
        client.close()
        raise EngineError(
            f"the Dask cluster at {address} has no workers", f"start some: dask worker {address}"
        ) from None
    return DaskEngine(client, address)


def _be_quiet() -> None:
    # Dask logs a lost connection with tracebacks of its own; the user gets one line from us.
    logging.getLogger("distributed").setLevel(logging.CRITICAL + 1)


def _cut_out(pair: tuple[Any, Any], key: int) -> Any:
    return pair[1].part(key)
