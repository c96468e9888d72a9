"""A planted password is searched for in everything that is printed or written, and in every command line."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Hosts, run_collect

pytestmark = pytest.mark.slow

PASSWORD = "Planted-pa55word"
PASSPHRASE = "Planted-passphra5e"


def everything_written(directory: Path) -> Iterator[tuple[Path, bytes]]:
    for path in directory.rglob("*"):
        if path.is_file() and "ssh" not in path.relative_to(directory).parts[:1]:
            yield path, path.read_bytes()


def assert_clean(result: subprocess.CompletedProcess[str], directory: Path, *allowed: Path) -> None:
    for secret in (PASSWORD, PASSPHRASE):
        assert secret not in result.stdout
        assert secret not in result.stderr
        found = [path for path, content in everything_written(directory) if secret.encode() in content]
        assert set(found) <= set(allowed)


@pytest.mark.parametrize(
    ("transport", "arguments"),
    [("asyncssh", ("-vv",)), ("asyncssh", ("--check", "--json", "-vv")), ("paramiko", ("-vv", "--json"))],
)
def test_a_password_that_is_refused_shows_nowhere(
    hosts: Hosts, arguments: tuple[str, ...], transport: str
) -> None:
    hosts.add("alpha", PasswordAuthentication="yes")
    hosts.add("beta")
    hosts.entries[0] |= {
        "password_env": "NODE_PASSWORD",
        "identity_file": "absent.pub",
        "transport": transport,
    }
    (hosts.directory / "absent.pub").touch()
    result = hosts.collect("--output", "run", *arguments, environment={"NODE_PASSWORD": PASSWORD}, apart=True)
    assert result.returncode == 3, result.stderr
    assert_clean(result, hosts.directory)


def test_a_passphrase_opens_the_key_and_shows_nowhere(hosts: Hosts) -> None:
    hosts.add("alpha")
    key = str(hosts.lab.identity_file)
    subprocess.run(["ssh-keygen", "-q", "-p", "-f", key, "-P", "", "-N", PASSPHRASE], check=True)
    hosts.defaults["passphrase_env"] = "KEY_PASSPHRASE"
    result = hosts.collect("--output", "run", "-vv", environment={"KEY_PASSPHRASE": PASSPHRASE})
    assert result.returncode == 0, result.stderr + result.stdout
    assert_clean(result, hosts.directory)
    mistyped = {"KEY_PASSPHRASE": PASSPHRASE + "?"}
    wrong = hosts.collect("--output", "run2", "-vv", environment=mistyped, apart=True)
    assert wrong.returncode == 1
    assert "Traceback" not in wrong.stderr
    assert_clean(wrong, hosts.directory)


def test_the_passwords_of_an_account_file_stay_in_it(hosts: Hosts) -> None:
    hosts.add("alpha", PasswordAuthentication="yes")
    account = hosts.directory / "account.json"
    address, port = hosts.entries[0]["address"], hosts.entries[0]["port"]
    account.write_text(
        json.dumps({"rank_size": 8, "cluster": {address: {"user": hosts.lab.user, "passwd": PASSWORD}}})
    )
    account.chmod(0o600)
    arguments = ["--inventory", str(account), "--output", "run", "-vv", "--profiler-root", "/x"]
    for key in ("known_hosts", "ssh_config"):
        arguments += ["--set", f"{key}={hosts.defaults[key]}"]
    result = run_collect([*arguments, "--set", f"port={port}"], hosts.directory)
    assert result.returncode == 1
    assert_clean(result, hosts.directory, account)
    account.chmod(0o644)
    refused = run_collect([*arguments, "--json"], hosts.directory)
    assert refused.returncode == 1
    assert "open to others" in refused.stderr
    assert_clean(refused, hosts.directory, account)


def test_a_crash_shows_no_password(hosts: Hosts) -> None:
    """Even a bug of ours, here an output that is a file where a directory must be made, tells no secret."""
    hosts.add("alpha")
    hosts.defaults["password_env"] = "NODE_PASSWORD"
    (hosts.directory / "run").write_text("a file")
    result = hosts.collect("--output", "run", environment={"NODE_PASSWORD": PASSWORD}, apart=True)
    assert result.returncode == 1
    assert_clean(result, hosts.directory)
