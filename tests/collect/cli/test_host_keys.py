"""What an operator reads when a host's key is not what it should be."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from demo.sshd import make_key

from .conftest import Hosts

pytestmark = pytest.mark.slow


def fingerprint(public_key: Path) -> str:
    command = ["ssh-keygen", "-lf", str(public_key)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[1]


def host_key(hosts: Hosts) -> Path:
    (path,) = (hosts.directory / "ssh").glob("127.0.0.*/host_key.pub")
    return path


def test_an_unknown_key_is_refused_with_its_fingerprint_and_both_ways_out(hosts: Hosts) -> None:
    hosts.add("alpha")
    hosts.lab.known_hosts.write_text("")
    result = hosts.collect("--output", "run")
    assert result.returncode == 1
    assert fingerprint(host_key(hosts)) in result.stdout
    assert "is not known" in result.stdout
    assert "--accept-new-host-keys" in result.stdout
    assert hosts.lab.known_hosts.read_text() == ""


def test_a_new_key_is_accepted_when_told_so_and_written_down_once(hosts: Hosts) -> None:
    hosts.add("alpha")
    hosts.lab.known_hosts.write_text("")
    assert hosts.collect("--output", "run", "--accept-new-host-keys").returncode == 0
    stored = hosts.lab.known_hosts.read_text()
    assert host_key(hosts).read_text().split()[1] in stored
    assert hosts.collect("--output", "run2").returncode == 0
    assert hosts.collect("--output", "run3", "--accept-new-host-keys").returncode == 0
    assert hosts.lab.known_hosts.read_text() == stored


def test_a_changed_key_is_always_refused_and_the_line_that_forgets_the_old_one_works(hosts: Hosts) -> None:
    hosts.add("alpha")
    other = make_key(hosts.directory / "other_key").with_suffix(".pub").read_text().split()
    entry = hosts.entries[0]
    hosts.lab.known_hosts.write_text(f"[{entry['address']}]:{entry['port']} {other[0]} {other[1]}\n")
    result = hosts.collect("--output", "run", "--accept-new-host-keys")
    assert result.returncode == 1
    assert "has changed" in result.stdout
    assert fingerprint(host_key(hosts)) in result.stdout
    command = result.stdout[result.stdout.index("ssh-keygen -f") :].splitlines()[0]
    subprocess.run(shlex.split(command), check=True, capture_output=True)
    assert other[1] not in hosts.lab.known_hosts.read_text()
    assert hosts.collect("--output", "run", "--accept-new-host-keys").returncode == 0
