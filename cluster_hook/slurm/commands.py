"""Slurm's own commands, and what their output means. Nothing else in the project calls Slurm."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from cluster_hook.job import FOLLOWED_MARK, FinishedJob
from cluster_hook.processes import NOT_STARTED, SCHEDULER_DEADLINE_S, run_command
from cluster_hook.slurm.nodelist import expand_node_list
from cluster_run.errors import InputError, UsageError

# A field of `scontrol -o` begins with a capital letter after a blank; values may hold blanks and `=`.
_FIELD = re.compile(r"(?:^|\s)([A-Z][A-Za-z/_:]*)=")
#: Slurm's own format has no time zone; these are seconds since 1970.
_TIMES = {"SLURM_TIME_FORMAT": "%s"}
_NO_SLURM = "call it where Slurm's commands are, and in PATH"


def read_jobs(job: str) -> tuple[FinishedJob, ...]:
    """Return the job as slurmctld knows it; one value for each task of a job array.

    Raises:
        InputError: Slurm does not answer, or does not know the job any more.
    """
    text = _describe(job)
    leader = _leader(text)
    # Asked for one part of a heterogeneous job, Slurm describes only that.
    return parse_jobs(_describe(leader) if leader not in ("", job) else text)


def _leader(line: str) -> str:
    """Return the number of the heterogeneous job that a job is a part of; empty where it is none."""
    # Before the job's name, which could say anything.
    match = re.match(r"JobId=\d+ HetJobId=(\d+) ", line)
    return match.group(1) if match else ""


def _describe(job: str) -> str:
    end = run_command(
        ["scontrol", "--oneliner", "show", "job", job],
        name="scontrol",
        deadline_s=SCHEDULER_DEADLINE_S,
        capture=True,
        environment=_TIMES,
    )
    if end.code != 0:
        advice = "slurmctld forgets a job MinJobAge after its end; analyse its directory: cluster-analyse DIR"
        reason = f"job {job}: Slurm did not describe it: {end.reason}"
        raise InputError(reason, _NO_SLURM if end.code == NOT_STARTED else advice)
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
    # Nothing that it writes is older than its submission.
    submitted = replace(_parse_job(line), began_s=_seconds(fields.get("SubmitTime", "")), ended_s=None)
    return SubmittedJob(submitted, fields.get("Partition", ""), fields.get("Account", ""))


def parse_jobs(text: str) -> tuple[FinishedJob, ...]:
    """Parse the output of `scontrol -o show job`, one job a line; array masters without nodes are left out
    where their tasks are listed. The parts of a heterogeneous job are one job.
    """
    parts: dict[str, list[FinishedJob]] = {}
    for line in text.splitlines():
        if line.startswith("JobId="):
            job = _parse_job(line)
            parts.setdefault(_leader(line) or job.job, []).append(job)
    jobs = tuple(_whole_job(number, of_one) for number, of_one in parts.items())
    started = tuple(job for job in jobs if job.nodes)
    return started or jobs


def _whole_job(number: str, parts: Sequence[FinishedJob]) -> FinishedJob:
    """Return the job that the parts of a heterogeneous job are; the first one speaks for it."""
    first = parts[0]
    if len(parts) == 1:
        return replace(first, job=number)
    # What is worse than COMPLETED in one part is so for all, and what has not ended above all.
    states = [part.state for part in sorted(parts, key=lambda part: part.has_ended)]
    return replace(
        first,
        job=number,
        state=next((state for state in states if state != "COMPLETED"), first.state),
        nodes=tuple(dict.fromkeys(node for part in parts for node in part.nodes or ())),
        began_s=min((part.began_s for part in parts if part.began_s is not None), default=None),
        ended_s=max((part.ended_s for part in parts if part.ended_s is not None), default=None),
    )


def _parse_job(line: str) -> FinishedJob:
    fields = _fields(line)
    work_dir = fields.get("WorkDir", "")
    if not work_dir.startswith("/"):
        raise InputError(f"job {fields.get('JobId', '?')}: Slurm named no work directory: {work_dir!r}")
    nodes = expand_node_list(fields.get("NodeList", ""))
    return FinishedJob(
        job=fields["JobId"],
        name=fields.get("JobName", ""),
        user=fields.get("UserId", "").partition("(")[0],
        state=fields.get("JobState", "").partition(" ")[0],
        nodes=nodes,
        work_dir=Path(work_dir),
        comment=fields.get("Comment", ""),
        array_job=fields.get("ArrayJobId", ""),
        array_task=fields.get("ArrayTaskId", ""),
        began_s=_seconds(fields.get("StartTime", "")) if nodes else None,
        ended_s=_seconds(fields.get("EndTime", "")) if nodes else None,
    )


def _seconds(text: str) -> float | None:
    """Return a time of Slurm's in seconds since 1970; None for `Unknown` and the like."""
    if text.isdecimal():
        return float(text)
    # Where Slurm keeps to its own format all the same: local time.
    with contextlib.suppress(ValueError):
        return datetime.fromisoformat(text).timestamp()
    return None


def _fields(line: str) -> dict[str, str]:
    matches = list(_FIELD.finditer(line))
    ends = [match.start() for match in matches[1:]] + [len(line)]
    fields: dict[str, str] = {}
    for match, end in zip(matches, ends, strict=True):
        value = line[match.end() : end].strip()
        # The first one wins: a comment of the user's may hold ` WorkDir=/elsewhere` after the true one only.
        fields.setdefault(match.group(1), "" if value == "(null)" else value)
    return fields


def read_accounted(known: FinishedJob) -> FinishedJob | None:
    """Return a job with nodes, final state and times from Slurm's accounting; None where it has no answer."""
    end = run_command(
        [
            "sacct",
            "--noheader",
            "--parsable2",
            "--allocations",
            "--format=NodeList,State,Start,End",
            f"--jobs={known.job}",
        ],
        name="sacct",
        deadline_s=SCHEDULER_DEADLINE_S,
        capture=True,
        environment=_TIMES,
    )
    fields = end.stdout.partition("\n")[0].split("|")
    if end.code != 0 or len(fields) != 4 or fields[0] in ("", "None assigned"):
        return None
    nodes, state, began, ended = fields
    return replace(
        known,
        nodes=expand_node_list(nodes),
        state=state.partition(" ")[0],
        began_s=_seconds(began) or known.began_s,
        ended_s=_seconds(ended),
    )


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


def read_configuration() -> dict[str, str]:
    """Return slurmctld's configuration as it says it; empty values are left out.

    Raises:
        InputError: Slurm does not answer.
    """
    end = run_command(
        ["scontrol", "show", "config"],
        name="scontrol",
        deadline_s=SCHEDULER_DEADLINE_S,
        capture=True,
        environment=_TIMES,
    )
    if end.code != 0:
        reason = f"Slurm did not say its configuration: {end.reason}"
        raise InputError(reason, _NO_SLURM if end.code == NOT_STARTED else "")
    pairs = (line.partition("=")[::2] for line in end.stdout.splitlines())
    return {name.strip(): value.strip() for name, value in pairs if value.strip() not in ("", "(null)")}


def cancel(job: str) -> None:
    """Cancel a job; one that has ended is no trouble."""
    run_command(["scancel", job], name="scancel", deadline_s=SCHEDULER_DEADLINE_S, capture=True)


def check_submission(arguments: Sequence[str]) -> None:
    """Ask Slurm whether it would take a job with these arguments; nothing is submitted.

    Raises:
        UsageError: it would not.
    """
    end = run_command(
        ["sbatch", "--test-only", *arguments, "--wrap", "true"],
        name="sbatch",
        deadline_s=SCHEDULER_DEADLINE_S,
        capture=True,
        # It tells where and when such a job would start, as if there were one.
        log=io.StringIO(),
    )
    if end.code != 0:
        raise UsageError(
            f"the post-job would be refused: {end.reason}", "nothing was submitted; see --post-arg"
        )
