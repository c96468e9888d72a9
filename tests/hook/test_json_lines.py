"""`--json` of the subcommands: stdout has one JSON object a line, each with its schema."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from cluster_hook.cli import main
from cluster_hook.job import Wording
from cluster_hook.spool.spool import Spool
from cluster_hook.subcommands.json_lines import print_ended
from tests.chinese import english_in
from tests.commands import HANGS_S, program, ran
from tests.hook.kubernetes.sweep_site import Site
from tests.hook.spool.spool_site import STAND_IN


def _read(stdout: str, schema: str, *names: str) -> list[dict[str, Any]]:
    """Return the objects; each has its schema and these names."""
    found = [json.loads(line) for line in stdout.splitlines()]
    for one in found:
        assert one["schema"] == schema
        assert set(one) == {"schema", *names}
    return found


def _put_on_path(directory: Path, monkeypatch: pytest.MonkeyPatch, command: str, says: str) -> None:
    program(directory / command, f"echo '{says}'")
    monkeypatch.setenv("PATH", str(directory), prepend=":")


def test_json_of_a_submission_is_one_line_with_its_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _put_on_path(tmp_path, monkeypatch, "sbatch", "4711")
    main(["slurm-submit", "--json", "t.sh"])
    (submitted,) = _read(capsys.readouterr().out, "cluster-hook-submission/1", "job", "post_job", "trouble")
    assert submitted["job"] == "4711"


def test_json_of_a_check_is_one_line_an_answer_with_its_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    epilog = program(tmp_path / "epilog.sh", "# cluster-hook")
    _put_on_path(tmp_path, monkeypatch, "scontrol", f"EpilogSlurmctld = {epilog}")
    assert main(["check", f"--spool={tmp_path}/none", "--json"]) == 1
    answers = _read(capsys.readouterr().out, "cluster-hook-check/1", "state", "text", "advice")
    # Whether other users can run this interpreter is another question.
    states = [one["state"] for one in answers if "can run" not in one["text"] and "cannot" not in one["text"]]
    assert states == ["ok", "problem", "unknown", "problem"]
    assert all(one["advice"] for one in answers if one["state"] != "ok")


def test_a_check_and_a_drain_answer_in_chinese(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    epilog = program(tmp_path / "epilog.sh", "# cluster-hook")
    _put_on_path(tmp_path, monkeypatch, "scontrol", f"EpilogSlurmctld = {epilog}")
    spool = _waiting(tmp_path)
    main(["check", f"--spool={tmp_path}/none", "--lang=zh"])
    monkeypatch.setenv("PATH", str(STAND_IN), prepend=":")
    main(["drain", f"--spool={spool.root}", "--lang=zh"])
    said = capsys.readouterr().out
    assert english_in(said) == []
    assert "作业 1 train：它从未启动，没有可读的数据" in said


def test_a_reason_with_something_in_parentheses_behind_a_request_is_chinese(
    capsys: pytest.CaptureFixture[str],
) -> None:
    why = "there is no directory /p; the job wrote no profile, or elsewhere (" + Wording().on_nodes + ")"
    text = f"attempt 1 of 3 failed: {why}"
    print_ended(Namespace(json=False, lang="zh"), "request", None, "retried", text, key="1")
    assert english_in(capsys.readouterr().out) == []


_ENVIRONMENT = {**os.environ, "PATH": f"{STAND_IN}:{os.environ['PATH']}"}


def _waiting(tmp_path: Path) -> Spool:
    """A spool with a job that never started, so that there is nothing to do, and something else."""
    spool = Spool(tmp_path / "spool")
    spool.root.mkdir(mode=0o700)
    spool.prepare()
    job = ("job=1", "name=train", "user=ada", f"uid={os.geteuid()}", "nodes=", f"work_dir={tmp_path}")
    fields = (*job, "comment=profile_dir=p", "end=")
    spool.path("pending", "1", ".job").write_bytes("".join(one + "\0" for one in fields).encode())
    spool.path("pending", "2", ".job").write_bytes(b"no request")
    return spool


@pytest.mark.slow
@pytest.mark.parametrize("output", [["--json"], []])
def test_a_drain_whose_log_is_on_a_full_disk_works_off_all_requests(
    tmp_path: Path, output: list[str]
) -> None:
    spool = _waiting(tmp_path)
    command = [sys.executable, "-m", "cluster_hook", "drain", f"--spool={spool.root}", *output]
    with Path("/dev/full").open("w") as log:
        ended = subprocess.run(
            command, stdout=log, stderr=subprocess.PIPE, timeout=HANGS_S, check=False, env=_ENVIRONMENT
        )

    assert list(spool.keys("pending")) == []
    assert ended.returncode == 3, ended.stderr


def test_json_of_a_drain_is_one_line_a_request_with_its_schema(tmp_path: Path) -> None:
    spool = _waiting(tmp_path)
    command = [sys.executable, "-m", "cluster_hook", "drain", f"--spool={spool.root}", "--json"]
    ended = ran(command, env=_ENVIRONMENT)
    requests = _read(ended.stdout, "cluster-hook-request/1", "key", "state", "text", "outcome")
    assert sorted((one["key"], one["state"]) for one in requests) == [("1", "done"), ("2", "failed")]
    assert {one["outcome"]["schema"] for one in requests if one["outcome"]} == {"cluster-hook/1"}


def test_json_of_a_sweep_is_one_line_a_job_with_its_schema(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        site.add_job(name)
    volumes = (f"--profiles={site.options.profiles}", f"--results={site.options.results}")
    cluster = (f"--api-server={site.cluster.url}", "--namespace=training")
    assert main(["sweep", *volumes, *cluster, "--attempts=1", "--json"]) == 0
    jobs = _read(capsys.readouterr().out, "cluster-hook-swept/1", "job", "state", "text", "outcome")
    assert sorted((one["job"], one["state"]) for one in jobs) == [("jobs/a", "failed"), ("jobs/b", "failed")]
    assert {one["outcome"]["schema"] for one in jobs} == {"cluster-hook/1"}
