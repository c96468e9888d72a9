"""Slurm's own commands, and what their output means. Nothing else in the project calls Slurm."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import IO

from cluster_hook.isolation import Identity, our_settings
from cluster_hook.job import FOLLOWED_MARK, ReportedJob
from cluster_hook.processes import NOT_STARTED, SCHEDULER_DEADLINE_S, CommandEnd, run_command
from cluster_hook.slurm.nodelist import expand_node_list
from cluster_run.errors import InputError, UsageError

# A field of `scontrol -o` begins with a capital letter after a blank; values may hold blanks and `=`.
_FIELD = re.compile(r"(?:^|\s)([A-Z][A-Za-z/_:]*)=")
#: The fields that are read of a job's record: those before its name, and those from its name on.
_NUMBERS = ("JobId", "ArrayJobId", "ArrayTaskId", "HetJobId")
_TEXTS = (
    "UserId", "Account", "JobState", "SubmitTime", "StartTime", "EndTime", "Partition", "NodeList",
    "WorkDir", "Comment",
)  # fmt: skip
_USER = re.compile(r"(.*)\((\d+)\)")
#: Slurm's own format has no time zone; these are seconds since 1970.
_TIMES = {"SLURM_TIME_FORMAT": "%s"}
_RENAME = "no part of a job's name, comment and paths may look like a field of Slurm's, such as UserId="


def _no_answer(end: CommandEnd) -> str:
    """Return the advice for a question that Slurm did not answer."""
    if end.code == NOT_STARTED:
        return "call it where Slurm's commands are, and in PATH"
    return "see whether slurmctld runs (scontrol ping), and where slurm.conf is (SLURM_CONF)"


def _called(
    program: str,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    identity: Identity | None = None,
    log: IO[str] | None = None,
) -> CommandEnd:
    """Run a command of Slurm's and return how it ended, with what it printed."""
    return run_command(
        [program, *arguments],
        name=program,
        deadline_s=SCHEDULER_DEADLINE_S,
        capture=True,
        environment=environment,
        identity=identity,
        log=log,
    )


class ForgottenJobError(InputError):
    """Slurm answers, but has forgotten the job."""


class AmbiguousRecordError(InputError):
    """Slurm's record of a job may hold its user's words, made to look like Slurm's."""


def read_jobs(job: str) -> tuple[ReportedJob, ...]:
    """Return the job as slurmctld knows it; one value for each task of a job array.

    Raises:
        ForgottenJobError: Slurm has forgotten the job.
        AmbiguousRecordError: a name, comment or path in it could speak for other fields.
        InputError: Slurm does not answer.
    """
    records = _records(_describe(job), job)
    leader = records[0].get("HetJobId", "")
    # Asked for one part of a heterogeneous job, Slurm describes only that.
    return _jobs(_records(_describe(leader), leader) if leader not in ("", job) else records)


def _describe(job: str) -> str:
    end = _called("scontrol", "--oneliner", "show", "job", job, environment=_TIMES, log=io.StringIO())
    if end.code == 0:
        return end.stdout
    reason = f"job {job}: Slurm did not describe it: {end.reason}"
    if any("Invalid job id" in line for line in end.last_lines):
        advice = "slurmctld forgets a job MinJobAge after its end; analyse its directory: cluster-analyse DIR"
        raise ForgottenJobError(reason, advice)
    raise InputError(reason, _no_answer(end))


@dataclass(frozen=True)
class SubmittedJob:
    """A job that was just submitted, and where it may run."""

    job: ReportedJob
    partition: str
    account: str


def read_submitted(job: str) -> SubmittedJob:
    """Return a job that was just submitted.

    Raises:
        InputError: Slurm does not answer.
    """
    fields = _records(_describe(job), job)[0]
    # Nothing that it writes is older than its submission.
    submitted = replace(_job(fields), began_s=_seconds(fields.get("SubmitTime", "")), ended_s=None)
    return SubmittedJob(submitted, fields.get("Partition", ""), fields.get("Account", ""))


def _jobs(records: Sequence[Mapping[str, str]]) -> tuple[ReportedJob, ...]:
    """Array masters without nodes are left out where their tasks are listed. The parts of a heterogeneous job
    are one job.
    """
    parts: dict[str, list[ReportedJob]] = {}
    for fields in records:
        job = _job(fields)
        parts.setdefault(fields.get("HetJobId") or job.job, []).append(job)
    jobs = tuple(_whole_job(number, of_one) for number, of_one in parts.items())
    started = tuple(job for job in jobs if job.nodes)
    return started or jobs


def _records(text: str, asked: str) -> tuple[Mapping[str, str], ...]:
    """Return the fields of each job that Slurm describes.

    Names, comments and paths are the user's words. They may look like fields, or like whole records after a
    line break, but cannot take a true field away. So a record that says something twice is not believed, nor
    are records of other jobs than the one asked for, or of several users.
    """
    records = [_fields(line) for line in text.split("\n") if line.startswith("JobId=")]
    base = re.split(r"[_+]", asked)[0]
    for fields in records:
        if missing := [name for name in ("UserId", "NodeList", "WorkDir") if name not in fields]:
            raise AmbiguousRecordError(
                f"job {asked}: Slurm's record has no {missing[0]}, as where a line break stands in the job's "
                f"name, comment or a path: {' '.join(f'{key}={said}' for key, said in fields.items())[:200]}",
                "submit it without line breaks in these",
            )
        if base not in (fields["JobId"], fields.get("ArrayJobId"), fields.get("HetJobId")):
            raise AmbiguousRecordError(f"job {asked}: Slurm described job {fields['JobId'][:40]}")
    if not records:
        raise AmbiguousRecordError(f"job {asked}: Slurm described no job: {text[:80]!r}")
    if len({fields["UserId"] for fields in records}) > 1 or len({one["JobId"] for one in records}) < len(
        records
    ):
        raise AmbiguousRecordError(
            f"job {asked}: its name or comment looks like another job's record", _RENAME
        )
    return tuple(records)


def _whole_job(number: str, parts: Sequence[ReportedJob]) -> ReportedJob:
    """Return the job that the parts of a heterogeneous job are; the first one speaks for it."""
    first = parts[0]
    if len(parts) == 1:
        return replace(first, job=number)
    # A state worse than COMPLETED in one part counts for all; a part that has not ended counts most.
    states = [part.state for part in sorted(parts, key=lambda part: part.has_ended)]
    return replace(
        first,
        job=number,
        state=next((state for state in states if state != "COMPLETED"), first.state),
        nodes=tuple(dict.fromkeys(node for part in parts for node in part.nodes or ())),
        began_s=min((part.began_s for part in parts if part.began_s is not None), default=None),
        ended_s=max((part.ended_s for part in parts if part.ended_s is not None), default=None),
    )


def _job(fields: Mapping[str, str]) -> ReportedJob:
    work_dir, user = fields["WorkDir"], _USER.fullmatch(fields["UserId"])
    if not work_dir.startswith("/"):
        raise InputError(f"job {fields['JobId']}: Slurm named no work directory: {work_dir!r}")
    if user is None:
        raise InputError(f"job {fields['JobId']}: Slurm named no user: {fields['UserId']!r}")
    nodes = expand_node_list(fields["NodeList"])
    return ReportedJob(
        job=fields["JobId"],
        name=fields["JobName"],
        user=user.group(1),
        uid=int(user.group(2)),
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
    head, _, rest = line.partition(" JobName=")
    matches = [*_FIELD.finditer(rest)]
    ends = [match.start() for match in matches] + [len(rest)]
    pairs = [("JobName", rest[: ends[0]].strip())]
    pairs += [
        (match.group(1), rest[match.end() : end].strip())
        for match, end in zip(matches, ends[1:], strict=True)
        if match.group(1) in _TEXTS
    ]
    # Slurm writes the numbers of a job before its name, which could say anything.
    pairs += [pair for word in head.split(" ") if (pair := word.partition("=")[::2])[0] in _NUMBERS]
    fields: dict[str, str] = {}
    for name, value in pairs:
        if name in fields:
            number = head.partition(" ")[0].removeprefix("JobId=")[:40]
            raise AmbiguousRecordError(f"job {number}: Slurm's record of it says {name} twice", _RENAME)
        fields[name] = "" if value == "(null)" else value
    return fields


def read_accounted(known: ReportedJob) -> ReportedJob | None:
    """Return a job with nodes, final state and times from Slurm's accounting; None where it has no answer."""
    form = ("--noheader", "--parsable2", "--allocations", "--format=NodeList,State,Start,End")
    end = _called("sacct", *form, f"--jobs={known.job}", environment=_TIMES, log=io.StringIO())
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


def mark_as_followed(job: ReportedJob) -> None:
    """Say in the job's comment that a post-job follows it, so that the site's drain leaves it alone.

    Where Slurm does not allow that, the job is analysed twice, with the same result.
    """
    comment = f"{job.comment},{FOLLOWED_MARK}".removeprefix(",")
    _called("scontrol", "update", f"JobId={job.job}", f"Comment={comment}")


def submit(arguments: Sequence[str], identity: Identity | None = None) -> str:
    """Run `sbatch --parsable` with `arguments`; return the job's number.

    Raises:
        InputError: sbatch refused the job.
    """
    # A post-job of ours reads them when its turn comes; another user's may not see them.
    settings = our_settings() if identity is None else None
    end = _called("sbatch", "--parsable", *arguments, environment=settings, identity=identity)
    # With several clusters sbatch answers `number;cluster`.
    number = end.stdout.strip().partition(";")[0]
    if end.code != 0 or not number.isdecimal():
        raise InputError(f"the job was not submitted: {end.reason}")
    return number


def read_configuration() -> dict[str, str]:
    """Return slurmctld's configuration in its own words; empty values are left out.

    Raises:
        InputError: Slurm does not answer.
    """
    end = _called("scontrol", "show", "config", environment=_TIMES)
    if end.code != 0:
        raise InputError(f"Slurm did not say its configuration: {end.reason}", _no_answer(end))
    pairs = (line.partition("=")[::2] for line in end.stdout.splitlines())
    return {name.strip(): value.strip() for name, value in pairs if value.strip() not in ("", "(null)")}


def cancel(job: str) -> None:
    """Cancel a job; one that has ended is no trouble."""
    _called("scancel", job)


def check_submission(arguments: Sequence[str]) -> None:
    """Ask Slurm whether it would take a job with these arguments; nothing is submitted.

    Raises:
        UsageError: it would not.
    """
    # Not for the log: it tells where and when such a job would start, as if there were one.
    end = _called("sbatch", "--test-only", *arguments, "--wrap", "true", log=io.StringIO())
    if end.code != 0:
        raise UsageError(
            f"the post-job would be refused: {end.reason}", "nothing was submitted; see --post-arg"
        )
