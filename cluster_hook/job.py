"""A job, its request to the hook (its comment), and both as text that travels."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from cluster_run.errors import InputError, UsageError, read_as
from cluster_run.files import json_of

#: How the data of a job are reached: `auto` decides by the file system of the job's work directory.
Via = Literal["auto", "shared", "ssh", "srun"]
VIAS: tuple[Via, ...] = get_args(Via)

#: Names of our own jobs begin with one of these: neither the epilog nor the drain follows them.
OWN_JOB_PREFIXES = ("cluster-hook", "cluster-collect")

#: In the comment of a job that a post-job follows.
FOLLOWED_MARK = "profile_by=post-job"

_COMMENT_KEYS = ("profile_dir", "profile_results", "profile_via", "rank_table")


#: Slurm's states of a job that has not ended, or begins again: one that is requeued is COMPLETING first.
_STATES_BEFORE_THE_END = frozenset(
    {
        *("CONFIGURING", "PENDING", "RUNNING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING", "COMPLETING"),
        *("REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESV_DEL_HOLD", "STAGE_OUT"),
    }
)


@dataclass(frozen=True)
class ReportedJob:
    """A job as its scheduler reports it, mostly after its end, however it ended.

    `state` is the scheduler's own word, empty where it is not known.

    `nodes` is empty for a job that never started, None where Slurm has forgotten them. `array_job` and
    `array_task` are empty unless the job is one task of a job array. `began_s` and `ended_s` say when it ran,
    in seconds since 1970; None if unknown. For a requeued job they are the last run's. `uid` is the owner of
    the data that it wrote, None if unknown.
    """

    job: str
    name: str
    user: str
    state: str
    nodes: tuple[str, ...] | None
    work_dir: Path
    comment: str
    array_job: str = ""
    array_task: str = ""
    began_s: float | None = None
    ended_s: float | None = None
    uid: int | None = None

    @property
    def called(self) -> str:
        """Its number as people know it: a task of an array is `<array>_<task>`, as in squeue."""
        return f"{self.array_job}_{self.array_task}" if self.array_task else self.job

    @property
    def has_ended(self) -> bool:
        """Whether the job has ended for good, as far as its state says."""
        return self.state not in _STATES_BEFORE_THE_END


@dataclass(frozen=True)
class Wording:
    """Advice to people, in the words of the interface that they used."""

    own_directory: str = "let each job write to a directory of its own, profile_dir=…/%j"
    on_nodes: str = "on its nodes' own disks: profile_via=ssh in its comment"
    nodes_unknown: str = "Slurm has forgotten its nodes"


OF_SLURM = Wording()


@dataclass(frozen=True)
class ProfileRequest:
    """Request in a job's comment; paths are absolute, with `%N` left where each node has its own.

    `results` is None where the job leaves the choice to the hook. `is_own` says that no other job writes to
    `profile_dir`, because the job's number is part of its name.
    """

    profile_dir: str
    results: Path | None
    via: Via
    rank_table: Path | None
    is_own: bool = False
    wording: Wording = OF_SLURM

    @property
    def is_per_node(self) -> bool:
        """Whether each node has a directory of its own."""
        return "%N" in self.profile_dir


def parse_request(job: ReportedJob) -> ProfileRequest | None:
    """Return what the comment of `job` asks for; None where it asks for nothing.

    The comment is a list of `key=value` separated by commas, semicolons or spaces; other people's keys are
    passed over. Paths are relative to the job's work directory and may hold sbatch's patterns %j %A %a %x
    %u and, in `profile_dir`, %N.

    Raises:
        UsageError: a key twice, an unknown `profile_via`, or a path with an unknown pattern.
    """
    values: dict[str, str] = {}
    for token in _tokens(job):
        key, equals, value = token.partition("=")
        if not equals or key not in _COMMENT_KEYS:
            continue
        if key in values:
            raise UsageError(f"job {job.job}: its comment says {key} twice: {job.comment!r}")
        values[key] = value
    if not values.get("profile_dir"):
        return None
    via = values.get("profile_via", "auto")
    if via not in VIAS:
        raise UsageError(
            f"job {job.job}: its comment says profile_via={via}", f"write one of {', '.join(VIAS)}"
        )
    results, rank_table = values.get("profile_results"), values.get("rank_table")
    return ProfileRequest(
        profile_dir=str(job.work_dir / fill_pattern(values["profile_dir"], job, keep_node=True)),
        results=job.work_dir / fill_pattern(results, job) if results else None,
        via=via,
        rank_table=job.work_dir / fill_pattern(rank_table, job) if rank_table else None,
        is_own=_is_own(values["profile_dir"], is_task=bool(job.array_job)),
    )


def with_profile_dir(job: ReportedJob, profile_dir: str | None) -> ReportedJob:
    """Return the job as if its comment named this directory; without one, the job as it is."""
    if profile_dir is None:
        return job
    others = [token for token in _tokens(job) if token and not token.startswith("profile_dir=")]
    return replace(job, comment=",".join([*others, f"profile_dir={profile_dir}"]))


def _tokens(job: ReportedJob) -> list[str]:
    return re.split(r"[,;\s]+", job.comment)


def _is_own(pattern: str, *, is_task: bool) -> bool:
    """Whether no other job has this name for its directory; all tasks of a job array share `%A`."""
    return "%j" in pattern or ("%A" in pattern and (not is_task or "%a" in pattern))


def fill_pattern(text: str, job: ReportedJob, *, keep_node: bool = False) -> str:
    """Fill sbatch's file name patterns in `text`; `%N` stays as it is with `keep_node`.

    Raises:
        UsageError: a `%` that begins no known pattern.
    """
    values = {
        "j": job.job,
        "A": job.array_job or job.job,
        "a": job.array_task or "0",
        "x": job.name.replace("/", "_"),
        "u": job.user,
    }
    known = values | ({"N": "%N"} if keep_node else {})
    if any(letter not in known for letter in re.findall("%(.?)", text)):
        everywhere = " ".join(f"%{letter}" for letter in values)
        raise UsageError(
            f"{f'job {job.job}: ' if job.job else ''}the path {text!r} has an unknown pattern",
            f"{everywhere} are known everywhere, and %N in profile_dir",
        )
    return re.sub("%(.)", lambda match: known[match[1]], text)


def is_own_job(name: str) -> bool:
    """Whether a job is one of the hook's own, which nothing must follow."""
    return name.startswith(OWN_JOB_PREFIXES)


SCHEMA = "cluster-hook-job/1"


def job_to_text(job: ReportedJob) -> str:
    """Return the job as one line of JSON."""
    return json.dumps({"schema": SCHEMA, **asdict(job), "work_dir": str(job.work_dir)})


def job_from_text(text: str) -> ReportedJob:
    """Return the job that `job_to_text` wrote.

    Raises:
        InputError: not such a text.
    """
    with read_as(f"not a job: {text[:80]!r}"):
        document = json_of(text)
        if document.pop("schema") != SCHEMA:
            raise InputError(f"not a job of schema {SCHEMA}: {text[:80]!r}")
        nodes = document.pop("nodes")
        work_dir = Path(document.pop("work_dir"))
        return ReportedJob(**document, work_dir=work_dir, nodes=None if nodes is None else tuple(nodes))
