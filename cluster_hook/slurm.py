"""Slurm's own commands, and what their output means. Nothing else in the project calls Slurm."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster_hook.job import FOLLOWED_MARK, FinishedJob
from cluster_hook.nodelist import expand_node_list
from cluster_hook.processes import SCHEDULER_DEADLINE_S, run_command
from cluster_run.errors import InputError

# A field of `scontrol -o` begins with a capital letter after a blank; values may hold blanks and `=`.
_FIELD = re.compile(r"(?:^|\s)([A-Z][A-Za-z/_:]*)=")


def read_jobs(job: str) -> tuple[FinishedJob, ...]:
    """Return the job as slurmctld knows it; one value for each task of a job array.

    Raises:
        InputError: Slurm does not answer, or does not know the job any more.
    """
    return parse_jobs(_describe(job))


def _describe(job: str) -> str:
    end = run_command(
        ["scontrol", "--oneliner", "show", "job", job],
        name="scontrol",
        deadline_s=SCHEDULER_DEADLINE_S,
        capture=True,
    )
    if end.code != 0:
        raise InputError(
            f"job {job}: Slurm did not describe it: {end.reason}",
            "slurmctld forgets a job MinJobAge after its end; use --request or analyse the directory by hand",
        )
    return end.stdout


@dataclass(frozen=True)
class SubmittedJob:
    """A job that was just submitted, and where it may run."""

    job: FinishedJob
    partition: str
    account: str


def read_submitted(job: str) -> SubmittedJob:
    """Return a job that was just submitted.

    Raises:
        InputError: Slurm does not answer.
    """
    line = _describe(job).partition("\n")[0]
    fields = _fields(line)
    return SubmittedJob(_parse_job(line), fields.get("Partition", ""), fields.get("Account", ""))


def parse_jobs(text: str) -> tuple[FinishedJob, ...]:
    """Parse the output of `scontrol -o show job`, one job a line; array masters without nodes are left out
    where their tasks are listed.
    """
    jobs = tuple(_parse_job(line) for line in text.splitlines() if line.startswith("JobId="))
    started = tuple(job for job in jobs if job.nodes)
    return started or jobs


def _parse_job(line: str) -> FinishedJob:
    fields = _fields(line)
    work_dir = fields.get("WorkDir", "")
    if not work_dir.startswith("/"):
        raise InputError(f"job {fields.get('JobId', '?')}: Slurm named no work directory: {work_dir!r}")
    return FinishedJob(
        job=fields["JobId"],
        name=fields.get("JobName", ""),
        user=fields.get("UserId", "").partition("(")[0],
        state=fields.get("JobState", "").partition(" ")[0],
        nodes=expand_node_list(fields.get("NodeList", "")),
        work_dir=Path(work_dir),
        comment=fields.get("Comment", ""),
        array_job=fields.get("ArrayJobId", ""),
        array_task=fields.get("ArrayTaskId", ""),
    )


def _fields(line: str) -> dict[str, str]:
    matches = list(_FIELD.finditer(line))
    ends = [match.start() for match in matches[1:]] + [len(line)]
    fields: dict[str, str] = {}
    for match, end in zip(matches, ends, strict=True):
        value = line[match.end() : end].strip()
        # The first one wins: a comment of the user's may hold ` WorkDir=/elsewhere` after the true one only.
        fields.setdefault(match.group(1), "" if value == "(null)" else value)
    return fields


def read_accounted_nodes(job: str) -> tuple[tuple[str, ...], str] | None:
    """Return the nodes and the final state of a job from Slurm's accounting; None where it has no answer."""
    end = run_command(
        ["sacct", "--noheader", "--parsable2", "--allocations", "--format=NodeList,State", f"--jobs={job}"],
        name="sacct",
        deadline_s=SCHEDULER_DEADLINE_S,
        capture=True,
    )
    fields = end.stdout.partition("\n")[0].split("|")
    if end.code != 0 or len(fields) != 2 or fields[0] in ("", "None assigned"):
        return None
    return expand_node_list(fields[0]), fields[1].partition(" ")[0]


def mark_as_followed(job: FinishedJob) -> None:
    """Say in the job's comment that a post-job follows it, so that the site's drain leaves it alone.

    Where Slurm does not allow that, the job is analysed twice, with the same result.
    """
    run_command(
        ["scontrol", "update", f"JobId={job.job}", f"Comment={job.comment},{FOLLOWED_MARK}"],
        name="scontrol",
        deadline_s=SCHEDULER_DEADLINE_S,
        capture=True,
    )


def submit(arguments: Sequence[str]) -> str:
    """Run `sbatch --parsable` with `arguments`; return the job's number.

    Raises:
        InputError: sbatch refused the job.
    """
    end = run_command(
        ["sbatch", "--parsable", *arguments], name="sbatch", deadline_s=SCHEDULER_DEADLINE_S, capture=True
    )
    # With several clusters sbatch answers `number;cluster`.
    number = end.stdout.strip().partition(";")[0]
    if end.code != 0 or not number.isdecimal():
        raise InputError(f"the job was not submitted: {end.reason}")
    return number
