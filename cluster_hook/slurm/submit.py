"""`cluster-hook slurm-submit`: a job, and the post-job that follows it however it ends."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cluster_hook.isolation import our_command
from cluster_hook.job import job_to_text, parse_request, with_profile_dir
from cluster_hook.slurm.commands import SubmittedJob, mark_as_followed, read_submitted, submit
from cluster_run.errors import ClusterError

POST_JOB_NAME = "cluster-hook"

#: Why a job is not followed that does not say where it writes.
NO_DIRECTORY = "it names no profile directory: give --comment=profile_dir=DIR or --profile-dir DIR"


@dataclass(frozen=True)
class Submission:
    """Submitted jobs. If only the job itself was submitted, `post_job` is empty and `trouble` says why."""

    job: str
    post_job: str
    trouble: str = ""


def submit_with_post_job(
    job_arguments: Sequence[str],
    post_arguments: Sequence[str],
    hook_arguments: Sequence[str],
    profile_dir: str | None,
) -> Submission:
    """Submit a job as `sbatch` would, then its post-job; the job's comment is left to whoever wrote it.

    Raises:
        InputError: sbatch refused the job itself; nothing was submitted.
    """
    number = submit(job_arguments)
    try:
        submitted = read_submitted(number)
        named = replace(submitted, job=with_profile_dir(submitted.job, profile_dir))
        if parse_request(named.job) is None:
            return Submission(number, "", NO_DIRECTORY)
        where = [] if profile_dir is None else [f"--profile-dir={profile_dir}"]
        post_job = submit(post_job_arguments(named, post_arguments, [*where, *hook_arguments]))
        mark_as_followed(submitted.job)
        return Submission(number, post_job)
    except ClusterError as error:
        return Submission(number, "", str(error))


def post_job_arguments(
    submitted: SubmittedJob, post_arguments: Sequence[str], hook_arguments: Sequence[str]
) -> list[str]:
    """Return the `sbatch` arguments of the post-job.

    It runs where the job may run (same partition and account) and writes its log beside the job's. The
    record of the job goes with it, because slurmctld forgets a job minutes after its end while the post-job
    may wait for hours.
    """
    job = submitted.job
    command = our_command(
        "cluster_hook", "slurm-post", "--slurm-job", job.job, "--known-job", job_to_text(job), *hook_arguments
    )
    arguments = [
        f"--dependency=afterany:{job.job}",
        f"--job-name={POST_JOB_NAME}-{job.job}",
        f"--chdir={job.work_dir}",
        f"--output={POST_JOB_NAME}-{job.job}.out",
        "--ntasks-per-node=1",
    ]
    arguments += [f"--partition={submitted.partition}"] if submitted.partition else []
    arguments += [f"--account={submitted.account}"] if submitted.account else []
    return [*arguments, *post_arguments, "--wrap", "exec " + shlex.join(command)]
