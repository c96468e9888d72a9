"""Host keys: known, unknown, changed, revoked, certified, and under another name."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from cluster_collect.spec import CollectOptions
from demo.sshd import SshLab, make_key
from tests.collect.conftest import Start
from tests.collect.helpers import BOTH, FULL, TRUSTING, Recorder

pytestmark = pytest.mark.slow  # many servers are started


@BOTH
def test_an_unknown_host_key_is_refused_and_nothing_is_sent(
    start: Start, lab: SshLab, transport: str
) -> None:
    host = start(known=False, transport=transport)
    watch = Recorder()
    outcome = host.collect(watch=watch)
    assert outcome.state == "failed"
    assert "the key of 127.0.0.4 is not known (SHA256:" in outcome.reason
    assert "--accept-new-host-keys" in outcome.advice
    assert watch.retries == []
    assert "Accepted" not in host.server.log
    assert lab.known_hosts.read_text() == ""


@BOTH
def test_a_new_key_is_accepted_when_told_so_and_written_down_once(
    start: Start, lab: SshLab, transport: str
) -> None:
    """Within the handshake that logs in: OpenSSH since 9.8 punishes who looks at the key only."""
    host = start({"LogLevel": "VERBOSE"}, known=False, transport=transport)
    watch = Recorder()
    host.collect_all(TRUSTING, watch)
    assert host.server.log.count("Connection from") == 1
    assert any("new host key of 127.0.0.4 accepted: SHA256:" in note for note in watch.notes)
    written = lab.known_hosts.read_text()
    assert written.startswith(f"[127.0.0.4]:{host.server.port} ssh-ed25519 ")
    for options in (TRUSTING, FULL):
        assert host.collect(options).state == "complete"
    assert lab.known_hosts.read_text() == written


@BOTH
def test_a_new_key_that_cannot_be_written_down_costs_its_host_and_says_where(
    start: Start, tmp_path: Path, transport: str
) -> None:
    (tmp_path / "file").touch()
    host = start(known=False, transport=transport).having(known_hosts=str(tmp_path / "file" / "known_hosts"))
    outcome = host.collect(TRUSTING)
    assert outcome.failure == "host-key"
    assert f"cannot be written down: {tmp_path}/file" in outcome.reason
    assert "known_hosts=FILE" in outcome.advice


@BOTH
def test_known_keys_that_cannot_be_read_are_told_at_once(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transport: str
) -> None:
    closed = tmp_path / "closed"
    closed.touch()
    host = start(transport=transport).having(known_hosts=str(closed))
    read = Path.read_text

    def refused(path: Path, *how: Any, **more: Any) -> str:
        if path == closed:  # root may read everything
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return read(path, *how, **more)

    monkeypatch.setattr(Path, "read_text", refused)
    watch = Recorder()
    outcome = host.collect(watch=watch)
    assert (outcome.failure, watch.retries) == ("ssh-setup", [])
    assert outcome.reason == f"the known host keys cannot be read: {closed}: Permission denied"


@BOTH
@pytest.mark.parametrize(("kind", "is_hashed"), [("ed25519", False), ("ecdsa", False), ("ed25519", True)])
@pytest.mark.parametrize("options", [FULL, TRUSTING], ids=["distrustful", "trusting"])
def test_a_changed_host_key_is_always_refused(
    start: Start, lab: SshLab, tmp_path: Path, transport: str, kind: str, is_hashed: bool,
    options: CollectOptions,
) -> None:  # fmt: skip
    """Also with accept_new_host_keys: the libraries ask about changed keys as if they were new."""
    host = start(known=False, transport=transport)
    lab.trust(host.server.address, host.server.port, make_key(tmp_path / "other", kind))
    if is_hashed:
        subprocess.run(["ssh-keygen", "-q", "-H", "-f", lab.known_hosts], check=True, capture_output=True)
    before = lab.known_hosts.read_text()
    outcome = host.collect(options)
    assert outcome.state == "failed"
    assert "the key of 127.0.0.4 has changed" in outcome.reason
    assert "Accepted" not in host.server.log
    assert lab.known_hosts.read_text() == before


@BOTH
def test_a_revoked_host_key_is_refused(start: Start, lab: SshLab, transport: str) -> None:
    host = start(transport=transport)
    with lab.known_hosts.open("a") as stream:
        stream.write(f"@revoked * {Path(f'{host.server.host_key}.pub').read_text()}")
    outcome = host.collect(TRUSTING)
    assert outcome.state == "failed"
    assert "revoked" in outcome.reason


def test_a_host_certificate_of_a_known_authority_is_enough(start: Start, lab: SshLab, tmp_path: Path) -> None:
    authority, key = make_key(tmp_path / "authority"), make_key(tmp_path / "certified")
    sign = ["ssh-keygen", "-q", "-s", str(authority), "-I", "host", "-h", "-n", "127.0.0.4", f"{key}.pub"]
    subprocess.run(sign, check=True)
    host = start({"HostCertificate": f'"{key}-cert.pub"'}, host_key=key, known=False)
    assert host.collect().state == "failed"
    lab.known_hosts.write_text(f"@cert-authority [127.0.0.*]:* {Path(f'{authority}.pub').read_text()}")
    assert host.collect().reason == ""
    reason = host.having(transport="paramiko").collect().reason
    assert reason == "127.0.0.4 is only known by a certificate (@cert-authority)"


def test_known_hosts_none_means_no_host_is_known_not_any(start: Start, config: Path) -> None:
    """asyncssh by itself would check nothing at all then."""
    config.write_text("UserKnownHostsFile none\nStrictHostKeyChecking no\n")
    assert "is not known" in start(known_hosts=None, ssh_config=str(config)).collect().reason


def test_a_host_key_alias_names_the_entry(start: Start, lab: SshLab, config: Path) -> None:
    host = start(ssh_config=str(config))
    lab.known_hosts.write_text(f"cluster-node {Path(f'{host.server.host_key}.pub').read_text()}")
    config.write_text("HostKeyAlias cluster-node\n")
    assert host.collect().reason == ""
    assert "is not known" in host.having(ssh_config=os.devnull).collect().reason
