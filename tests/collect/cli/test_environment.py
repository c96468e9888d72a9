"""cluster-collect where the environment is a little poor: few open files, no directory, old ciphers."""

from __future__ import annotations

import pwd
import resource
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.collect.helpers import BOTH

from .conftest import Hosts


def collected(
    hosts: Hosts, *arguments: str, cwd: Path, n_open_files: int = 1024
) -> subprocess.CompletedProcess[str]:
    """Call the command with so many open files as the default, and more on request."""
    return subprocess.run(
        [sys.executable, "-m", "cluster_collect", "--inventory", str(hosts.write()), *arguments],
        cwd=cwd,
        text=True,
        capture_output=True,
        check=False,
        preexec_fn=partial(resource.setrlimit, resource.RLIMIT_NOFILE, (n_open_files, 1024)),
    )


def test_more_hosts_than_open_files_by_default_are_all_collected(hosts: Hosts, tmp_path: Path) -> None:
    for name in ("alpha", "beta", "gamma"):
        hosts.add(name)
    result = collected(hosts, "--output", str(tmp_path / "run"), cwd=tmp_path, n_open_files=10)
    assert "3 of 3 hosts complete" in result.stdout, result.stderr


def test_what_a_library_says_to_programmers_is_not_said(hosts: Hosts, tmp_path: Path) -> None:
    hosts.add("alpha", KexAlgorithms="diffie-hellman-group14-sha256")
    result = collected(hosts, "--output", str(tmp_path / "run"), "-q", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")


def test_a_working_directory_that_was_removed_is_named(hosts: Hosts, tmp_path: Path) -> None:
    hosts.add("alpha")
    gone = tmp_path / "gone"
    gone.mkdir()
    argv = [sys.executable, "-m", "cluster_collect", "--inventory", str(hosts.write())]
    result = subprocess.run(
        ["sh", "-c", 'rmdir "$0" && exec "$@"', str(gone), *argv],
        cwd=gone,
        text=True,
        capture_output=True,
        check=False,
    )
    assert result.returncode == 1
    assert result.stderr == "cluster-collect: the working directory: No such file or directory\n"


@BOTH
def test_a_user_who_is_a_number_alone_logs_in(
    hosts: Hosts, monkeypatch: pytest.MonkeyPatch, transport: str
) -> None:
    """As in a container: the system knows no name and no home of that number."""

    def nobody(uid: int) -> pwd.struct_passwd:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    for name in ("LOGNAME", "USER", "LNAME", "USERNAME", "HOME"):
        monkeypatch.setenv(name, "")  # so that it is as before afterwards
        monkeypatch.delenv(name)
    hosts.add("alpha")
    hosts.defaults |= {"transport": transport, "user": hosts.lab.user}
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    result = hosts.collect("--output", "run")
    assert result.returncode == 0, result.stderr + result.stdout
