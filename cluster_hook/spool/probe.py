"""`cluster-hook check --probe`: the whole chain once, with a small job of an ordinary user.

A profile, the epilog, the site's own drain, an analysis in the user's name, a message: failures for users
show here, before a job needs it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cluster_hook.isolation import Identity, our_command
from cluster_hook.processes import run_command
from cluster_hook.slurm.commands import cancel, read_jobs, submit
from cluster_hook.spool.spool import Spool
from cluster_run.errors import InputError
from cluster_run.files import json_of

#: Neither the epilog nor the drain may take it for one of the hook's own jobs.
PROBE_NAME = "check-of-cluster-hook"
_JOB = (
    "--scenario", "slow_rank:2", "--tp", "1", "--pp", "1", "--dp", "4", "--steps", "3", "--dp-buckets", "1",
)  # fmt: skip
_SHORT_S = 60.0
#: How long to wait for the job, for the drain, and for its message.
_JOB_S, _DRAIN_S, _MESSAGE_S = 120.0, 300.0, 90.0
_AREAS = ("pending", "active", "done", "failed")


@dataclass(frozen=True)
class Probe:
    """Whose job it is (None: ours), and where it writes: a directory that its node and the drain see."""

    user: Identity | None
    directory: Path


def probe(spool: Spool, asked: Probe) -> Iterator[Answer]:
    """Yield an answer for each part of the chain, up to the first that does not work.

    Raises:
        InputError: Slurm refuses the job, or the user cannot write to the directory.
    """
    before_s = spool.epilog_ran_s() or 0.0
    with _made_by_user(asked) as directory:
        job = _submitted(directory, asked.user)
        try:
            if (trouble := _why_not_dropped(spool, job, before_s)) is not None:
                yield trouble
                return
            yield Answer("ok", f"the epilog ran for job {job}, which was submitted to see that")
            analysed = _analysed(spool, job, asked)
            yield analysed
            if analysed.state == "ok":
                yield _reported(spool, job)
        finally:
            cancel(job)


@contextmanager
def _made_by_user(asked: Probe) -> Iterator[Path]:
    """Make a directory with a profile in it, as the user; remove it in the end."""
    template = str(asked.directory / "cluster-hook-check-XXXXXX")
    made = run_command(
        ["mktemp", "-d", template], name="mktemp", deadline_s=_SHORT_S, capture=True, identity=asked.user
    )
    directory = Path(made.stdout.strip())
    if made.code != 0 or not directory.is_absolute():
        raise InputError(
            f"the probe's user cannot write to {asked.directory}: {made.reason}", "--probe-dir DIR"
        )
    try:
        simulated = run_command(
            our_command("cluster_simulate", str(directory / "made"), "-q", *_JOB),
            name="cluster-simulate",
            deadline_s=_SHORT_S,
            identity=asked.user,
        )
        if simulated.code != 0:
            raise InputError(f"the probe's profile could not be made: {simulated.reason}")
        yield directory
    finally:
        run_command(["rm", "-rf", str(directory)], name="rm", deadline_s=_SHORT_S, identity=asked.user)


def _submitted(directory: Path, user: Identity | None) -> str:
    # The nodes need no installation for it, and copies are dated when the job runs.
    written = "cp -r made/cluster_profiler prof-$SLURM_JOB_ID"
    comment = "--comment=profile_dir=prof-%j,profile_via=shared"
    where = (f"--chdir={directory}", "--output=job.out", "--time=2", f"--job-name={PROBE_NAME}")
    return submit([*where, comment, "--wrap", written], user)


def _why_not_dropped(spool: Spool, job: str, before_s: float) -> Answer | None:
    """Return why the epilog did not drop the job's request; None where it did."""

    def is_dropped() -> bool:
        return (
            any(spool.path(area, job, ".job").exists() for area in _AREAS) or _record(spool, job) is not None
        )

    if _comes_true(lambda: is_dropped() or _has_ended(job), _JOB_S) and _comes_true(is_dropped, 10.0):
        return None
    if not _has_ended(job):
        return Answer("unknown", f"job {job} did not end within {_JOB_S:g} s", "look at squeue")
    if (spool.epilog_ran_s() or 0.0) > before_s:
        advice = f"look at {spool.root / 'pending'}: is its disk full? And at slurmctld's system log"
        return Answer("problem", f"the epilog ran for job {job} and dropped no request", advice)
    advice = "systemctl restart slurmctld (jobs go on): scontrol reconfigure is not enough"
    return Answer("problem", f"job {job} ended and the epilog did not run", advice)


def _has_ended(job: str) -> bool:
    return all(one.has_ended for one in read_jobs(job))


def _analysed(spool: Spool, key: str, asked: Probe) -> Answer:
    """Wait for the site's drain; say what became of the request."""
    log = f"what the commands said: {spool.path('log', key, '.log')}"

    def reason() -> str:
        return spool.attempts(key).reason

    if not _comes_true(lambda: _record(spool, key) is not None or reason() != "", _DRAIN_S):
        advice = "systemctl enable --now cluster-hook-drain.timer, or start it by cron"
        return Answer("problem", f"no drain did the request {key} within {_DRAIN_S:g} s", advice)
    record = _record(spool, key)
    if record is None or "state" not in record:
        why = reason() if record is None else record.get("reason")
        return Answer("problem", f"the drain could not do the request {key}: {why}", log)
    verdict, results = record.get("verdict"), record.get("results")
    if not isinstance(verdict, dict) or verdict.get("verdict") != "degraded":
        return Answer(
            "problem", f"the slow rank of the request {key} was not found: {record.get('line')}", log
        )
    whose = asked.user.name if asked.user else "the user who runs this"
    status = Path(str(results)).stat()
    if asked.user is not None and status.st_uid != asked.user.uid:
        return Answer("problem", f"the results {results} are user {status.st_uid}'s and not {whose}'s", log)
    return Answer("ok", f"the drain analysed the job as {whose}, and found its slow rank")


def _reported(spool: Spool, key: str) -> Answer:
    if not spool.drain_settings().get("webhook"):
        return Answer("ok", "the drain has no webhook, so findings are written and no message is sent")
    _comes_true(lambda: spool.reported(key) is not None, _MESSAGE_S)
    trouble = spool.reported(key)
    if trouble is None:
        return Answer(
            "problem", f"no message was sent about {key}", "is --tell never, or does the webhook hang?"
        )
    if trouble:
        return Answer(
            "problem", f"the message about {key} did not arrive: {trouble}", "check the webhook's address"
        )
    return Answer("ok", "the webhook took the message about it")


def _record(spool: Spool, key: str) -> dict[str, object] | None:
    for area in ("done", "failed"):
        try:
            document: dict[str, object] = json_of(spool.path(area, key, ".json").read_bytes())
        except (OSError, ValueError):
            continue
        return document
    return None


def _comes_true(holds: Callable[[], bool], deadline_s: float) -> bool:
    end_s = time.monotonic() + deadline_s
    while not holds():
        if time.monotonic() > end_s:
            return False
        time.sleep(0.5)
    return True


#: `unknown`: nothing here tells, and the advice says what would.
AnswerState = Literal["ok", "problem", "unknown"]


@dataclass(frozen=True)
class Answer:
    """The answer to one question."""

    state: AnswerState
    text: str
    advice: str = ""

    @property
    def line(self) -> str:
        """The answer in one line."""
        return f"{self.state}: {self.text}" + (f"\n  {self.advice}" if self.advice else "")
