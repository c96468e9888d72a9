"""`become: sudo`: another user's profiler data, by real SSH servers and the real sudo.

Logins become `nobody`, and sudo reads rules of the test, in a mount namespace of each login: the machine's
own stay as they are.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_collect.spec import HostSpec
from demo.sshd import SshLab
from tests.collect.helpers import (
    BOTH,
    FULL,
    Recorder,
    collected,
    host_tree,
    make_capture,
    only_host,
    spec_for,
    tree,
)

_SUDO = shutil.which("sudo")
_NAMESPACE = ("unshare", "--mount", "true")


def _why_not() -> str:
    if os.geteuid() != 0:
        return "only root can give a test its own rules for sudo"
    if _SUDO is None:
        return "no sudo on this machine: apt-get install sudo"
    if subprocess.run(_NAMESPACE, capture_output=True, check=False).returncode != 0:
        return "no mount namespaces on this machine"
    return ""


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(_why_not()), reason=_why_not() or "it can run"),
]

#: How each kind of site writes its rules; `daemon` owns the data.
FREE = "nobody ALL=(daemon) NOPASSWD: ALL"
WITH_PASSWORD = "nobody ALL=(daemon) ALL"
WITH_TERMINAL = f"Defaults requiretty\n{FREE}"
FOR_ANOTHER = "nobody ALL=(games) NOPASSWD: ALL"

Site = Callable[[str], HostSpec]


@pytest.fixture
def owned() -> Iterator[Path]:
    """A root that only `daemon` can enter."""
    root = Path(tempfile.mkdtemp())
    make_capture(root, n_more=3)
    subprocess.run(["chown", "-R", "daemon:daemon", str(root)], check=True)
    root.chmod(0o700)
    yield root
    shutil.rmtree(root)


@pytest.fixture
def site(own_lab: SshLab, owned: Path, tmp_path: Path) -> Site:
    """Make a host whose sudo has the given rules."""

    def made(rules: str) -> HostSpec:
        sudoers = tmp_path / "sudoers"
        sudoers.write_text(f"Defaults env_reset,use_pty\n{rules}\n")
        sudoers.chmod(0o440)
        login = tmp_path / "login"
        login.write_text(
            f"mount --bind {sudoers} /etc/sudoers\n"
            "exec setpriv --reuid=nobody --regid=nogroup --clear-groups"
            ' sh -c "${SSH_ORIGINAL_COMMAND:-/usr/lib/openssh/sftp-server}"\n'
        )
        server = own_lab.start("127.0.0.4", settings={"ForceCommand": f"exec unshare --mount sh {login}"})
        return spec_for(own_lab, server, owned, become="sudo", become_user="daemon")

    return made


@BOTH
def test_another_users_data_are_collected_whole(
    site: Site, owned: Path, tmp_path: Path, transport: str
) -> None:
    spec = replace(site(FREE), transport=transport)
    as_login_user = only_host(collected(replace(spec, become=None), tmp_path / "without", FULL))
    assert as_login_user.failure == "no-profiler-root"
    outcome = only_host(collected(spec, tmp_path / "run", replace(FULL, verify=True)))
    assert outcome.state == "complete", outcome.reason
    assert host_tree(tmp_path / "run") == tree(owned)


def test_the_home_directory_is_that_of_the_other_user(site: Site, tmp_path: Path) -> None:
    spec = replace(site(FREE), profiler_root="~/no such directory", prepare='echo "I am $(id -un) in $HOME"')
    outcome = only_host(collected(spec, tmp_path / "run", FULL))
    assert outcome.failure == "no-profiler-root"
    assert (tmp_path / "run/cluster_profiler/1/prepare.log").read_text() == "I am daemon in /usr/sbin\n"


@BOTH
@pytest.mark.parametrize(
    ("closed", "failure"), [(".", "no-profiler-root"), ("worker_0_20240101000000_ascend_pt", "listing")]
)
def test_captures_that_only_root_may_read_are_told_as_that_and_become_sudo_brings_them(
    site: Site, tmp_path: Path, transport: str, closed: str, failure: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "prof"
        make_capture(root)
        Path(folder).chmod(0o755)
        (root / closed).chmod(0o750)
        spec = replace(site("nobody ALL=(root) NOPASSWD: ALL"), profiler_root=str(root), transport=transport)
        as_login_user = only_host(
            collected(replace(spec, become=None, become_user=None), tmp_path / "a", FULL)
        )
        assert (as_login_user.state, as_login_user.failure) == ("failed", failure), as_login_user.reason
        assert "become: sudo" in as_login_user.advice
        outcome = only_host(collected(replace(spec, become_user=None), tmp_path / "run", FULL))
        assert outcome.state == "complete", outcome.reason
        assert host_tree(tmp_path / "run") == tree(root)


@pytest.mark.parametrize(
    ("rules", "user", "why"),
    [
        (WITH_PASSWORD, "daemon", "sudo asks for a password"),
        (WITH_TERMINAL, "daemon", "sudo asks for a terminal"),
        (FOR_ANOTHER, "daemon", "sudo (asks for a password|does not allow it)"),
        (FREE, "no-such-user", "sudo does not know that user"),
        (FREE, None, "sudo (asks for a password|does not allow it)"),
    ],
)
def test_a_sudo_that_refuses_is_told_once_with_what_to_do(
    site: Site, tmp_path: Path, rules: str, user: str | None, why: str
) -> None:
    watch = Recorder()
    outcome = only_host(collected(replace(site(rules), become_user=user), tmp_path / "run", FULL, watch))
    assert (outcome.state, outcome.failure) == ("failed", "become")
    assert re.match(f"{why}.*: nothing can be run as {user or 'root'}", outcome.reason)
    assert "NOPASSWD" in outcome.advice
    assert watch.retries == []
