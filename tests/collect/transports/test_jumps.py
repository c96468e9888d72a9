"""Jump hosts, and the client's own configuration."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.tcp_proxy import Mischief, TcpProxy
from cluster_collect.spec import HostSpec
from cluster_run.ids import HostId, ServerId
from demo.sshd import SshLab, SshServer
from tests.collect.conftest import Start
from tests.collect.helpers import BOTH, OneHost, Recorder, collected

pytestmark = pytest.mark.slow  # many servers are started


@pytest.fixture
def gateway(lab: SshLab) -> SshServer:
    return lab.start("127.0.0.5")


def over(*servers: SshServer) -> str:
    return ",".join(f"{server.address}:{server.port}" for server in servers)


@BOTH
def test_a_jump_host_leads_to_hosts_that_only_it_can_reach(
    start: Start, gateway: SshServer, transport: str
) -> None:
    target = start(transport=transport, jump=over(gateway))
    target.collect_all()
    assert "Accepted publickey" in gateway.log
    assert "Accepted publickey" in target.server.log


def test_twenty_targets_share_one_connection_to_the_jump_host(
    start: Start, lab: SshLab, gateway: SshServer
) -> None:
    target = start(jump=f"{lab.user}@{over(gateway)}")
    ids = [(HostId(str(number)), ServerId(f"server-{number}")) for number in range(1, 21)]
    specs = [replace(target.spec, host=host, server_id=server_id) for host, server_id in ids]
    assert [host.reason for host in collected(specs, target.run).hosts] == [""] * 20
    assert gateway.log.count("Accepted publickey") == 1
    assert target.server.log.count("Accepted publickey") == 20


@BOTH
def test_two_jump_hosts_in_a_row(start: Start, lab: SshLab, gateway: SshServer, transport: str) -> None:
    start(jump=over(gateway, lab.start("127.0.0.6")), transport=transport).collect_all()


@BOTH
def test_a_jump_host_with_an_unknown_key_is_not_used(start: Start, lab: SshLab, transport: str) -> None:
    unknown = lab.start("127.0.0.5", known=False)
    outcome = start(jump=over(unknown), transport=transport).collect()
    assert "the key of 127.0.0.5 is not known" in outcome.reason


def test_a_target_behind_the_jump_host_that_refuses_is_told_as_such(start: Start, gateway: SshServer) -> None:
    outcome = start(jump=over(gateway), port=1).collect()
    assert outcome.reason.startswith("not reachable through its jump host")


@BOTH
def test_a_jump_host_that_refuses_is_told_from_the_host_behind_it(start: Start, transport: str) -> None:
    outcome = start(jump="127.0.0.5:1", transport=transport).collect()
    assert (outcome.state, outcome.failure) == ("failed", "unreachable")
    assert "Connection refused" in outcome.reason
    assert outcome.reason.startswith("127.0.0.5: ")
    assert "this is the jump host" in outcome.reason


def named(address: str, root: Path, run: Path, **changes: object) -> OneHost:
    """A host of which the client's configuration says the rest."""
    spec = HostSpec(HostId("1"), ServerId("s"), address=address, profiler_root=str(root))
    return OneHost(spec, root, run).having(**changes)


@BOTH
def test_the_clients_own_configuration_is_honoured(
    start: Start, lab: SshLab, gateway: SshServer, config: Path, transport: str
) -> None:
    target = start()
    config.write_text(
        f"Host node-*\n  HostName {target.server.address}\n  Port {target.server.port}\n  ProxyJump gate\n"
        f"Host gate\n  HostName {gateway.address}\n  Port {gateway.port}\n"
        f"Host *\n  User {lab.user}\n  IdentityFile {lab.identity_file}\n"
        f"  UserKnownHostsFile {lab.known_hosts}\n"
    )
    named("node-7", target.root, target.run, transport=transport, ssh_config=str(config)).collect_all()
    assert "Accepted publickey" in gateway.log


@BOTH
@pytest.mark.parametrize("jump", [None, "near"])
def test_a_jump_host_is_reached_through_its_own(
    start: Start, lab: SshLab, gateway: SshServer, config: Path, transport: str, jump: str | None
) -> None:
    target, near = start(), lab.start("127.0.0.6")
    config.write_text(
        f"Host node1\n  HostName {target.server.address}\n  Port {target.server.port}\n  ProxyJump near\n"
        f"Host near\n  HostName {near.address}\n  Port {near.port}\n"
        f"Host far\n  HostName {gateway.address}\n  Port {gateway.port}\n"
        f"Host *\n  ProxyJump far\n  User {lab.user}\n  IdentityFile {lab.identity_file}\n"
        f"  UserKnownHostsFile {lab.known_hosts}\n"
    )
    host = named("node1", target.root, target.run, transport=transport, ssh_config=str(config), jump=jump)
    host.collect_all()
    assert [log.count("Accepted publickey") for log in (gateway.log, near.log)] == [1, 1]


@BOTH
def test_included_files_matches_and_the_own_address_are_honoured(
    start: Start, lab: SshLab, config: Path, transport: str
) -> None:
    target = start()
    (config.parent / "more").write_text(
        f"Match host node1\n  HostName {target.server.address}\n  Port {target.server.port}\n"
        f"  User {lab.user}\n  BindAddress 127.0.0.77\n"
    )
    config.write_text(f"Include {config.parent}/more\n")
    keys = {"identity_file": str(lab.identity_file), "known_hosts": str(lab.known_hosts)}
    named("node1", target.root, target.run, transport=transport, ssh_config=str(config), **keys).collect_all()
    assert f"Accepted publickey for {lab.user} from 127.0.0.77 " in target.server.log


@BOTH
def test_the_configuration_in_the_home_directory_is_found(
    start: Start, lab: SshLab, home: Path, transport: str
) -> None:
    target = start()
    (home / ".ssh" / "config").write_text(
        f"Host node1\n  HostName {target.server.address}\n  Port {target.server.port}\n  User {lab.user}\n"
    )
    keys = {"identity_file": str(lab.identity_file), "known_hosts": str(lab.known_hosts)}
    named("node1", target.root, target.run, transport=transport, **keys).collect_all()


def test_a_gateway_that_dies_is_connected_again(start: Start, lab: SshLab, gateway: SshServer) -> None:
    cut = Mischief(cut_after_bytes=6_000)
    with TcpProxy(gateway.address, gateway.port, mischief=(cut,)) as proxy:
        lab.trust("127.0.0.1", proxy.port, gateway.host_key)
        watch = Recorder()
        start(jump=f"127.0.0.1:{proxy.port}").collect_all(watch=watch)
    assert len(watch.retries) == 1
