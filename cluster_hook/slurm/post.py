"""`cluster-hook slurm-post`: what the post-job and the drain's worker run."""

from __future__ import annotations

from dataclasses import replace

from cluster_hook.follow.pipeline import FollowOptions, failed, follow, not_ended, nothing_to_do
from cluster_hook.job import FinishedJob, is_own_job, parse_request
from cluster_hook.slurm.commands import read_accounted, read_jobs
from cluster_hook.telling.outcome import Outcome
from cluster_run.errors import InputError, UsageError


def find_jobs(number: str, known: FinishedJob | None) -> tuple[FinishedJob, ...]:
    """Return the job as Slurm knows it now, else as it was `known` at submission.

    Raises:
        InputError: Slurm does not know the job any more, and nothing was known before.
    """
    try:
        return read_jobs(number)
    except InputError:
        if known is None:
            raise
    return (read_accounted(known) or replace(known, nodes=None, state=""),)


def with_state(job: FinishedJob) -> FinishedJob:
    """Return a job that the epilog reported with the state that Slurm says, where it still says it."""
    try:
        known = {one.job: one for one in read_jobs(job.job)}
    except InputError:
        return job
    if job.job not in known:
        return job
    now = known[job.job]
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
