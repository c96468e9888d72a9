"""known_hosts files, and the rule about keys."""

from __future__ import annotations

import base64
import hmac
import subprocess
from functools import cache
from pathlib import Path

import pytest

from cluster_collect.transports.ssh.host_keys import HostKeyJudge
from cluster_collect.transports.ssh.known_hosts import (
    KnownHosts,
    fingerprint,
    read_known_hosts,
    remember_host,
)
from demo.sshd import make_key
from tests.commands import ran

KEY, OTHER = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5", "ssh-rsa AAAAB3NzaC1yc2E="


def known(text: str) -> KnownHosts:
    hosts = KnownHosts()
    hosts.add_text(text)
    return hosts


NODES = f"*.cluster,!bad.cluster {KEY}"


@pytest.mark.parametrize(
    ("line", "known_as", "not_as"),
    [
        (f"node1 {KEY}", ("node1", 22), ("node10", 22)),
        (f"node1 {KEY}", ("node1", 22), ("node1", 2222)),
        (f"node1,10.0.0.1 {KEY} comment", ("10.0.0.1", 22), ("10.0.0.2", 22)),
        (f"NODE1 {KEY}", ("node1", 22), ("node2", 22)),
        (f"[node1]:2222 {KEY}", ("node1", 2222), ("node1", 22)),
        (f"node* {KEY}", ("node1", 22), ("gate", 22)),
        (NODES, ("good.cluster", 22), ("bad.cluster", 22)),
        (f"[*.cluster]:2222 {KEY}", ("good.cluster", 2222), ("good.cluster", 22)),
        (f"# node1 {KEY}", None, ("node1", 22)),
        ("node1 ssh-ed25519", None, ("node1", 22)),
        ("|1|!!!|x ssh-ed25519 AAAA", None, ("node1", 22)),
    ],
)
def test_a_host_is_found_by_its_names_and_port_and_no_other(
    line: str, known_as: tuple[str, int] | None, not_as: tuple[str, int]
) -> None:
    if known_as:
        assert known(line).lookup([known_as[0]], known_as[1]).trusted == (KEY,)
    assert not known(line).lookup([not_as[0]], not_as[1]).trusted


def test_hashed_names_are_those_of_ssh_keygen(tmp_path: Path) -> None:
    key = make_key(tmp_path / "key").with_suffix(".pub").read_text().rsplit(" ", 1)[0]
    path = tmp_path / "known_hosts"
    path.write_text(f"[127.0.0.9]:2222 {key}\nnode7 {key}\n")
    subprocess.run(["ssh-keygen", "-q", "-H", "-f", str(path)], check=True, capture_output=True)
    assert "node7" not in path.read_text()
    hosts = read_known_hosts([path, tmp_path / "missing"])
    assert hosts.lookup(["127.0.0.9"], 2222).trusted == (key,)
    assert hosts.lookup(["node7"], 22).trusted == (key,)
    assert not hosts.lookup(["node8"], 22).trusted


def test_one_of_five_thousand_hashed_names_is_found_and_added_lines_count(tmp_path: Path) -> None:
    lines = []
    for number in range(5000):
        salt = number.to_bytes(20, "big")
        digest = hmac.digest(salt, b"node%d" % number, "sha1")
        lines.append(
            f"|1|{base64.b64encode(salt).decode()}|{base64.b64encode(digest).decode()} {KEY}{number}"
        )
    hosts = known("\n".join(lines))
    assert hosts.lookup(["node4711"], 22).trusted == (f"{KEY}4711",)
    assert not hosts.lookup(["node5000"], 22).trusted
    hosts.add_text(f"node5000 {OTHER}")
    assert hosts.lookup(["node5000"], 22).trusted == (OTHER,)


def test_authorities_and_revoked_keys_are_kept_apart() -> None:
    found = known(f"@cert-authority *.cluster {KEY}\n@revoked * {OTHER}\n").lookup(["a.cluster"], 22)
    assert (found.trusted, found.authorities, found.revoked) == ((), (KEY,), (OTHER,))


def test_the_fingerprint_is_that_of_ssh_keygen(tmp_path: Path) -> None:
    key = make_key(tmp_path / "key").with_suffix(".pub")
    listed = ran(["ssh-keygen", "-lf", str(key)], check=True)
    assert fingerprint(key.read_text()) == listed.stdout.split()[1]


def judge(path: Path, accept_new: bool) -> HostKeyJudge:
    return HostKeyJudge("node1", 22, None, (path,), cache(read_known_hosts), accept_new)


@pytest.mark.parametrize("accept_new", [False, True])
@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("", "new"),
        (f"node1 {KEY}", "trusted"),
        (f"node1 {OTHER}", "changed"),
        (f"@revoked * {KEY}", "revoked"),
    ],
)
def test_only_a_host_without_any_key_is_ever_new(
    tmp_path: Path, line: str, verdict: str, accept_new: bool
) -> None:
    path = tmp_path / "known_hosts"
    path.write_text(line + "\n")
    one = judge(path, accept_new)
    accepted = one.accepts("10.0.0.1", KEY)
    wanted = "unknown" if verdict == "new" and not accept_new else verdict
    assert (one.verdict, accepted) == (wanted, wanted in ("new", "trusted"))
    assert bool(one.confirm()) == (wanted == "new")
    assert (f"node1 {KEY}" in path.read_text()) == (wanted in ("new", "trusted"))


def test_a_new_key_goes_into_a_private_file_on_a_line_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "ssh" / "known_hosts"
    remember_host(path, "node1", 2222, KEY)
    assert path.read_text() == f"[node1]:2222 {KEY}\n"
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("no newline at the end")
    remember_host(path, "node2", 22, KEY)
    assert path.read_text() == f"no newline at the end\nnode2 {KEY}\n"
