"""`cluster-hook slurm-post`: what the post-job runs, and the process in which root has a job's data read.

That process is the job's user's, who may write in its name. So it reports findings only; the job's id, name
and end come from the process that asked.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import IO

from cluster_hook.follow.pipeline import FollowOptions, failed, follow, not_ended, nothing_to_do
from cluster_hook.identity import identity_of
from cluster_hook.isolation import our_command
from cluster_hook.job import FinishedJob, is_own_job, job_to_text, parse_request
from cluster_hook.processes import run_command
from cluster_hook.slurm.commands import ForgottenJobError, read_accounted, read_jobs
from cluster_hook.telling.outcome import Outcome, outcome_from_text
from cluster_run.errors import ClusterError, InputError, UsageError


def find_jobs(number: str, known: FinishedJob | None) -> tuple[FinishedJob, ...]:
    """Return the job as Slurm knows it now, else as it was `known` at submission.

    Raises:
        InputError: Slurm does not answer, or does not know the job any more and nothing was known before.
    """
    try:
        return read_jobs(number)
    except ForgottenJobError:
        if known is None:
            raise
    return (read_accounted(known) or replace(known, nodes=None, state=""),)


def with_state(job: FinishedJob) -> FinishedJob:
    """Return a job that the epilog reported with state and times as Slurm says them, where it still knows it.

    Raises:
        AmbiguousRecordError: Slurm's record of the job may be its user's words.
        InputError: Slurm does not answer. How the job ended, and whether it runs again, is then not known.
    """
    try:
        known = {one.job: one for one in read_jobs(job.job)}
    except ForgottenJobError:
        return read_accounted(job) or job
    now = known.get(job.job)
    # Numbers of jobs come again.
    if now is None or now.uid != job.uid:
        return job
    return replace(job, state=now.state, began_s=now.began_s, ended_s=now.ended_s)


def follow_one(job: FinishedJob, options: FollowOptions) -> Outcome:
    """Follow a job when it asks for it; never one of our own."""
    if is_own_job(job.name):
        return nothing_to_do(job, "it is one of the hook's own jobs")
    if not job.has_ended:
        return not_ended(job)
    try:
        request = parse_request(job)
    except UsageError as error:
        return failed(job, None, str(error), is_permanent=True)
    if request is None:
        return nothing_to_do(job, "its comment names no profile_dir, so it is left alone")
    return follow(job, request, options)


#: Collecting, analysing and fetching the raw files of suspects have a deadline each.
_N_PROCESSES = 3
#: The worker gets this much longer than the work's own deadlines, so that it can say which one passed.
_MARGIN_S = 120.0


def follow_as_its_user(
    job: FinishedJob,
    arguments: Sequence[str],
    *,
    deadline_s: float,
    log: IO[str] | None = None,
    held: int | None = None,
    stop: threading.Event | None = None,
) -> Outcome:
    """Follow a job in a process of the job's user; whatever happens to it is an outcome.

    Args:
        job: the job, with its user.
        arguments: the options of `slurm-post` about collecting and analysing.
        deadline_s: what each of its parts may take, in seconds.
        log: where its messages go; stderr by default.
        held: a descriptor that it inherits, to hold a lock as long as it lives.
        stop: ends it when set.
    """
    if job.uid is None:
        return failed(job, None, "nobody knows whose job it was")
    try:
        end = run_command(
            our_command("cluster_hook", "slurm-post", "--job-file=-", "--json", "--tell=never", *arguments),
            name="the worker",
            deadline_s=_N_PROCESSES * deadline_s + _MARGIN_S,
            capture=True,
            stdin=job_to_text(job) + "\n",
            log=log,
            held=held,
            identity=identity_of(job.uid),
            stop=stop,
        )
    except (InputError, OSError) as error:
        return failed(job, None, str(error))
    try:
        said = outcome_from_text(end.stdout)
    except ClusterError:
        return failed(job, None, end.reason)
    return replace(said, job=job.job, job_name=job.name, job_state=job.state)
