"""What `cluster-hook slurm-post` does, as the user of the job that ended."""

from __future__ import annotations

from dataclasses import replace

from cluster_hook.follow.pipeline import FollowOptions, failed, follow, not_ended, nothing_to_do
from cluster_hook.job import ReportedJob, is_own_job, parse_request
from cluster_hook.slurm.commands import ForgottenJobError, read_accounted, read_jobs
from cluster_hook.telling.outcome import Outcome
from cluster_run.errors import UsageError


def find_jobs(number: str, known: ReportedJob | None) -> tuple[ReportedJob, ...]:
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


def follow_one(job: ReportedJob, options: FollowOptions) -> Outcome:
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
