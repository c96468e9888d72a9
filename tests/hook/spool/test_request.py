from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_hook.spool.request import exit_words, parse_request_file
from cluster_run.errors import InputError
from tests.commands import HANGS_S

EPILOG = Path(__file__).parents[3] / "deploy" / "slurm" / "epilog_slurmctld.sh"
# What slurmctld 22.05.8 gives its epilog, as far as it matters.
_VARIABLES = {
    "SLURM_CLUSTER_NAME": "lab",
    "SLURM_JOB_ID": "7",
    "SLURM_JOB_NAME": "train",
    "SLURM_JOB_USER": "ada",
    "SLURM_JOB_UID": "1001",
    "SLURM_JOB_NODELIST": "node[1-2]",
    "SLURM_JOB_WORK_DIR": "/home/ada",
    "SLURM_JOB_COMMENT": "profile_dir=prof",
    "SLURM_JOB_EXIT_CODE2": "3:0",
    "SLURM_JOB_RESTART_COUNT": "0",
    "SLURM_JOB_START_TIME": "1795364258",
    "SLURM_JOB_END_TIME": "1795364300",
}


def run_epilog(spool: Path, changes: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    """Run the epilog as slurmctld does: with its variables only, and without a search path."""
    return subprocess.run(
        [EPILOG],
        env={**_VARIABLES, **(changes or {}), "CLUSTER_HOOK_SPOOL": str(spool)},
        capture_output=True,
        timeout=HANGS_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    (tmp_path / "pending").mkdir(mode=0o700)
    return tmp_path


def test_the_epilog_drops_a_request_that_is_read_back_whole(spool: Path) -> None:
    assert run_epilog(spool).returncode == 0
    (path,) = (spool / "pending").glob("*.job")
    assert path.name == "7.job"
    request = parse_request_file(path.read_bytes(), path.name)
    assert request.uid == 1001
    assert (request.job, request.name, request.user, request.state) == ("7", "train", "ada", "exit 3")
    assert request.nodes == ("node1", "node2")
    assert (request.began_s, request.ended_s) == (1795364258.0, 1795364300.0)
    assert (request.work_dir, request.comment) == (Path("/home/ada"), "profile_dir=prof")


def test_a_line_break_or_a_shell_word_in_a_jobs_name_forges_nothing(spool: Path) -> None:
    hostile = "x\nuid=0\n$(touch /tmp/never)`id`'\"%s\\0uid=0"
    run_epilog(spool, {"SLURM_JOB_NAME": hostile, "SLURM_JOB_COMMENT": "profile_dir=p\nuid=0"})
    (path,) = (spool / "pending").glob("*.job")
    request = parse_request_file(path.read_bytes(), path.name)
    assert request.name == hostile
    assert request.uid == 1001


@pytest.mark.parametrize(
    "changes",
    [
        {"SLURM_JOB_COMMENT": ""},
        {"SLURM_JOB_COMMENT": "nothing for us"},
        {"SLURM_JOB_COMMENT": "profile_dir=p,profile_by=post-job"},
        {"SLURM_JOB_NAME": "cluster-hook-7"},
        {"SLURM_JOB_NAME": "cluster-collect"},
        {"SLURM_JOB_ID": "../../etc/x"},
        {"SLURM_JOB_ID": ""},
        {"SLURM_HET_JOB_ID": "6", "SLURM_HET_JOB_OFFSET": "1"},
    ],
)
def test_the_epilog_leaves_other_jobs_and_its_own_alone(spool: Path, changes: Mapping[str, str]) -> None:
    ended = run_epilog(spool, changes)
    assert ended.returncode == 0
    assert ended.stderr == b""
    assert list((spool / "pending").glob("*.job")) == []


def test_the_first_part_of_a_heterogeneous_job_asks_for_all_its_nodes(spool: Path) -> None:
    first = {"SLURM_HET_JOB_ID": "7", "SLURM_HET_JOB_OFFSET": "0", "SLURM_HET_JOB_NODELIST": "node[1-4]"}
    run_epilog(spool, first)
    (path,) = (spool / "pending").glob("*.job")
    assert parse_request_file(path.read_bytes(), path.name).nodes == ("node1", "node2", "node3", "node4")


def test_the_epilog_leaves_a_mark_each_time_it_runs_for_whatever_job(spool: Path) -> None:
    run_epilog(spool, {"SLURM_JOB_COMMENT": ""})
    mark = spool / "pending" / ".epilog-ran"
    os.utime(mark, (1, 1))
    run_epilog(spool, {"SLURM_JOB_COMMENT": ""})
    assert mark.stat().st_mtime > 1


def test_the_epilog_ends_well_without_a_spool(tmp_path: Path) -> None:
    ended = run_epilog(tmp_path / "missing")
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_the_epilog_ends_well_when_it_cannot_write(tmp_path: Path) -> None:
    # A file where the directory should be stops root as well.
    (tmp_path / "pending").mkdir()
    (tmp_path / "pending" / "7.job").mkdir()
    (tmp_path / "pending" / "7.job" / "x").touch()
    ended = run_epilog(tmp_path)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert [path.name for path in (tmp_path / "pending").glob("*.job")] == ["7.job"]


def test_a_disk_that_does_not_answer_does_not_keep_the_job_completing(spool: Path) -> None:
    fifo = spool / "pending" / ".epilog-ran"
    os.mkfifo(fifo)  # nobody reads it, so opening it waits for ever
    assert run_epilog(spool).returncode == 0
    os.close(os.open(fifo, os.O_RDONLY | os.O_NONBLOCK))  # what it left behind ends now


def test_the_runs_of_a_requeued_job_are_one_request_that_of_the_last_run(spool: Path) -> None:
    run_epilog(spool, {"SLURM_JOB_EXIT_CODE2": "42:0"})
    run_epilog(spool, {"SLURM_JOB_RESTART_COUNT": "1", "SLURM_JOB_EXIT_CODE2": "0:0"})
    (request,) = (spool / "pending").glob("*.job")
    assert parse_request_file(request.read_bytes(), request.name).state == ""


def test_the_epilog_calls_no_program_that_could_wait() -> None:
    commands = {
        word
        for line in EPILOG.read_text().splitlines()
        if not line.lstrip().startswith("#")
        for word in line.replace(";", " ").replace("(", " ").split()
    }
    forbidden = {"scontrol", "squeue", "sacct", "sbatch", "srun", "curl", "wget", "ssh", "python3"}
    assert not commands & forbidden
    assert "mv" in commands


def test_only_the_owner_can_read_a_request(spool: Path) -> None:
    run_epilog(spool)
    assert os.stat(spool / "pending" / "7.job").st_mode & 0o077 == 0


@pytest.mark.parametrize(("code", "words"), [("0:0", ""), ("3:0", "exit 3"), ("0:15", "signal 15"), ("", "")])
def test_an_exit_code_is_said_in_words(code: str, words: str) -> None:
    assert exit_words(code) == words


_WHOLE = b"job=7\0uid=1\0nodes=n1\0work_dir=/w\0end=\0"


def test_a_request_cut_short_anywhere_is_refused() -> None:
    assert parse_request_file(_WHOLE, "7.job").uid == 1
    for length in range(len(_WHOLE)):
        with pytest.raises(InputError):
            parse_request_file(_WHOLE[:length], "7.job")


@pytest.mark.parametrize(
    "content",
    [
        b"job=7\0job=8\0uid=1\0nodes=n1\0work_dir=/w\0end=\0",
        b"job=x\0uid=1\0nodes=n1\0work_dir=/w\0end=\0",
        b"job=7\0uid=-1\0nodes=n1\0work_dir=/w\0end=\0",
        b"job=7\0uid=1\0nodes=n1\0work_dir=w\0end=\0",
        b"job=7\0uid=1\0nodes=n[\0work_dir=/w\0end=\0",
    ],
)
def test_a_request_that_cannot_be_right_is_refused(content: bytes) -> None:
    with pytest.raises(InputError):
        parse_request_file(content, "7.job")


@given(st.binary(max_size=60))
def test_any_bytes_are_a_request_or_refused(content: bytes) -> None:
    with pytest.raises(InputError):
        parse_request_file(content, "7.job")
