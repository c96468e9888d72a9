"""User keys, certificates, agents and passwords."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_collect.spec import HostSpec
from cluster_run.ids import HostId, ServerId
from demo.sshd import SshLab, make_key
from tests.collect.helpers import BOTH, QUICK, Recorder, collected, only_host, outcome_for, spec_for
from tests.collect.paramiko_server import ParamikoServer

pytestmark = pytest.mark.slow  # many servers are started


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
@pytest.mark.parametrize("kind", ["rsa", "ecdsa"])
def test_other_kinds_of_user_keys_log_in(
    own_lab: SshLab, root: Path, tmp_path: Path, transport: str, kind: str
) -> None:
    server = own_lab.start("127.0.0.4")
    key = make_key(tmp_path / "user", kind)
    own_lab.authorized_keys.write_text(Path(f"{key}.pub").read_text())
    spec = spec_for(own_lab, server, root, transport=transport, identity_file=str(key))
    assert outcome_for(spec, tmp_path).reason == ""


@BOTH
def test_an_encrypted_key_needs_its_passphrase(
    own_lab: SshLab, root: Path, tmp_path: Path, transport: str
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


@BOTH
def test_the_agent_logs_in_where_no_key_is_named(
    own_lab: SshLab,
    root: Path,
    tmp_path: Path,
    agent: None,
    transport: str,
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
    own_lab: SshLab, root: Path, tmp_path: Path, agent: None, transport: str
) -> None:
    """Servers hang up after six keys; libraries offer the agent's first."""
    server = own_lab.start("127.0.0.4")
    for number in range(8):
        key = make_key(tmp_path / f"other{number}")
        subprocess.run(["ssh-add", "-q", str(key)], check=True, capture_output=True)
    assert outcome_for(spec_for(own_lab, server, root, transport=transport), tmp_path).reason == ""


@BOTH
def test_a_key_that_is_refused_is_offered_once_and_never_again(
    own_lab: SshLab, root: Path, tmp_path: Path, transport: str
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


@BOTH
def test_a_password_logs_in_and_a_wrong_one_is_tried_once(
    root: Path, tmp_path: Path, transport: str, monkeypatch: pytest.MonkeyPatch
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
def test_a_password_is_given_where_the_server_asks_for_it_in_a_dialogue(
    root: Path, tmp_path: Path, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    key = make_key(tmp_path / "host_key")
    allowed = "publickey,keyboard-interactive"
    with ParamikoServer(key, password="correct horse", allowed=allowed) as server:
        known = tmp_path / "known"
        known.write_text(f"[{server.address}]:{server.port} {Path(f'{key}.pub').read_text()}")
        good = replace(password_spec(server, root, known, "correct horse"), transport=transport)
        assert outcome_for(good, tmp_path).reason == ""
        wrong = outcome_for(replace(good, password="wrong"), tmp_path)
        assert wrong.failure == "login"


@BOTH
@pytest.mark.parametrize("where", ["default", "ssh_config"])
def test_the_passphrase_opens_keys_that_the_inventory_does_not_name(
    own_lab: SshLab, root: Path, tmp_path: Path, transport: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    (tmp_path / "home" / ".ssh").mkdir(parents=True)
    name = "id_ed25519" if where == "default" else "other"
    key = make_key(tmp_path / "home" / ".ssh" / name, passphrase="s3cret words")
    config = tmp_path / "config"
    config.write_text("" if where == "default" else f"IdentityFile {key}\n")
    own_lab.authorized_keys.write_text(Path(f"{key}.pub").read_text())
    server = own_lab.start("127.0.0.4")
    spec = spec_for(own_lab, server, root, transport=transport, identity_file=None, ssh_config=str(config))
    assert outcome_for(spec, tmp_path).failure in ("login", "ssh-setup")
    assert outcome_for(replace(spec, passphrase="s3cret words"), tmp_path).reason == ""


@BOTH
@pytest.mark.parametrize("where", ["inventory", "default", "ssh_config"])
def test_a_key_that_others_can_read_is_refused(
    own_lab: SshLab, root: Path, tmp_path: Path, transport: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    (tmp_path / "home" / ".ssh").mkdir(parents=True)
    key = make_key(tmp_path / "home" / ".ssh" / ("id_ed25519" if where == "default" else "other"))
    key.chmod(0o640)
    config = tmp_path / "config"
    config.write_text(f"IdentityFile {key}\n" if where == "ssh_config" else "")
    own_lab.authorized_keys.write_text(Path(f"{key}.pub").read_text())
    server = own_lab.start("127.0.0.4")
    named = str(key) if where == "inventory" else None
    spec = spec_for(own_lab, server, root, transport=transport, identity_file=named, ssh_config=str(config))
    outcome = outcome_for(spec, tmp_path)
    assert outcome.failure == "ssh-setup"
    assert "open to others (mode 0640)" in outcome.reason
    assert f"chmod 600 {key}" in outcome.advice
    key.chmod(0o600)
    assert outcome_for(spec, tmp_path).reason == ""


def _why_no_passwords() -> str:
    if os.geteuid() != 0 or not Path("/etc/pam.d/sshd").exists() or shutil.which("openssl") is None:
        return "only root can give a user a password for a test, with PAM and openssl"
    done = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    return "no mount namespaces on this machine" if done.returncode else ""


@BOTH
@pytest.mark.skipif(bool(_why_no_passwords()), reason=_why_no_passwords() or "it can run")
def test_pam_of_a_real_server_asks_for_the_password_in_a_dialogue(
    own_lab: SshLab, root: Path, tmp_path: Path, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    command = ["openssl", "passwd", "-6", "-stdin"]
    hashed = subprocess.run(command, input="correct horse", capture_output=True, text=True, check=True).stdout
    # The server sees this password, in a mount namespace of its own; the machine's stays what it is.
    (tmp_path / "shadow").write_text(f"root:{hashed.strip()}:19000:0:99999:7:::\n")
    (tmp_path / "start").write_text(f'mount --bind {tmp_path}/shadow /etc/shadow\nexec "$@"\n')
    settings = {
        "UsePAM": "yes",
        "KbdInteractiveAuthentication": "yes",
        "AuthenticationMethods": "keyboard-interactive",
        "PermitRootLogin": "yes",
    }
    inside = ("unshare", "--mount", "sh", str(tmp_path / "start"))
    server = own_lab.start("127.0.0.4", settings=settings, inside=inside)
    spec = spec_for(own_lab, server, root, transport=transport, identity_file=None, password="correct horse")
    assert outcome_for(spec, tmp_path).reason == ""
    assert "Accepted keyboard-interactive/pam for root" in server.log
    wrong = outcome_for(replace(spec, password="wrong"), tmp_path)
    assert wrong.failure == "login"
