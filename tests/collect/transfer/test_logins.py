"""Host keys, user keys, certificates, agents, passwords, jump hosts, and the client's own configuration."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_collect.spec import HostSpec, TransportName
from cluster_run.ids import HostId, ServerId
from cluster_run.manifest import HostOutcome
from demo.sshd import SshLab, SshServer, make_key
from demo.tcp_proxy import Mischief, TcpProxy

from .helpers import QUICK, Recorder, collected, make_capture, only_host, spec_for
from .paramiko_server import ParamikoServer

pytestmark = pytest.mark.slow  # many servers are started

BOTH = pytest.mark.parametrize("transport", ["asyncssh", "paramiko"])
TRUSTING = replace(QUICK, accept_new_host_keys=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_capture(tmp_path / "host")
    return tmp_path / "host"


def outcome_for(spec: HostSpec, tmp_path: Path, options=QUICK, watch=None) -> HostOutcome:  # type: ignore[no-untyped-def]
    return only_host(collected(spec, tmp_path / "run", options, watch))


@BOTH
def test_an_unknown_host_key_is_refused_and_nothing_is_sent(
    own_lab: SshLab, root: Path, tmp_path: Path, transport: TransportName
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
    own_lab: SshLab, root: Path, tmp_path: Path, transport: TransportName
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
@pytest.mark.parametrize("kind", ["ed25519", "rsa"])
@pytest.mark.parametrize("is_hashed", [False, True])
@pytest.mark.parametrize("options", [QUICK, TRUSTING])
def test_a_changed_host_key_is_always_refused(
    own_lab: SshLab, root: Path, tmp_path: Path, transport: TransportName, kind: str, is_hashed: bool, options
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
def test_a_revoked_host_key_is_refused(
    own_lab: SshLab, root: Path, tmp_path: Path, transport: TransportName
) -> None:
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


@BOTH
@pytest.mark.parametrize("kind", ["rsa", "ecdsa"])
def test_other_kinds_of_user_keys_log_in(
    own_lab: SshLab, root: Path, tmp_path: Path, transport: TransportName, kind: str
) -> None:
    server = own_lab.start("127.0.0.4")
    key = make_key(tmp_path / "user", kind)
    own_lab.authorized_keys.write_text(Path(f"{key}.pub").read_text())
    spec = spec_for(own_lab, server, root, transport=transport, identity_file=str(key))
    assert outcome_for(spec, tmp_path).reason == ""


@BOTH
def test_an_encrypted_key_needs_its_passphrase(
    own_lab: SshLab, root: Path, tmp_path: Path, transport: TransportName
) -> None:
    server = own_lab.start("127.0.0.4")
    key = make_key(tmp_path / "user", passphrase="s3cret words")
    own_lab.authorized_keys.write_text(Path(f"{key}.pub").read_text())
    spec = spec_for(own_lab, server, root, transport=transport, identity_file=str(key))
    refused = outcome_for(spec, tmp_path)
    assert refused.state == "failed"
    assert str(key) in refused.reason
    assert "identity_file" in refused.advice or "passphrase" in refused.advice
    assert outcome_for(replace(spec, passphrase="s3cret words"), tmp_path).reason == ""


def test_a_user_certificate_logs_in(own_lab: SshLab, root: Path, tmp_path: Path) -> None:
    authority = make_key(tmp_path / "authority")
    key = make_key(tmp_path / "user")
    subprocess.run(
        ["ssh-keygen", "-q", "-s", str(authority), "-I", "me", "-n", own_lab.user, f"{key}.pub"], check=True
    )
    server = own_lab.start("127.0.0.4", settings={"TrustedUserCAKeys": f"{authority}.pub"})
    spec = spec_for(own_lab, server, root, identity_file=str(key))
    assert outcome_for(spec, tmp_path).reason == ""
    assert "ED25519-CERT" in server.log


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    socket = tmp_path / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.DEVNULL)
    while not socket.exists():
        assert process.poll() is None
    monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
    yield
    process.send_signal(signal.SIGTERM)
    process.wait()


@BOTH
def test_the_agent_logs_in_where_no_key_is_named(
    own_lab: SshLab,
    root: Path,
    tmp_path: Path,
    agent: None,
    transport: TransportName,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # none of the developer's own keys
    server = own_lab.start("127.0.0.4")
    spec = spec_for(own_lab, server, root, transport=transport, identity_file=None)
    assert "login was refused" in outcome_for(spec, tmp_path).reason
    subprocess.run(["ssh-add", "-q", str(own_lab.identity_file)], check=True, capture_output=True)
    assert outcome_for(spec, tmp_path).reason == ""


@BOTH
def test_a_named_key_is_not_drowned_by_an_agent_full_of_others(
    own_lab: SshLab, root: Path, tmp_path: Path, agent: None, transport: TransportName
) -> None:
    """Servers hang up after six keys; libraries offer the agent's first."""
    server = own_lab.start("127.0.0.4")
    for number in range(8):
        key = make_key(tmp_path / f"other{number}")
        subprocess.run(["ssh-add", "-q", str(key)], check=True, capture_output=True)
    assert outcome_for(spec_for(own_lab, server, root, transport=transport), tmp_path).reason == ""


@BOTH
def test_a_key_that_is_refused_is_offered_once_and_never_again(
    own_lab: SshLab, root: Path, tmp_path: Path, transport: TransportName
) -> None:
    server = own_lab.start("127.0.0.4", settings={"LogLevel": "VERBOSE"})
    key = make_key(tmp_path / "stranger")
    spec = spec_for(own_lab, server, root, transport=transport, identity_file=str(key))
    watch = Recorder()
    outcome = outcome_for(spec, tmp_path, watch=watch)
    assert outcome.state == "failed"
    assert "the login was refused" in outcome.reason
    assert watch.retries == []
    # one connection is the one that waits for the server to start
    assert server.log.count("Connection from") == 2


def test_a_missing_key_file_is_named(own_lab: SshLab, root: Path, tmp_path: Path) -> None:
    server = own_lab.start("127.0.0.4")
    for transport in ("asyncssh", "paramiko"):
        spec = spec_for(own_lab, server, root, transport=transport, identity_file=str(tmp_path / "no_key"))
        outcome = outcome_for(spec, tmp_path)
        assert "no_key" in outcome.reason
        assert outcome.state == "failed"


def password_spec(server: ParamikoServer, root: Path, known_hosts: Path, password: str | None) -> HostSpec:
    return HostSpec(
        host=HostId("1"),
        server_id=ServerId("s"),
        address=server.address,
        port=server.port,
        user="somebody",
        known_hosts=str(known_hosts),
        profiler_root=str(root),
        password=password,
        ssh_config=os.devnull,
    )


@BOTH
def test_a_password_logs_in_and_a_wrong_one_is_tried_once(
    root: Path, tmp_path: Path, transport: TransportName, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    key = make_key(tmp_path / "host_key")
    with ParamikoServer(key, password="correct horse") as server:
        known = tmp_path / "known"
        known.write_text(f"[{server.address}]:{server.port} {Path(f'{key}.pub').read_text()}")
        spec = replace(password_spec(server, root, known, "correct horse"), transport=transport)
        assert outcome_for(spec, tmp_path).reason == ""
        assert server.n_password_tries == 1
        watch = Recorder()
        refused = only_host(collected(replace(spec, password="wrong"), tmp_path / "run2", QUICK, watch))
        assert server.n_password_tries == 2
        assert (refused.state, watch.retries) == ("failed", [])
        assert "the login was refused" in refused.reason
        assert "correct horse" not in repr(spec)


@BOTH
def test_a_jump_host_leads_to_hosts_that_only_it_can_reach(
    own_lab: SshLab, root: Path, tmp_path: Path, transport: TransportName
) -> None:
    gateway, target = own_lab.start("127.0.0.4"), own_lab.start("127.0.0.5")
    jump = f"{gateway.address}:{gateway.port}"
    spec = spec_for(own_lab, target, root, transport=transport, jump=jump)
    assert outcome_for(spec, tmp_path).reason == ""
    assert "Accepted publickey" in gateway.log
    assert "Accepted publickey" in target.log


def test_twenty_targets_share_one_connection_to_the_jump_host(
    own_lab: SshLab, root: Path, tmp_path: Path
) -> None:
    gateway, target = own_lab.start("127.0.0.4"), own_lab.start("127.0.0.5")
    jump = f"{own_lab.user}@{gateway.address}:{gateway.port}"
    specs = [spec_for(own_lab, target, root, number, jump=jump) for number in range(1, 21)]
    manifest = collected(specs, tmp_path / "run")
    assert [host.reason for host in manifest.hosts] == [""] * 20
    assert gateway.log.count("Accepted publickey") == 1
    assert target.log.count("Accepted publickey") == 20


def test_two_jump_hosts_in_a_row(own_lab: SshLab, root: Path, tmp_path: Path) -> None:
    first, second, target = (own_lab.start(f"127.0.0.{last}") for last in (4, 5, 6))
    jump = f"{first.address}:{first.port},{second.address}:{second.port}"
    for transport in ("asyncssh", "paramiko"):
        spec = spec_for(own_lab, target, root, jump=jump, transport=transport)
        assert only_host(collected(spec, tmp_path / transport)).reason == ""


@BOTH
def test_a_jump_host_with_an_unknown_key_is_not_used(
    own_lab: SshLab, root: Path, tmp_path: Path, transport: TransportName
) -> None:
    gateway = own_lab.start("127.0.0.4", known=False)
    target = own_lab.start("127.0.0.5")
    jump = f"{gateway.address}:{gateway.port}"
    outcome = outcome_for(spec_for(own_lab, target, root, jump=jump, transport=transport), tmp_path)
    assert "the key of 127.0.0.4 is not known" in outcome.reason


def test_a_target_behind_the_jump_host_that_refuses_is_told_as_such(
    own_lab: SshLab, root: Path, tmp_path: Path
) -> None:
    gateway = own_lab.start("127.0.0.4")
    dead = SshServer("127.0.0.5", 1, gateway.directory, 0)
    spec = spec_for(own_lab, dead, root, jump=f"{gateway.address}:{gateway.port}")
    assert "127.0.0.5: not reachable through its jump host" in outcome_for(spec, tmp_path).reason


@BOTH
def test_the_clients_own_configuration_is_honoured(
    own_lab: SshLab, root: Path, tmp_path: Path, transport: TransportName
) -> None:
    gateway, target = own_lab.start("127.0.0.4"), own_lab.start("127.0.0.5")
    config = tmp_path / "ssh_config"
    config.write_text(
        f"Host node-*\n  HostName {target.address}\n  Port {target.port}\n  ProxyJump gate\n"
        f"Host gate\n  HostName {gateway.address}\n  Port {gateway.port}\n"
        f"Host *\n  User {own_lab.user}\n  IdentityFile {own_lab.identity_file}\n"
        f"  UserKnownHostsFile {own_lab.known_hosts}\n"
    )
    spec = HostSpec(
        host=HostId("1"),
        server_id=ServerId("s"),
        address="node-7",
        profiler_root=str(root),
        transport=transport,
        ssh_config=str(config),
        known_hosts=str(own_lab.known_hosts) if transport == "paramiko" else None,
    )
    assert outcome_for(spec, tmp_path).reason == ""
    assert "Accepted publickey" in gateway.log


@BOTH
def test_the_configuration_in_the_home_directory_is_found(
    own_lab: SshLab, root: Path, tmp_path: Path, transport: TransportName, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = own_lab.start("127.0.0.5")
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "config").write_text(
        f"Host node1\n  HostName {target.address}\n  Port {target.port}\n  User {own_lab.user}\n"
    )
    monkeypatch.setenv("HOME", str(home))
    spec = HostSpec(
        host=HostId("1"),
        server_id=ServerId("s"),
        address="node1",
        profiler_root=str(root),
        transport=transport,
        identity_file=str(own_lab.identity_file),
        known_hosts=str(own_lab.known_hosts),
    )
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


def test_a_gateway_that_dies_is_connected_again(own_lab: SshLab, root: Path, tmp_path: Path) -> None:
    gateway, target = own_lab.start("127.0.0.4"), own_lab.start("127.0.0.5")
    cut = Mischief(cut_after_bytes=6_000)
    with TcpProxy(gateway.address, gateway.port, mischief=(cut,)) as proxy:
        own_lab.trust("127.0.0.1", proxy.port, gateway.host_key)
        spec = spec_for(own_lab, target, root, jump=f"127.0.0.1:{proxy.port}")
        watch = Recorder()
        assert outcome_for(spec, tmp_path, watch=watch).reason == ""
    assert len(watch.retries) == 1
