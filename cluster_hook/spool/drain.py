"""`cluster-hook drain`: works off the requests of the spool, a few at once, each to a named end."""

from __future__ import annotations

import contextlib
import grp
import json
import os
import pwd
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Literal

from cluster_hook.knownjob import job_to_text
from cluster_hook.processes import CommandEnd, Identity, our_command, run_command
from cluster_hook.spool.request import Request, parse_request_file
from cluster_hook.spool.spool import Attempts, Spool, request_digest
from cluster_hook.telling.outcome import Outcome, outcome_document, outcome_from_text
from cluster_run.errors import ClusterError, ExitCode, InputError
from cluster_run.files import write_text_whole

#: What became of a request; `waits` because its job was requeued and has not ended.
DrainState = Literal["done", "failed", "retried", "waits"]

#: Each with a deadline of its own: collecting, analysing, fetching the raw files of suspects.
_N_PROCESSES = 3
#: The worker gets this much longer than the work's own deadlines, so that it can say which one passed.
_WORKER_MARGIN_S = 120.0
#: How often a drain looks for new requests while it works.
_LOOK_S = 1.0
#: In one drain, a request that was put back is not taken again before this.
_REST_S = 30.0


@dataclass(frozen=True)
class DrainOptions:
    """How to drain. Times are seconds; `worker_arguments` are those of `slurm-post`."""

    n_at_once: int = 2
    n_attempts: int = 3
    retry_after_s: float = 300.0
    max_age_s: float = 7 * 86400.0
    keep_s: float = 30 * 86400.0
    deadline_s: float = 3600.0
    worker_arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Drained:
    """What became of one request. `outcome` is there at its end: done or failed."""

    key: str
    state: DrainState
    text: str
    outcome: Outcome | None = None


def drain(
    spool: Spool,
    options: DrainOptions,
    told: Callable[[Drained], None],
    looked: Callable[[], None] = lambda: None,
) -> tuple[Drained, ...] | None:
    """Work off all requests that are due; None where another drain is at work.

    `told` is called for each request when it ends, from this thread; for a finished one before that is
    recorded, so that a crash in between tells it again rather than never. `looked` is called about every
    second, each time it looked for requests.

    Raises:
        InputError: the spool cannot be used.
    """
    spool.prepare()
    with spool.drain_lock() as is_ours:
        if not is_ours:
            return None
        _recover(spool)
        spool.prune(options.keep_s)
        stop = threading.Event()
        ended: list[Drained] = []
        with (
            ThreadPoolExecutor(max_workers=options.n_at_once) as pool,
            contextlib.closing(_work_off(spool, options, pool, stop, looked)) as work,
        ):
            for drained in work:
                told(drained)
                ended.append(drained)
        return tuple(ended)


def _recover(spool: Spool) -> None:
    """Put back the requests of a drain that died, unless their worker outlived it."""
    for key in spool.keys("active"):
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
    running: dict[Future[CommandEnd], tuple[str, bytes]] = {}
    resting: dict[str, float] = {}
    try:
        while True:
            # Looked for each time, not once: a host that hangs must not keep later requests waiting.
            waiting = [key for key in spool.keys("pending") if resting.get(key, 0.0) <= time.monotonic()]
            while waiting and len(running) < options.n_at_once:
                key = waiting.pop(0)
                resting[key] = time.monotonic() + max(_REST_S, options.retry_after_s)
                begun = _begin(spool, key, options)
                if isinstance(begun, Drained):
                    yield begun
                elif begun is not None:
                    request, content = begun
                    running[pool.submit(_run_worker, spool, key, request, options, stop)] = (key, content)
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


def _put_back_uncounted(spool: Spool, key: str, last_s: float) -> None:
    spool.set_attempts(key, Attempts(spool.attempts(key).number - 1, last_s))
    spool.put_back(key)


def _begin(spool: Spool, key: str, options: DrainOptions) -> Drained | tuple[Request, bytes] | None:
    """Take a request; a value where it ends at once, None where it is not due yet."""
    attempts = spool.attempts(key)
    try:
        content = spool.content("pending", key)
        request = parse_request_file(content, f"{key}.job")
    except InputError as error:
        return _give_up(spool, key, "pending", str(error))
    if spool.is_done(key, content):
        spool.forget(key, "pending")
        return None
    is_waiting = attempts.number == 0 and attempts.last_s > 0
    if spool.age_s("pending", key) > options.max_age_s and not is_waiting:
        hours = spool.age_s("pending", key) / 3600
        return _give_up(
            spool, key, "pending", f"the request is {hours:.0f} h old: the drain did not get to it in time"
        )
    if attempts.number >= options.n_attempts:
        return _give_up(spool, key, "pending", f"the drain died in {attempts.number} attempts at it")
    is_new = spool.dropped_s(key) > attempts.last_s
    if attempts.last_s and not is_new and time.time() - attempts.last_s < options.retry_after_s:
        return None
    # Counted before it is tried: a request that kills the drain must not be tried for ever.
    spool.set_attempts(key, Attempts(attempts.number + 1, time.time()))
    spool.move(key, "pending", "active")
    return request, content


def _run_worker(
    spool: Spool, key: str, request: Request, options: DrainOptions, stop: threading.Event
) -> CommandEnd:
    log_path = spool.path("log", key, ".log")
    try:
        with spool.worker_lock(key) as lock, log_path.open("a") as log:
            return run_command(
                our_command(
                    "cluster_hook", "slurm-post", "--job-file=-", "--json", *options.worker_arguments
                ),
                name="the worker",
                deadline_s=_N_PROCESSES * options.deadline_s + _WORKER_MARGIN_S,
                capture=True,
                stdin=job_to_text(request.job) + "\n",
                log=log,
                held=lock,
                identity=find_identity(request),
                stop=stop,
            )
    except (InputError, OSError) as error:
        return CommandEnd("the worker", 1, "", (str(error),), 0)


def find_identity(request: Request) -> Identity | None:
    """Return the user a request is worked on as; None where that is already us.

    Raises:
        InputError: the user is unknown here, or we are neither that user nor root.
    """
    if request.uid == os.geteuid():
        return None
    if os.geteuid() != 0:
        raise InputError(
            f"the job belongs to user {request.uid}, and the drain runs as {os.geteuid()}",
            "run the drain as root",
        )
    try:
        user = pwd.getpwuid(request.uid)
    except KeyError as error:
        raise InputError(f"user {request.uid} of the job is not known on this host") from error
    groups = {user.pw_gid, *(one.gr_gid for one in grp.getgrall() if user.pw_name in one.gr_mem)}
    return Identity(user.pw_uid, user.pw_gid, tuple(sorted(groups)), user.pw_dir, user.pw_name)


def _conclude(
    spool: Spool, key: str, content: bytes, end: CommandEnd, options: DrainOptions
) -> Iterator[Drained]:
    outcome: Outcome | None = None
    with contextlib.suppress(ClusterError):
        outcome = outcome_from_text(end.stdout)
    if outcome is not None and outcome.state in ("analysed", "nothing"):
        yield Drained(key, "done", outcome.line, outcome)
        document = {"request_sha256": request_digest(content), **outcome_document(outcome)}
        write_text_whole(spool.path("done", key, ".json"), json.dumps(document, indent=1) + "\n")
        spool.forget(key, "active")
        return
    if outcome is not None and outcome.state == "waiting":
        _put_back_uncounted(spool, key, time.time())
        yield Drained(key, "waits", outcome.line)
        return
    reason = outcome.reason if outcome is not None else end.reason
    tried = spool.attempts(key).number
    is_permanent = outcome is not None and outcome.is_permanent
    if is_permanent or tried >= options.n_attempts:
        further = "" if is_permanent else f" (tried {tried} times)"
        yield _give_up(spool, key, "active", reason + further, outcome)
        return
    spool.put_back(key)
    yield Drained(key, "retried", f"attempt {tried} of {options.n_attempts} failed: {reason}")


def _give_up(spool: Spool, key: str, area: str, reason: str, outcome: Outcome | None = None) -> Drained:
    document = {"schema": "cluster-hook-failed/1", "key": key, "reason": reason}
    write_text_whole(spool.path("failed", key, ".json"), json.dumps(document, indent=1) + "\n")
    spool.move(key, area, "failed")
    spool.forget(key, "active")
    unknown = Outcome(key, "", "", "failed", ExitCode.FAILED, reason=reason)
    return Drained(key, "failed", reason, outcome or unknown)


def drain_code(drained: tuple[Drained, ...]) -> ExitCode:
    """Return the exit code: INCOMPLETE where a request was given up."""
    return ExitCode.INCOMPLETE if any(one.state == "failed" for one in drained) else ExitCode.DONE
