"""`cluster-hook drain`: works off the requests of the spool, a few at once, each to a named end."""

from __future__ import annotations

import contextlib
import io
import json
import os
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Literal

from cluster_hook.follow.pipeline import failed, not_ended
from cluster_hook.job import ReportedJob
from cluster_hook.slurm.as_user import follow_as_its_user, with_state
from cluster_hook.slurm.commands import AmbiguousRecordError
from cluster_hook.spool.request import parse_request_file
from cluster_hook.spool.spool import Attempts, Spool, request_digest
from cluster_run.errors import ExitCode, InputError, worst
from cluster_run.files import write_text_whole
from cluster_tell.outcome import Outcome, outcome_document

#: Outcome of a request; `waits` because its job was requeued and has not ended, `unasked` because Slurm
#: did not say how it ended.
DrainState = Literal["done", "failed", "retried", "waits", "unasked"]

#: How often a drain looks for new requests while it works.
_LOOK_S = 1.0
#: In one drain, a request that was put back is not taken again before this.
_REST_S = 30.0


@dataclass(frozen=True)
class DrainOptions:
    """How to drain. Times are seconds; `worker_arguments` are those of `slurm-post`.

    `ask_slurm` returns a job with its state and times, and raises InputError where Slurm does not answer.
    """

    n_at_once: int = 2
    n_attempts: int = 3
    retry_after_s: float = 300.0
    max_age_s: float = 7 * 86400.0
    keep_s: float = 30 * 86400.0
    deadline_s: float = 3600.0
    worker_arguments: tuple[str, ...] = ()
    ask_slurm: Callable[[ReportedJob], ReportedJob] = with_state
    calls_webhook: bool = False

    def noted(self) -> Mapping[str, object]:
        """Return the settings of a drain that `check` reads."""
        environment = {name: os.environ.get(name, "") for name in ("PATH", "SLURM_CONF")}
        return {**environment, "webhook": self.calls_webhook}


@dataclass(frozen=True)
class Drained:
    """Outcome of one request. `outcome` is there at its end: done or failed."""

    key: str
    state: DrainState
    text: str
    outcome: Outcome | None = None


def drain(
    spool: Spool,
    options: DrainOptions,
    report: Callable[[Drained], None],
    looked: Callable[[], None] = lambda: None,
) -> tuple[Drained, ...] | None:
    """Work off all requests that are due; None where another drain is at work.

    `report` is called for each request when it ends, from this thread; for a finished one before that is
    recorded, so after a crash in between it is told again, and not lost. `looked` is called about every
    second, each time it looked for requests.

    Raises:
        InputError: the spool cannot be used.
    """
    spool.prepare()
    with spool.drain_lock(options.noted()) as is_ours:
        if not is_ours:
            return None
        spool.prune(options.keep_s)
        stop = threading.Event()
        ended: list[Drained] = []
        with (
            ThreadPoolExecutor(max_workers=options.n_at_once) as pool,
            contextlib.closing(_work_off(spool, options, pool, stop, looked)) as work,
        ):
            for drained in work:
                report(drained)
                ended.append(drained)
        return tuple(ended)


def _recover(spool: Spool, ours: Collection[str]) -> None:
    """Put back the requests of a drain that died, unless their worker outlived it and still works."""
    for key in set(spool.keys("active")) - set(ours):
        with spool.worker_lock(key) as lock:
            if lock is not None:
                spool.put_back(key)


def _work_off(
    spool: Spool,
    options: DrainOptions,
    pool: ThreadPoolExecutor,
    stop: threading.Event,
    looked: Callable[[], None],
) -> Generator[Drained, None, None]:
    running: dict[Future[Outcome | InputError], tuple[str, bytes]] = {}
    resting: dict[str, float] = {}
    try:
        while True:
            # Searched each time, not once: a host that hangs must not keep later requests waiting.
            _recover(spool, [key for key, _ in running.values()])
            waiting = [key for key in spool.keys("pending") if resting.get(key, 0.0) <= time.monotonic()]
            while waiting and len(running) < options.n_at_once:
                key = waiting.pop(0)
                resting[key] = time.monotonic() + max(_REST_S, options.retry_after_s)
                begun = _begin(spool, key, options)
                if isinstance(begun, Drained):
                    yield begun
                elif begun is not None:
                    job, content = begun
                    running[pool.submit(_run_worker, spool, key, job, options, stop)] = (key, content)
            looked()
            if not running:
                return
            for future in wait(running, timeout=_LOOK_S, return_when=FIRST_COMPLETED).done:
                key, content = running.pop(future)
                yield from _conclude(spool, key, content, future.result(), options)
    except BaseException:
        stop.set()
        for future, (key, _) in running.items():
            # Stopped by us: the attempt does not count against the request.
            wait([future])
            _put_back_uncounted(spool, key, 0.0)
        raise


def _put_back_uncounted(spool: Spool, key: str, last_s: float, reason: str = "") -> None:
    spool.set_attempts(key, Attempts(spool.attempts(key).number - 1, last_s, reason))
    spool.put_back(key)


def _begin(spool: Spool, key: str, options: DrainOptions) -> Drained | tuple[ReportedJob, bytes] | None:
    """Take a request; a value where it ends at once, None where it is not due yet."""
    attempts = spool.attempts(key)
    try:
        content = spool.content("pending", key)
        job = parse_request_file(content, f"{key}.job")
    except InputError as error:
        return _give_up(spool, key, "pending", str(error))
    if spool.is_done(key, content):
        spool.forget(key, "pending")
        return None
    is_waiting = attempts.number == 0 and attempts.last_s > 0
    age_s = time.time() - spool.dropped_s(key)
    if age_s > options.max_age_s and not is_waiting:
        hours = age_s / 3600
        return _give_up(
            spool, key, "pending", f"the request is {hours:.0f} h old: the drain did not get to it in time"
        )
    if attempts.number >= options.n_attempts:
        return _give_up(spool, key, "pending", f"the drain died in {attempts.number} attempts at it")
    is_new = spool.dropped_s(key) > attempts.last_s
    if attempts.last_s and not is_new and time.time() - attempts.last_s < options.retry_after_s:
        return None
    # Count before trying: a request that kills the drain must not be tried for ever.
    spool.set_attempts(key, Attempts(attempts.number + 1, time.time()))
    spool.move(key, "pending", "active")
    return job, content


def _run_worker(
    spool: Spool, key: str, job: ReportedJob, options: DrainOptions, stop: threading.Event
) -> Outcome | InputError:
    """Return how following the job ended; the error where Slurm did not say how the job itself did."""
    try:
        job = options.ask_slurm(job)
    except AmbiguousRecordError as error:
        return failed(job, None, str(error), is_permanent=True)
    except InputError as error:
        return error
    if not job.has_ended:
        return not_ended(job)
    # Not buffered: what a full disk did not take must not be an error again when it is closed.
    unbuffered = spool.path("log", key, ".log").open("ab", buffering=0)
    with spool.worker_lock(key) as lock, io.TextIOWrapper(unbuffered, write_through=True) as log:
        return follow_as_its_user(
            job, options.worker_arguments, deadline_s=options.deadline_s, log=log, held=lock, stop=stop
        )


def _conclude(
    spool: Spool, key: str, content: bytes, outcome: Outcome | InputError, options: DrainOptions
) -> Iterator[Drained]:
    if isinstance(outcome, InputError):
        _put_back_uncounted(spool, key, 0.0, str(outcome))
        yield Drained(key, "unasked", str(outcome))
        return
    if outcome.state in ("analysed", "nothing"):
        yield Drained(key, "done", outcome.line, outcome)
        document = {"request_sha256": request_digest(content), **outcome_document(outcome)}
        write_text_whole(spool.path("done", key, ".json"), json.dumps(document, indent=1) + "\n")
        spool.forget(key, "active")
        return
    if outcome.state == "waiting":
        _put_back_uncounted(spool, key, time.time())
        yield Drained(key, "waits", outcome.line)
        return
    tried = spool.attempts(key).number
    if outcome.is_permanent or tried >= options.n_attempts:
        further = "" if outcome.is_permanent else f" (tried {tried} times)"
        yield _give_up(spool, key, "active", outcome.reason + further, outcome)
        return
    spool.set_attempts(key, Attempts(tried, time.time(), outcome.reason))
    spool.put_back(key)
    yield Drained(key, "retried", f"attempt {tried} of {options.n_attempts} failed: {outcome.reason}")


def _give_up(spool: Spool, key: str, area: str, reason: str, outcome: Outcome | None = None) -> Drained:
    document = {"schema": "cluster-hook-failed/1", "key": key, "reason": reason}
    write_text_whole(spool.path("failed", key, ".json"), json.dumps(document, indent=1) + "\n")
    spool.move(key, area, "failed")
    spool.forget(key, "active")
    unknown = Outcome(key, "", "", "failed", ExitCode.FAILED, reason=reason)
    return Drained(key, "failed", reason, outcome or unknown)


def drain_code(drained: tuple[Drained, ...]) -> ExitCode:
    """Return the exit code: FAILED where Slurm did not answer, INCOMPLETE where a request was given up."""
    codes = {"unasked": ExitCode.FAILED, "failed": ExitCode.INCOMPLETE}
    return worst(*(codes.get(one.state, ExitCode.DONE) for one in drained))
