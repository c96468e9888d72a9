"""Nothing that lies in a job's directory or stands in somebody's environment becomes a part of the hook."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from cluster_hook.isolation import Identity, child_environment, our_command
from cluster_hook.job import job_to_text
from cluster_hook.processes import run_command
from tests.commands import HANGS_S, ran
from tests.hook.jobs import a_job

#: Modules of ours, of the standard library and of others, as a user's work directory may hold them.
_NAMES = (
    *("cluster_analysis", "cluster_hook", "cluster_run", "cluster_collect", "sitecustomize", "usercustomize"),
    *("random", "logging", "json", "types", "queue", "copy", "numpy", "pyarrow", "msgspec", "dask", "yaml"),
)


@pytest.fixture
def poisoned(tmp_path: Path) -> Path:
    """A directory of modules each of which leaves a mark when it is imported."""
    directory = tmp_path / "poisoned"
    directory.mkdir()
    for name in _NAMES:
        mark = f"open({str(tmp_path / 'mark')!r}, 'a').write('{name} ')\nraise SystemExit(66)\n"
        (directory / f"{name}.py").write_text(mark)
    return directory


def expect_untouched(poisoned: Path) -> None:
    mark = poisoned.parent / "mark"
    assert not mark.exists(), f"imported from the work directory: {mark.read_text()}"


@pytest.mark.parametrize("module", ["cluster_hook", "cluster_analysis", "cluster_collect"])
def test_no_command_imports_from_the_directory_it_is_started_in(poisoned: Path, module: str) -> None:
    ended = ran(our_command(module, "--help"), cwd=poisoned)
    assert ended.returncode == 0, ended.stderr
    assert "usage: cluster-" in ended.stdout
    expect_untouched(poisoned)


def test_no_command_imports_what_pythons_variables_name(
    poisoned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(poisoned))
    end = run_command(our_command("cluster_hook", "--version"), name="it", deadline_s=HANGS_S, capture=True)
    assert (end.code, end.stdout.split()[0]) == (0, "cluster-hook")
    expect_untouched(poisoned)


@pytest.mark.slow
def test_a_job_whose_work_directory_is_full_of_modules_is_analysed_all_the_same(
    poisoned: Path, simulated: Path
) -> None:
    (poisoned / "prof").symlink_to(simulated)
    comment = "profile_dir=prof,profile_results=out"
    job = a_job(work_dir=poisoned, comment=comment, nodes=("n1",), began_s=1.0)
    ended = ran(
        our_command("cluster_hook", "slurm-post", "--job-file=-"), input=job_to_text(job), cwd=poisoned
    )
    assert "job 12 train (COMPLETED): degraded" in ended.stdout, ended.stderr
    expect_untouched(poisoned)


def test_a_module_that_is_run_has_its_own_name_and_arguments() -> None:
    ended = ran(our_command("json.tool", "--no-such-option"))
    assert ended.returncode == 2
    assert "--no-such-option" in ended.stderr


def test_a_process_that_reads_a_jobs_data_gets_no_secret_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLUSTER_HOOK_WEBHOOK_URL", "https://s3cret")
    code = "import os; print('s3cret' in str(os.environ), 'PATH' in os.environ)"
    end = run_command([sys.executable, "-c", code], name="it", deadline_s=HANGS_S, capture=True)
    assert end.stdout == "False True\n"


def test_the_sites_search_path_and_slurm_reach_another_users_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/opt/slurm/bin:/usr/bin")
    monkeypatch.setenv("SLURM_CONF", "/opt/slurm/etc/slurm.conf")
    monkeypatch.setenv("SOMETHING_ELSE", "s3cret")
    environment = child_environment(None, Identity(1001, 1001, (), "/home/ada", "ada"))
    assert environment["PATH"] == "/opt/slurm/bin:/usr/bin"
    assert environment["SLURM_CONF"] == "/opt/slurm/etc/slurm.conf"
    assert "SOMETHING_ELSE" not in environment
    assert environment["HOME"] == "/home/ada" != os.environ.get("HOME")
