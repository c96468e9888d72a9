"""Root's side: how a job ended, as Slurm says, and the process of the job's user in which its data are read.

That user may write in its name. So it reports findings only; the job's id, name and end come from here.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import IO

from cluster_hook.follow.pipeline import failed
from cluster_hook.isolation import identity_of, our_command
from cluster_hook.job import ReportedJob, job_to_text
from cluster_hook.processes import run_command
from cluster_hook.slurm.commands import ForgottenJobError, read_accounted, read_jobs
from cluster_run.errors import ClusterError, InputError, in_words
from cluster_tell.outcome import Outcome, outcome_from_text

#: Collecting, analysing and fetching the raw files of suspects have a deadline each.
_N_PROCESSES = 3
#: The worker gets this much longer than the work's own deadlines, so that it can say which one passed.
_MARGIN_S = 120.0


def with_state(job: ReportedJob) -> ReportedJob:
    """Return a job that the epilog reported with state and times as Slurm says them, where it still knows it.

    Raises:
        AmbiguousRecordError: Slurm's record of the job may be its user's words.
        InputError: Slurm does not answer. Then it is unknown how the job ended, and whether it runs again.
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


def follow_as_its_user(
    job: ReportedJob,
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
        return failed(job, None, "the user of the job is not known")
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
        return failed(job, None, in_words(error))
    try:
        said = outcome_from_text(end.stdout)
    except ClusterError:
        return failed(job, None, end.reason)
    return replace(said, job=job.called, job_name=job.name, job_state=job.state)
