"""Ctrl-C and SIGTERM end a collection with 130 and leave a directory from which the next call goes on."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_run.manifest import read_manifest
from tests.commands import ended, wait_until

from .conftest import Hosts


def start(hosts: Hosts, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "cluster_collect", "--inventory", str(hosts.write()), *arguments]
    return subprocess.Popen(
        command,
        cwd=hosts.directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_files(run: Path, process: subprocess.Popen[str], n_files: int) -> None:
    wait_until(lambda: len([one for one in run.rglob("*.bin") if one.is_file()]) >= n_files, process)


@pytest.fixture(autouse=True)
def no_signal_is_ignored() -> Iterator[None]:
    """Below nohup what a test starts would ignore SIGHUP as well."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


pytestmark = pytest.mark.slow

SLOW = ("--what", "full", "--bandwidth", "1M", "--compression", "none")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_with_130_and_the_next_call_fetches_the_rest_only(
    hosts: Hosts, number: signal.Signals
) -> None:
    root = hosts.add("alpha", n_files=30, size_bytes=200_000)
    run = hosts.directory / "run"
    process = start(hosts, "--output", "run", *SLOW)
    wait_for_files(run, process, 3)
    process.send_signal(number)
    stdout, stderr = ended(process)
    assert process.returncode == 130
    assert stdout == ""
    assert f"interrupted by {number.name}" in stderr
    assert "Traceback" not in stderr
    wait_until(lambda: not _commands(b"tar", str(hosts.directory).encode()))
    assert "go on with: cluster-collect --inventory" in stderr
    assert "--output run" in stderr
    assert not (run / "manifest.json").exists()
    stored = [path for path in (run / "cluster_profiler").rglob("*") if path.is_file()]
    kept = {path: path.stat().st_ino for path in stored if not path.name.endswith(".part")}
    assert len(kept) >= 3

    result = hosts.collect("--output", "run", "--what", "full", "-v")
    assert result.returncode == 0, result.stderr
    assert f"{30 - len(kept)} files" in result.stderr
    assert {path: path.stat().st_ino for path in kept} == kept
    (host,) = read_manifest(run / "manifest.json").hosts
    assert host.files.n_stored == 30
    for file in host.files:
        assert (run / file.path).read_bytes() == (root / file.source).read_bytes()


def test_the_line_to_go_on_with_names_the_directory_that_was_chosen(hosts: Hosts) -> None:
    hosts.add("alpha", n_files=30, size_bytes=200_000)
    process = start(hosts, *SLOW)
    (run,) = wait_until(lambda: list(hosts.directory.glob("run-*")), process)
    wait_for_files(run, process, 1)
    process.send_signal(signal.SIGTERM)
    _, stderr = ended(process)
    assert f"--output {run.name}" in stderr


def test_a_second_signal_ends_it_at_once(hosts: Hosts) -> None:
    hosts.add("alpha", n_files=30, size_bytes=200_000)
    process = start(hosts, "--output", "run", *SLOW)
    wait_for_files(hosts.directory / "run", process, 1)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    ended(process)
    assert process.returncode == 130
    assert hosts.collect("--output", "run", "--what", "full").returncode == 0


@pytest.mark.parametrize("mode", ["--check", "--dry-run"])
def test_a_signal_during_a_look_is_130_too(hosts: Hosts, mode: str) -> None:
    asked = hosts.directory / "asked"
    hosts.add("alpha", ForceCommand=f"touch {shlex.quote(str(asked))}; exec sleep 60")
    process = start(hosts, mode)
    wait_until(asked.exists, process)
    process.send_signal(signal.SIGTERM)
    stdout, stderr = ended(process)
    assert (process.returncode, stdout) == (130, "")
    assert "interrupted by SIGTERM" in stderr


def _commands(program: bytes, marker: bytes) -> list[bytes]:
    """Return the running programs of that name whose command line or working directory holds the marker."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            command = (directory / "cmdline").read_bytes()
            place = os.readlink(directory / "cwd").encode()
        except OSError:
            continue
        if command.split(b"\0")[0].endswith(program) and (marker in command or marker in place):
            found.append(command)
    return found
