from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_hook.isolation import our_command
from cluster_hook.job import ReportedJob
from cluster_hook.slurm import commands
from cluster_hook.slurm.commands import SubmittedJob, read_configuration, read_jobs
from cluster_hook.slurm.submit import post_job_arguments
from cluster_run.errors import InputError
from tests.hook.jobs import a_job


def parse_jobs(text: str, asked: str) -> tuple[ReportedJob, ...]:
    """The jobs of what `scontrol --oneliner show job ASKED` says."""
    return commands._jobs(commands._records(text, asked))


# As Slurm 22.05.8 writes it, shortened in the middle.
_LINE = (
    "JobId=31 JobName=my train UserId=ada(1001) GroupId=ada(1001) MCS_label=N/A Priority=4294901759 "
    "JobState=FAILED Reason=NonZeroExitCode Dependency=(null) ExitCode=3:0 Partition=debug "
    "AllocNode:Sid=localhost:4786 ReqNodeList=(null) ExcNodeList=(null) NodeList=node[1-2] BatchHost=node1 "
    "NumNodes=2 TRES=cpu=2,node=2,billing=2 Command=/w/t.sh WorkDir=/w d/x "
    "Comment=profile_dir=prof/%j and=more  StdErr=/w/slurm-31.out Power= "
)


def test_a_job_is_read_from_scontrols_line_with_blanks_in_its_values() -> None:
    (job,) = parse_jobs(_LINE + "\n\n", "31")
    assert (job.job, job.name, job.user, job.state) == ("31", "my train", "ada", "FAILED")
    assert job.nodes == ("node1", "node2")


_WHOLE = "UserId=root(0) GroupId=root(0) JobState=COMPLETED NodeList=n1 WorkDir=/etc Comment=profile_dir=p"


@pytest.mark.parametrize(
    ("true", "forged"),
    [
        ("my train", f"x {_WHOLE}"),
        ("my train", f"x {_WHOLE}\nJobId=32 JobName=y"),
        ("my train", f"x {_WHOLE}\nJobId=31 JobName=y"),
        ("my train", "x\nUserId=root(0)"),
        ("my train", "x\u2028UserId=root(0)"),
        ("my train", "x WorkDir=/etc"),
        ("and=more", f"x\nJobId=32 JobName=y {_WHOLE}"),
        ("and=more", f"x\nJobId=31 JobName=y {_WHOLE}"),
        ("and=more", "x WorkDir=/elsewhere"),
    ],
)
def test_a_jobs_name_or_comment_cannot_speak_for_other_fields(true: str, forged: str) -> None:
    with pytest.raises(InputError, match="job 31"):
        parse_jobs(_LINE.replace(true, forged), "31")


def test_a_line_break_in_a_name_is_told_as_the_reason_why_a_field_is_missing() -> None:
    with pytest.raises(InputError) as told:
        parse_jobs(_LINE.replace("my train", "my\ntrain"), "31")
    assert "a line break stands in the job's name" in told.value.message
    assert "{" not in told.value.message


def test_the_name_of_a_task_cannot_speak_for_the_other_tasks() -> None:
    task = (
        "JobId={} ArrayJobId=40 ArrayTaskId={} JobName={} UserId=a(1) JobState=FAILED NodeList=n1 WorkDir=/w"
    )
    forged = task.format(41, 1, f"x {_WHOLE}\n" + task.format(42, 2, "y"))
    with pytest.raises(InputError, match="another job's record"):
        parse_jobs(forged.replace("UserId=a(1) JobState=FAILED NodeList=n1 WorkDir=/w", "", 1), "40")


@given(st.text(st.sampled_from("x =\n\t(0)JobIdUserWorkDiNameListCm\u2028/%,"), max_size=60))
def test_whatever_a_job_is_called_its_user_and_directory_are_the_true_ones(name: str) -> None:
    try:
        jobs = parse_jobs(_LINE.replace("my train", name), "31")
    except InputError:
        return
    assert [(job.job, job.uid, job.work_dir) for job in jobs] == [("31", 1001, Path("/w d/x"))]


def test_of_a_job_array_the_tasks_that_ran_are_followed() -> None:
    task = "JobId={} ArrayJobId=40 ArrayTaskId={} JobName=t UserId=a(1) JobState={} NodeList={} WorkDir=/w\n"
    text = task.format(42, 1, "COMPLETED", "n1") + task.format(40, "2-3", "CANCELLED", "(null)")
    (job,) = parse_jobs(text, "40")
    assert (job.job, job.array_job, job.array_task) == ("42", "40", "1")


# As Slurm 22.05.8 writes it, shortened.
_PARTS = (
    "JobId=2 HetJobId=2 HetJobOffset=0 JobName=t UserId=a(1) JobState=COMPLETED StartTime=100 EndTime=180 "
    "NodeList=node1 WorkDir=/w Comment=profile_dir=p\n"
    "JobId=3 HetJobId=2 HetJobOffset=1 JobName=t UserId=a(1) JobState={} StartTime=101 EndTime=190 "
    "NodeList=node[2-3] WorkDir=/w Comment=profile_dir=p\n"
)


@pytest.mark.parametrize(("state", "ended"), [("COMPLETED", True), ("FAILED", True), ("RUNNING", False)])
def test_the_parts_of_a_heterogeneous_job_are_one_job(state: str, ended: bool) -> None:
    (job,) = parse_jobs(_PARTS.format(state), "2")
    assert (job.job, job.nodes) == ("2", ("node1", "node2", "node3"))
    assert (job.state, job.has_ended) == (state, ended)
    assert (job.began_s, job.ended_s) == (100.0, 190.0)


def test_a_job_that_never_started_has_no_nodes_and_a_jobs_name_makes_it_no_part_of_another() -> None:
    (job,) = parse_jobs(
        "JobId=5 JobName=x HetJobId=4 UserId=a(1) JobState=CANCELLED NodeList=(null) WorkDir=/w", "5"
    )
    assert (job.job, job.nodes) == ("5", ())


@pytest.mark.parametrize(
    ("text", "began_s"), [("1795364258", 1795364258.0), ("Unknown", None), ("N/A", None), ("", None)]
)
def test_a_time_is_seconds_or_unknown(text: str, began_s: float | None) -> None:
    (job,) = parse_jobs(f"JobId=5 JobName=t UserId=a(1) StartTime={text} NodeList=n1 WorkDir=/w", "5")
    assert job.began_s == began_s


def test_a_time_in_slurms_own_format_is_local_time() -> None:
    (job,) = parse_jobs(
        "JobId=5 JobName=t UserId=a(1) StartTime=2026-11-22T16:17:37 NodeList=n1 WorkDir=/w", "5"
    )
    assert job.began_s == time.mktime((2026, 11, 22, 16, 17, 37, 0, 0, -1))


def test_a_line_without_a_work_directory_is_refused_with_the_job() -> None:
    with pytest.raises(InputError, match="job 5"):
        parse_jobs("JobId=5 JobName=t", "5")


@pytest.mark.parametrize("asked", [lambda: read_jobs("5"), read_configuration])
def test_without_slurms_commands_the_advice_is_to_go_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: Callable[[], object]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="No such file") as caught:
        asked()
    assert "where Slurm's commands are" in caught.value.advice


def test_the_post_job_follows_any_end_in_the_same_partition_and_cannot_be_followed_itself() -> None:
    submitted = SubmittedJob(a_job(), partition="gpu", account="proj")
    arguments = post_job_arguments(submitted, ["--time=5"], [])
    assert "--dependency=afterany:12" in arguments
    assert "--job-name=cluster-hook-12" in arguments
    assert {"--partition=gpu", "--account=proj", "--time=5"} <= set(arguments)
    assert not any("--comment" in argument for argument in arguments[:-1])


def test_the_post_job_runs_the_same_interpreter_and_knows_the_job_when_slurm_forgets_it() -> None:
    job = a_job(comment="profile_dir=it's $HOME")
    wrapped = post_job_arguments(SubmittedJob(job, "", ""), [], [])[-1]
    assert wrapped.startswith("exec " + " ".join(our_command("cluster_hook", "slurm-post")))
    assert "$HOME" in wrapped
    assert "'\"'\"'" in wrapped, "the quote in the comment must reach the hook, not the shell"
