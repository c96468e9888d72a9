"""Jump hosts, and the client's own configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_collect.spec import HostSpec
from cluster_run.ids import HostId, ServerId
from demo.sshd import SshLab, SshServer
from demo.tcp_proxy import Mischief, TcpProxy
from tests.collect.helpers import BOTH, Recorder, collected, only_host, outcome_for, spec_for

pytestmark = pytest.mark.slow  # many servers are started


@BOTH
def test_a_jump_host_leads_to_hosts_that_only_it_can_reach(
    own_lab: SshLab, root: Path, tmp_path: Path, transport: str
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
    own_lab: SshLab, root: Path, tmp_path: Path, transport: str
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
    own_lab: SshLab, root: Path, tmp_path: Path, transport: str
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
    own_lab: SshLab, root: Path, tmp_path: Path, transport: str, monkeypatch: pytest.MonkeyPatch
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


def test_a_gateway_that_dies_is_connected_again(own_lab: SshLab, root: Path, tmp_path: Path) -> None:
    gateway, target = own_lab.start("127.0.0.4"), own_lab.start("127.0.0.5")
    cut = Mischief(cut_after_bytes=6_000)
    with TcpProxy(gateway.address, gateway.port, mischief=(cut,)) as proxy:
        own_lab.trust("127.0.0.1", proxy.port, gateway.host_key)
        spec = spec_for(own_lab, target, root, jump=f"127.0.0.1:{proxy.port}")
        watch = Recorder()
        assert outcome_for(spec, tmp_path, watch=watch).reason == ""
    assert len(watch.retries) == 1
