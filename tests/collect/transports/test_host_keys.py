"""Host keys: known, unknown, changed, revoked, certified, and under another name."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from demo.sshd import SshLab, make_key
from tests.collect.helpers import BOTH, QUICK, TRUSTING, Recorder, outcome_for, spec_for

pytestmark = pytest.mark.slow  # many servers are started


@BOTH
def test_an_unknown_host_key_is_refused_and_nothing_is_sent(
    own_lab: SshLab, root: Path, tmp_path: Path, transport: str
) -> None:
    server = own_lab.start("127.0.0.4", known=False)
    spec = spec_for(own_lab, server, root, transport=transport)
    watch = Recorder()
    outcome = outcome_for(spec, tmp_path, watch=watch)
    assert outcome.state == "failed"
    assert "the key of 127.0.0.4 is not known (SHA256:" in outcome.reason
    assert "--accept-new-host-keys" in outcome.advice
    assert watch.retries == []
    assert "Accepted" not in server.log
    assert own_lab.known_hosts.read_text() == ""


@BOTH
def test_a_new_key_is_accepted_when_told_so_and_written_down_once(
    own_lab: SshLab, root: Path, tmp_path: Path, transport: str
) -> None:
    server = own_lab.start("127.0.0.4", known=False)
    spec = spec_for(own_lab, server, root, transport=transport)
    watch = Recorder()
    assert outcome_for(spec, tmp_path, TRUSTING, watch).state == "complete"
    assert any("new host key of 127.0.0.4 accepted: SHA256:" in note for note in watch.notes)
    written = own_lab.known_hosts.read_text()
    assert written.startswith(f"[127.0.0.4]:{server.port} ssh-ed25519 ")
    assert outcome_for(spec, tmp_path, TRUSTING).state == "complete"
    assert own_lab.known_hosts.read_text() == written
    assert outcome_for(spec, tmp_path, QUICK).state == "complete"


@BOTH
def test_a_new_key_is_learnt_within_the_one_handshake_that_logs_in(
    own_lab: SshLab, root: Path, tmp_path: Path, transport: str
) -> None:
    """Servers since OpenSSH 9.8 punish connections that look at the key only and do not log in."""
    server = own_lab.start("127.0.0.4", known=False, settings={"LogLevel": "VERBOSE"})
    spec = spec_for(own_lab, server, root, transport=transport)
    assert outcome_for(spec, tmp_path, TRUSTING).state == "complete"
    # one connection is the one that waits for the server to start
    assert server.log.count("Connection from") == 2


@BOTH
@pytest.mark.parametrize("kind", ["ed25519", "rsa"])
@pytest.mark.parametrize("is_hashed", [False, True])
@pytest.mark.parametrize("options", [QUICK, TRUSTING])
def test_a_changed_host_key_is_always_refused(
    own_lab: SshLab, root: Path, tmp_path: Path, transport: str, kind: str, is_hashed: bool, options
) -> None:  # type: ignore[no-untyped-def]
    """Also with accept_new_host_keys: the libraries ask about changed keys as if they were new."""
    server = own_lab.start("127.0.0.4", known=False)
    own_lab.trust(server.address, server.port, make_key(tmp_path / "other", kind))
    if is_hashed:
        subprocess.run(
            ["ssh-keygen", "-q", "-H", "-f", str(own_lab.known_hosts)], check=True, capture_output=True
        )
    before = own_lab.known_hosts.read_text()
    outcome = outcome_for(spec_for(own_lab, server, root, transport=transport), tmp_path, options)
    assert outcome.state == "failed"
    assert "the key of 127.0.0.4 has changed" in outcome.reason
    assert "Accepted" not in server.log
    assert own_lab.known_hosts.read_text() == before


@BOTH
def test_a_revoked_host_key_is_refused(own_lab: SshLab, root: Path, tmp_path: Path, transport: str) -> None:
    server = own_lab.start("127.0.0.4")
    key = Path(f"{server.host_key}.pub").read_text()
    own_lab.known_hosts.write_text(own_lab.known_hosts.read_text() + f"@revoked * {key}")
    outcome = outcome_for(spec_for(own_lab, server, root, transport=transport), tmp_path, TRUSTING)
    assert outcome.state == "failed"
    assert "revoked" in outcome.reason


def test_a_host_certificate_of_a_known_authority_is_enough(
    own_lab: SshLab, root: Path, tmp_path: Path
) -> None:
    authority = make_key(tmp_path / "authority")
    key = make_key(tmp_path / "certified")
    subprocess.run(
        ["ssh-keygen", "-q", "-s", str(authority), "-I", "host", "-h", "-n", "127.0.0.4", f"{key}.pub"],
        check=True,
    )
    server = own_lab.start(
        "127.0.0.4", host_key=key, known=False, settings={"HostCertificate": f"{key}-cert.pub"}
    )
    spec = spec_for(own_lab, server, root)
    assert "not known" in outcome_for(spec, tmp_path).reason or outcome_for(spec, tmp_path).state == "failed"
    public = Path(f"{authority}.pub").read_text()
    own_lab.known_hosts.write_text(f"@cert-authority [127.0.0.*]:* {public}")
    assert outcome_for(spec, tmp_path).reason == ""


def test_known_hosts_none_means_no_host_is_known_not_any(own_lab: SshLab, root: Path, tmp_path: Path) -> None:
    """asyncssh by itself would check nothing at all then."""
    server = own_lab.start("127.0.0.4")
    config = tmp_path / "ssh_config"
    config.write_text("UserKnownHostsFile none\nStrictHostKeyChecking no\n")
    spec = spec_for(own_lab, server, root, known_hosts=None, ssh_config=str(config))
    assert "is not known" in outcome_for(spec, tmp_path).reason


def test_a_host_key_alias_names_the_entry(own_lab: SshLab, root: Path, tmp_path: Path) -> None:
    server = own_lab.start("127.0.0.4")
    key = Path(f"{server.host_key}.pub").read_text()
    own_lab.known_hosts.write_text(f"cluster-node {key}")
    config = tmp_path / "ssh_config"
    config.write_text("HostKeyAlias cluster-node\n")
    spec = spec_for(own_lab, server, root, ssh_config=str(config))
    assert outcome_for(spec, tmp_path).reason == ""
    assert "is not known" in outcome_for(replace(spec, ssh_config=os.devnull), tmp_path).reason
