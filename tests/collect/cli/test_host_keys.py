"""What an operator reads when a host's key has changed; that it is refused is held by the transports."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from demo.sshd import make_key
from tests.commands import ran

from .conftest import Hosts

pytestmark = pytest.mark.slow


def fingerprint(public_key: Path) -> str:
    return ran(["ssh-keygen", "-lf", str(public_key)], check=True).stdout.split()[1]


def test_of_a_changed_key_the_fingerprint_is_shown_and_the_line_that_forgets_the_old_works(
    hosts: Hosts,
) -> None:
    hosts.add("alpha")
    other = make_key(hosts.directory / "other_key").with_suffix(".pub").read_text().split()
    entry = hosts.entries[0]
    hosts.lab.known_hosts.write_text(f"[{entry['address']}]:{entry['port']} {other[0]} {other[1]}\n")
    result = hosts.collect("--output", "run", "--accept-new-host-keys")
    assert result.returncode == 1
    assert "has changed" in result.stdout
    assert fingerprint(Path(f"{hosts.servers['alpha'].host_key}.pub")) in result.stdout
    command = result.stdout[result.stdout.index("ssh-keygen -f") :].splitlines()[0]
    subprocess.run(shlex.split(command), check=True, capture_output=True)
    assert other[1] not in hosts.lab.known_hosts.read_text()
    assert hosts.collect("--output", "run", "--accept-new-host-keys").returncode == 0
