"""Logins that need something: a password at a prompt, a passphrase, SFTP in place of a shell."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.commands import wait_until

from .conftest import Hosts, on_terminal

pytestmark = pytest.mark.slow

#: Makes the terminal on its stdin its own, as a login does, so that the prompt appears there.
_ON_TERMINAL = """
import os, sys
from tests.commands import ended, wait_until
os.setsid()
os.close(os.open(os.ttyname(0), os.O_RDWR))
os.execv(sys.executable, [sys.executable, "-m", "cluster_collect", *sys.argv[1:]])
"""


def answer_prompt(hosts: Hosts, answer: str, *arguments: str) -> tuple[int, str, str]:
    """Run cluster-collect on a terminal, type `answer` at its prompt; return code, stdout and terminal."""
    command = [sys.executable, "-c", _ON_TERMINAL, "--inventory", str(hosts.write()), *arguments]
    return on_terminal(command, hosts.directory, answer=answer)


def test_a_password_is_asked_for_once_and_never_shown(hosts: Hosts) -> None:
    hosts.add("alpha", PasswordAuthentication="yes")
    hosts.add("beta")
    code, stdout, terminal = answer_prompt(hosts, "Typed-pa55word", "--ask-password", "--output", "run")
    assert code == 0  # the key logs in; the password is there for hosts that want one
    assert terminal.count("password for") == 1
    assert "Typed-pa55word" not in terminal + stdout


def test_a_passphrase_is_asked_for_once_and_opens_the_key_of_all_hosts(hosts: Hosts) -> None:
    hosts.add("alpha")
    hosts.add("beta")
    key = str(hosts.lab.identity_file)
    subprocess.run(["ssh-keygen", "-q", "-p", "-f", key, "-P", "", "-N", "Typed-passphra5e"], check=True)
    code, stdout, terminal = answer_prompt(hosts, "Typed-passphra5e", "--ask-passphrase", "--output", "run")
    assert code == 0, stdout
    assert terminal.count("passphrase for") == 1
    assert "Typed-passphra5e" not in terminal + stdout


@pytest.mark.parametrize(("typed", "code"), [("\x03", 130), ("\x04", 1)])
def test_ctrl_c_and_ctrl_d_at_the_prompt_end_it_calmly(hosts: Hosts, typed: str, code: int) -> None:
    hosts.add("alpha")
    ended, stdout, terminal = answer_prompt(hosts, typed, "--ask-password", "--output", "run")
    assert (ended, stdout) == (code, "")
    assert "Traceback" not in terminal
    assert "cluster-collect: " in terminal


@pytest.fixture
def agent(hosts: Hosts) -> Iterator[dict[str, str]]:
    """An SSH agent that holds the user's key, whose file is then encrypted; gives its environment."""
    socket = hosts.directory / "ssh" / "agent"
    key = str(hosts.lab.identity_file)
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.DEVNULL)
    wait_until(socket.exists, process)
    environment = {"SSH_AUTH_SOCK": str(socket)}
    subprocess.run(["ssh-add", "-q", key], env={**os.environ, **environment}, check=True)
    subprocess.run(["ssh-keygen", "-q", "-p", "-f", key, "-P", "", "-N", "secret"], check=True)
    yield environment
    process.terminate()
    process.wait()


def test_a_key_that_only_the_agent_can_use_logs_in(hosts: Hosts, agent: dict[str, str]) -> None:
    hosts.add("alpha")
    result = hosts.collect("--output", "run", environment=agent)
    assert result.returncode == 0, result.stdout
    hosts.lab.identity_file.unlink()  # its public half names it, as with ssh
    result = hosts.collect("--output", "run2", environment=agent)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("mode", [(), ("--check",), ("--dry-run",)])
def test_a_host_that_offers_sftp_only_is_looked_at_and_collected_all_the_same(
    hosts: Hosts, mode: tuple[str, ...]
) -> None:
    hosts.add("alpha", ForceCommand="internal-sftp")
    result = hosts.collect("--output", "run", "--what", "full", "--json", *mode)
    assert result.returncode == 0, result.stdout + result.stderr
    (host,) = json.loads(result.stdout)["hosts"]
    assert host["n_files"] == 3


def test_a_server_that_freezes_leaves_no_traceback(hosts: Hosts) -> None:
    """paramiko's threads log what they meet, with a traceback, and go on."""
    with socket.create_server(("127.0.0.9", 0)) as frozen:
        place = {"address": "127.0.0.9", "port": frozen.getsockname()[1], "profiler_root": "/x"}
        hosts.entries.append({**place, "server_id": "frozen", "transport": "paramiko"})
        done = hosts.collect("--attempts", "1", "--login-deadline", "1", apart=True)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "frozen: " in done.stdout
