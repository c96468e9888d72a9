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

from tests.collect.conftest import Start
from tests.collect.helpers import BOTH, FULL, OneHost, Recorder, make_capture

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


pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(_why_not()), reason=_why_not() or "it can run")]

#: How each kind of site writes its rules; `daemon` owns the data.
FREE = "nobody ALL=(daemon) NOPASSWD: ALL"
WITH_PASSWORD = "nobody ALL=(daemon) ALL"
WITH_TERMINAL = f"Defaults requiretty\n{FREE}"
FOR_ANOTHER = "nobody ALL=(games) NOPASSWD: ALL"

Site = Callable[[str], OneHost]


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
def site(start: Start, owned: Path, tmp_path: Path) -> Site:
    """Make a host whose sudo has the given rules."""

    def made(rules: str) -> OneHost:
        sudoers = tmp_path / "sudoers"
        sudoers.write_text(f"Defaults env_reset,use_pty\n{rules}\n")
        sudoers.chmod(0o440)
        login = tmp_path / "login"
        login.write_text(
            f"mount --bind {sudoers} /etc/sudoers\n"
            "exec setpriv --reuid=nobody --regid=nogroup --clear-groups"
            ' sh -c "${SSH_ORIGINAL_COMMAND:-/usr/lib/openssh/sftp-server}"\n'
        )
        host = start(
            {"ForceCommand": f"exec unshare --mount sh {login}"}, become="sudo", become_user="daemon"
        )
        return replace(host.having(profiler_root=str(owned)), root=owned)

    return made


@BOTH
def test_another_users_data_are_collected_whole(site: Site, tmp_path: Path, transport: str) -> None:
    host = site(FREE).having(transport=transport)
    as_login_user = replace(host.having(become=None), run=tmp_path / "without").collect()
    assert as_login_user.failure == "no-profiler-root"
    host.collect_all(replace(FULL, verify=True))


def test_the_home_directory_is_that_of_the_other_user(site: Site) -> None:
    host = site(FREE).having(profiler_root="~/no such directory", prepare='echo "I am $(id -un) in $HOME"')
    assert host.collect().failure == "no-profiler-root"
    log = host.run / "cluster_profiler/1/prepare.log"
    assert log.read_text() == "I am daemon in /usr/sbin\n"


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
        rules = "nobody ALL=(root) NOPASSWD: ALL"
        host = replace(
            site(rules).having(transport=transport, become_user=None, profiler_root=str(root)), root=root
        )
        as_login_user = replace(host.having(become=None), run=tmp_path / "a").collect()
        assert (as_login_user.state, as_login_user.failure) == ("failed", failure), as_login_user.reason
        assert "become: sudo" in as_login_user.advice
        host.collect_all()


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
    site: Site, rules: str, user: str | None, why: str
) -> None:
    watch = Recorder()
    outcome = site(rules).having(become_user=user).collect(watch=watch)
    assert (outcome.state, outcome.failure) == ("failed", "become")
    assert re.match(f"{why}.*: nothing can be run as {user or 'root'}", outcome.reason)
    assert "NOPASSWD" in outcome.advice
    assert watch.retries == []
