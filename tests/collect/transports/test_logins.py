"""User keys, certificates, agents and passwords."""

from __future__ import annotations

import base64
import os
import shutil
import signal
import socket
import struct
import subprocess
import threading
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import asyncssh
import pytest

from cluster_collect.transports.ssh.by_asyncssh import dialer
from demo.sshd import SshLab, make_key
from tests.collect.conftest import Start
from tests.collect.helpers import BOTH, FULL, OneHost, Recorder
from tests.collect.paramiko_server import ParamikoServer, spec_of
from tests.commands import ran, wait_until

pytestmark = pytest.mark.slow  # many servers are started
PASSPHRASE = "s3cret words"


@pytest.fixture
def agent(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    socket = tmp_path / "agent"
    process = subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.DEVNULL)
    wait_until(socket.exists, process)
    monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
    yield
    process.send_signal(signal.SIGTERM)
    process.wait()


def allowed(lab: SshLab, path: Path, kind: str = "ed25519", passphrase: str = "") -> Path:
    """Make a key and let it, and no other, log in."""
    key = make_key(path, kind, passphrase)
    lab.authorized_keys.write_text(Path(f"{key}.pub").read_text())
    return key


def add_to_agent(key: Path) -> None:
    subprocess.run(["ssh-add", "-q", str(key)], check=True, capture_output=True)


@BOTH
@pytest.mark.parametrize("kind", ["rsa", "ecdsa"])
def test_other_kinds_of_user_keys_log_in(
    start: Start, lab: SshLab, tmp_path: Path, transport: str, kind: str
) -> None:
    key = allowed(lab, tmp_path / "user", kind)
    start(transport=transport, identity_file=str(key)).collect_all()


@BOTH
def test_an_encrypted_key_needs_its_passphrase(
    start: Start, lab: SshLab, tmp_path: Path, transport: str
) -> None:
    key = allowed(lab, tmp_path / "user", passphrase=PASSPHRASE)
    host = start(transport=transport, identity_file=str(key))
    refused = host.collect()
    assert refused.state == "failed"
    assert str(key) in refused.reason
    assert "identity_file" in refused.advice or "passphrase" in refused.advice
    host.having(passphrase=PASSPHRASE).collect_all()


def test_a_user_certificate_logs_in(start: Start, lab: SshLab, tmp_path: Path) -> None:
    authority, key = make_key(tmp_path / "authority"), make_key(tmp_path / "user")
    subprocess.run(
        ["ssh-keygen", "-q", "-s", str(authority), "-I", "me", "-n", lab.user, f"{key}.pub"], check=True
    )
    host = start({"TrustedUserCAKeys": f"{authority}.pub"}, identity_file=str(key))
    host.collect_all()
    assert "ED25519-CERT" in host.server.log


@BOTH
def test_the_agent_logs_in_where_no_key_is_named(
    start: Start, lab: SshLab, agent: None, transport: str
) -> None:
    host = start(transport=transport, identity_file=None)
    assert "login was refused" in host.collect().reason
    add_to_agent(lab.identity_file)
    host.collect_all()


@BOTH
def test_a_named_key_is_not_drowned_by_an_agent_full_of_others(
    start: Start, tmp_path: Path, agent: None, transport: str
) -> None:
    """Servers hang up after six keys; libraries offer the agent's first."""
    for number in range(8):
        add_to_agent(make_key(tmp_path / f"other{number}"))
    start(transport=transport).collect_all()


@BOTH
def test_a_key_that_is_refused_is_offered_once_and_never_again(
    start: Start, tmp_path: Path, transport: str
) -> None:
    key = make_key(tmp_path / "stranger")
    host = start({"LogLevel": "VERBOSE"}, transport=transport, identity_file=str(key))
    watch = Recorder()
    outcome = host.collect(watch=watch)
    assert outcome.state == "failed"
    assert "the login was refused" in outcome.reason
    assert watch.retries == []
    assert host.server.log.count("Connection from") == 1


def key_of_hardware(path: Path) -> Path:
    """Write the file of a FIDO key: `ssh-keygen -t ed25519-sk` makes none without the hardware."""

    def text(value: bytes) -> bytes:
        return struct.pack(">I", len(value)) + value

    public = text(b"sk-ssh-ed25519@openssh.com") + text(os.urandom(32)) + text(b"ssh:")
    secret = 2 * os.urandom(4) + public + b"\1" + text(os.urandom(64)) + text(b"") + text(b"me")
    secret += bytes(range(1, 1 + -len(secret) % 8))
    whole = (
        b"openssh-key-v1\0"
        + 2 * text(b"none")
        + text(b"")
        + struct.pack(">I", 1)
        + text(public)
        + text(secret)
    )
    body = base64.encodebytes(whole).decode()
    path.write_text(f"-----BEGIN OPENSSH PRIVATE KEY-----\n{body}-----END OPENSSH PRIVATE KEY-----\n")
    path.chmod(0o600)
    return path


@BOTH
def test_a_key_of_hardware_that_is_not_here_costs_no_other_key(
    start: Start, lab: SshLab, home: Path, config: Path, transport: str
) -> None:
    hardware, good = key_of_hardware(home / "id_ed25519_sk"), allowed(lab, home / "other")
    config.write_text(f"IdentityFile {hardware}\nIdentityFile {good}\n")
    start(transport=transport, identity_file=None, ssh_config=str(config)).collect_all()
    refused = start(transport=transport, identity_file=str(hardware)).collect()
    assert refused.failure in ("login", "ssh-setup")


@BOTH
def test_a_missing_key_file_is_named(start: Start, tmp_path: Path, transport: str) -> None:
    outcome = start(transport=transport, identity_file=str(tmp_path / "no_key")).collect()
    assert outcome.state == "failed"
    assert "no_key" in outcome.reason


@BOTH
@pytest.mark.parametrize("allows", ["publickey,password", "publickey,keyboard-interactive"])
def test_a_password_logs_in_also_in_a_dialogue_and_a_wrong_one_is_tried_once(
    root: Path, keys: tuple[Path, Path], tmp_path: Path, home: Path, transport: str, allows: str
) -> None:
    with ParamikoServer(keys[0], password="correct horse", allowed=allows) as server:
        spec = spec_of(server, keys, root, identity_file=None, password="correct horse", transport=transport)
        host = OneHost(spec, root, tmp_path / "run")
        host.collect_all()
        assert server.n_password_tries == 1
        watch = Recorder()
        wrong = replace(host.having(password="wrong"), run=tmp_path / "run2").collect(watch=watch)
        assert server.n_password_tries == 2
    assert (wrong.state, wrong.failure, watch.retries) == ("failed", "login", [])
    assert "the login was refused" in wrong.reason
    assert "correct horse" not in repr(spec)


def found_in(where: str, key: Path, config: Path) -> dict[str, object]:
    """Have a key be named by the inventory or by the client's configuration, or have its usual name."""
    config.write_text(f"IdentityFile {key}\n" if where == "ssh_config" else "")
    return {"identity_file": str(key) if where == "inventory" else None, "ssh_config": str(config)}


@BOTH
@pytest.mark.parametrize(("where", "name"), [("default", "id_ed25519"), ("ssh_config", "other")])
def test_the_passphrase_opens_keys_that_the_inventory_does_not_name(
    start: Start, lab: SshLab, home: Path, config: Path, transport: str, where: str, name: str
) -> None:
    key = allowed(lab, home / ".ssh" / name, passphrase=PASSPHRASE)
    host = start(transport=transport, **found_in(where, key, config))
    assert host.collect().failure in ("login", "ssh-setup")
    host.having(passphrase=PASSPHRASE).collect_all()


@BOTH
@pytest.mark.parametrize(
    ("where", "name"), [("inventory", "other"), ("default", "id_ed25519"), ("ssh_config", "other")]
)
def test_a_key_that_others_can_read_is_refused(
    start: Start, lab: SshLab, home: Path, config: Path, transport: str, where: str, name: str
) -> None:
    key = allowed(lab, home / ".ssh" / name)
    key.chmod(0o640)
    host = start(transport=transport, **found_in(where, key, config))
    outcome = host.collect()
    assert outcome.failure == "ssh-setup"
    assert "open to others (mode 0640)" in outcome.reason
    assert f"chmod 600 {key}" in outcome.advice
    key.chmod(0o600)
    host.collect_all()


def _why_no_passwords() -> str:
    if os.geteuid() != 0 or not Path("/etc/pam.d/sshd").exists() or shutil.which("openssl") is None:
        return "only root can give a user a password for a test, with PAM and openssl"
    done = subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False)
    return "no mount namespaces on this machine" if done.returncode else ""


@BOTH
@pytest.mark.skipif(bool(_why_no_passwords()), reason=_why_no_passwords() or "it can run")
def test_pam_of_a_real_server_asks_for_the_password_in_a_dialogue(
    start: Start, tmp_path: Path, home: Path, transport: str
) -> None:
    command = ["openssl", "passwd", "-6", "-stdin"]
    hashed = ran(command, input="correct horse", check=True).stdout
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
    login = {"identity_file": None, "password": "correct horse", "transport": transport}
    host = start(settings, inside=inside, **login)
    host.collect_all()
    assert "Accepted keyboard-interactive/pam for root" in host.server.log
    assert host.having(password="wrong").collect().failure == "login"


@pytest.mark.parametrize(
    ("setting", "old"), [("KexAlgorithms", "diffie-hellman-group1-sha1"), ("HostKeyAlgorithms", "ssh-rsa")]
)
def test_a_server_of_old_algorithms_is_told_with_what_it_offers_and_reached_once_that_is_allowed(
    start: Start, config: Path, tmp_path: Path, setting: str, old: str
) -> None:
    key = make_key(tmp_path / "rsa", "rsa")
    host = start({setting: old}, host_key=key).having(ssh_config=str(config))
    outcome = host.collect(replace(FULL, n_attempts=1))
    assert outcome.failure == "ssh-setup"
    assert f"found; it offers {old}" in outcome.reason
    assert "KexAlgorithms" in outcome.advice
    config.write_text(f"Host *\n  {setting} +{old}\n")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # those of cryptography, of old ways
        host.collect_all()


def offer_of(host_key_kind: bytes) -> bytes:
    """The packet in which a server says what it can do."""
    names = [host_key_kind, *[b"none"] * 7, b"", b""]
    offer = b"\x14" + bytes(16) + b"".join(struct.pack(">I", len(one)) + one for one in names) + bytes(5)
    n_padding = 16 - (len(offer) + 5) % 8
    return struct.pack(">IB", len(offer) + n_padding + 1, n_padding) + offer + bytes(n_padding)


@pytest.mark.parametrize(
    ("greeting", "n_unread", "words", "reason"),
    [
        # More than the client's version: it has said all that it says unasked.
        (b"SSH-2.0-old\r\n", 200, offer_of(b"old-one"), "it offers old-one"),
        (b"", 1, b"Exceeded MaxStartups\r\n", "the connection was lost: it said: Exceeded MaxStartups"),
    ],
)
@pytest.mark.parametrize("ends", ["closes", "resets", "resets before we write"])
def test_a_server_that_hangs_up_at_once_is_told_by_what_it_said(
    host: OneHost,
    ends: str,
    greeting: bytes,
    n_unread: int,
    words: bytes,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_early = ends == "resets before we write"

    def serve() -> None:
        with listener.accept()[0] as client:
            connected.wait()
            client.sendall(greeting)
            n_left = 0 if is_early else n_unread
            while n_left > 0:
                n_left -= len(client.recv(1 << 16)) or n_left
            client.sendall(words)
            if ends != "closes":
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            client.shutdown(socket.SHUT_WR)
            while client.recv(1 << 16):
                pass

    def connection_made(self: dialer._Client, connection: asyncssh.SSHClientConnection) -> None:
        connected.set()
        if is_early:
            serving.join()
        made(self, connection)

    connected = threading.Event()
    made = dialer._Client.connection_made
    monkeypatch.setattr(dialer._Client, "connection_made", connection_made)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = threading.Thread(target=serve)
        serving.start()
        place = {"address": "127.0.0.1", "port": listener.getsockname()[1]}
        outcome = host.having(**place).collect(replace(FULL, n_attempts=1))
        serving.join()
    assert reason in outcome.reason
