"""A bar on a terminal, plain lines everywhere else. A real pseudo-terminal, as a user has."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pytest

from .conftest import Hosts, on_terminal

pytestmark = pytest.mark.slow


def run_on_terminal(hosts: Hosts, arguments: Sequence[str], **environment: str) -> tuple[int, str, str]:
    """Run cluster-collect with stderr on a terminal and stdout on a pipe; return code, stdout, stderr."""
    command = [sys.executable, "-m", "cluster_collect", "--inventory", str(hosts.write()), *arguments]
    return on_terminal(command, hosts.directory, {"TERM": "xterm", "COLUMNS": "120", **environment})


SLOW = ("--what", "full", "--bandwidth", "1M", "--output", "run")


def test_a_terminal_gets_a_bar_with_hosts_files_bytes_rate_and_time_left(hosts: Hosts) -> None:
    hosts.add("alpha", n_files=11, size_bytes=200_000)
    hosts.add("beta", n_files=2)
    code, stdout, stderr = run_on_terminal(hosts, SLOW)
    assert code == 0, stderr
    assert "\x1b[" in stderr
    for part in ("collecting", "/2 hosts", "/13 files", "MB/2.0 MB", "/s", "0:0", "left"):
        assert part in stderr, part
    assert "\x1b" not in stdout
    assert "2 of 2 hosts complete" in stdout


def test_the_bar_is_gone_at_the_end_and_the_failures_stay(hosts: Hosts) -> None:
    hosts.add("alpha")
    hosts.add("beta")
    hosts.entries[1]["port"] = 1
    code, _, stderr = run_on_terminal(hosts, ["--output", "run", "--attempts", "1"])
    assert code == 3
    assert "beta: failed: " in stderr
    assert "alpha: complete" not in stderr  # the bar and the table show it
    last_bar = stderr.rindex("collecting")
    assert "\x1b[2K" in stderr[last_bar:]


def test_quiet_draws_nothing_on_a_terminal(hosts: Hosts) -> None:
    hosts.add("alpha")
    assert run_on_terminal(hosts, ["--output", "run", "-q"])[2] == ""


def test_a_dumb_terminal_gets_plain_lines(hosts: Hosts) -> None:
    hosts.add("alpha")
    _, _, stderr = run_on_terminal(hosts, ["--output", "run"], TERM="dumb")
    assert "\x1b" not in stderr
    assert "alpha: complete" in stderr


def test_a_check_shows_that_it_checks(hosts: Hosts) -> None:
    hosts.add("alpha")
    code, stdout, stderr = run_on_terminal(hosts, ["--check"])
    assert code == 0
    assert "checking" in stderr
    assert "1 of 1 host ready" in stdout
