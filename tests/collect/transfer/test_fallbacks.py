"""Hosts without a shell, without tools, with talkative start-up files; two libraries, two servers."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_collect.spec import HostSpec
from cluster_run.ids import HostId, ServerId
from demo.sshd import SshLab, SshServer, make_key
from tests.collect.helpers import (
    BOTH,
    FULL,
    Recorder,
    collected,
    file_of,
    host_tree,
    make_capture,
    only_host,
    spec_for,
    tree,
)
from tests.collect.paramiko_server import ParamikoServer

pytestmark = pytest.mark.slow  # many servers are started

SFTP = "/usr/lib/openssh/sftp-server"


@BOTH
def test_a_host_that_offers_sftp_only_is_collected_file_by_file(
    own_lab: SshLab, tmp_path: Path, transport: str
) -> None:
    server = own_lab.start("127.0.0.4", settings={"ForceCommand": "internal-sftp"})
    capture = make_capture(tmp_path / "host", size_bytes=3_000_000, n_more=150)
    (capture / "empty.csv").touch()
    (tmp_path / "host" / "link").symlink_to("/etc/passwd")
    watch = Recorder()
    spec = spec_for(own_lab, server, tmp_path / "host", transport=transport)
    outcome = only_host(collected(spec, tmp_path / "run", FULL, watch))
    assert outcome.reason == ""
    assert "sftp" in watch.notes
    (tmp_path / "host" / "link").unlink()
    assert host_tree(tmp_path / "run") == tree(tmp_path / "host")
    again = Recorder()
    collected(spec, tmp_path / "run", FULL, again)
    assert again.n_planned == [0]


def test_sftp_brings_names_that_are_not_utf_8(own_lab: SshLab, tmp_path: Path) -> None:
    server = own_lab.start("127.0.0.4", settings={"ForceCommand": "internal-sftp"})
    root = os.fsencode(tmp_path / "host" / "odd_ascend_pt")
    os.makedirs(root)
    for name in (b"bad\xff\x81name", b"new\nline", b"-rf", b"$(id)"):
        with open(os.path.join(root, name), "wb") as stream:
            stream.write(name)
    assert (
        only_host(collected(spec_for(own_lab, server, tmp_path / "host"), tmp_path / "run", FULL)).reason
        == ""
    )
    assert host_tree(tmp_path / "run") == tree(tmp_path / "host")


def login_script(path: Path, text: str) -> dict[str, str]:
    """Settings of a server whose logins run `text` first, as a shell's start-up file would."""
    path.write_text(f'{text}\nexec /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n')
    return {
        "ForceCommand": f'case "$SSH_ORIGINAL_COMMAND" in sh*) exec /bin/sh {path};; *) exec {SFTP};; esac'
    }


@pytest.fixture(params=["shell", "sftp only"])
def guarded(
    own_lab: SshLab, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[tuple[SshServer, Path]]:
    """A server whose logins may not read everything, and a root with one such file and directory."""
    root = Path(tempfile.mkdtemp())
    capture = make_capture(root)
    root.chmod(0o755)
    (capture / "profiler_metadata.json").chmod(0)
    (capture / "PROF_000001_1_A").chmod(0)
    # root reads everything, so its logins become somebody else
    drop = "exec setpriv --reuid=65534 --regid=65534 --clear-groups " if os.geteuid() == 0 else "exec "
    command = f"{drop}{SFTP}"
    if request.param == "shell":
        command = (
            f'case "$SSH_ORIGINAL_COMMAND" in sh*) {drop}sh -c "$SSH_ORIGINAL_COMMAND";; *) {command};; esac'
        )
    yield own_lab.start("127.0.0.4", settings={"ForceCommand": command}), root
    (capture / "PROF_000001_1_A").chmod(0o755)
    shutil.rmtree(root)


def test_what_the_login_may_not_read_costs_only_itself_and_is_told(
    own_lab: SshLab, guarded: tuple[SshServer, Path], tmp_path: Path
) -> None:
    server, root = guarded
    spec = spec_for(own_lab, server, root)
    outcome = only_host(collected(spec, tmp_path / "run", FULL))
    assert outcome.state == "partial"
    locked = file_of(outcome, "profiler_metadata.json")
    assert (locked.state, locked.reason) == ("failed", "Permission denied")
    assert {file.state for file in outcome.files if file != locked} == {"stored"}

    (root / locked.source).chmod(0o644)
    outcome = only_host(collected(spec, tmp_path / "run", FULL))
    assert (outcome.state, outcome.failure) == ("partial", "listing")
    assert "PROF_000001_1_A" in outcome.reason


def path_with(directory: Path, *tools: str) -> str:
    """A PATH of these programs only."""
    directory.mkdir()
    for tool in ("sh", "dd", "date", "head", "df", "tail", "nice", "ls", *tools):
        found = shutil.which(tool)
        assert found is not None, tool
        (directory / tool).symlink_to(found)
    return str(directory)


@pytest.mark.parametrize(
    ("tools", "method"),
    [
        (("find", "tar", "zstd", "gzip"), "tar+zstd"),
        (("find", "tar", "gzip"), "tar+gzip"),
        (("find", "tar"), "tar"),
        (("find", "zstd"), "sftp"),
        (("tar", "zstd"), "sftp"),
    ],
)
def test_the_best_way_that_the_hosts_tools_allow_is_taken(
    own_lab: SshLab, tmp_path: Path, tools: tuple[str, ...], method: str
) -> None:
    path = path_with(tmp_path / "bin", *tools)
    settings = login_script(tmp_path / "rc", f"PATH={path}; export PATH")
    server = own_lab.start("127.0.0.4", settings=settings)
    make_capture(tmp_path / "host", n_more=5)
    watch = Recorder()
    spec = spec_for(own_lab, server, tmp_path / "host")
    outcome = only_host(collected(spec, tmp_path / "run", FULL, watch))
    assert outcome.reason == ""
    assert watch.notes[-1] == method
    assert host_tree(tmp_path / "run") == tree(tmp_path / "host")


@pytest.mark.parametrize("n_troubles", [1, 9])
@pytest.mark.parametrize(
    "trouble",
    [
        "Read error at byte 0, while reading 9 bytes: Input/output error",
        "File shrank by 9 bytes; padding with zeros",
    ],
)
def test_a_file_that_tar_filled_up_with_zeros_is_never_taken_for_right(
    own_lab: SshLab, tmp_path: Path, trouble: str, n_troubles: int
) -> None:
    """tar keeps to the size that it has announced; only its messages tell."""
    capture = make_capture(tmp_path / "host")
    odd = capture / "odd\n name.json"
    odd.write_text("content")
    (tmp_path / "bin").mkdir()
    fake = tmp_path / "bin" / "tar"
    name = f"./{odd.relative_to(tmp_path / 'host')}"
    fake.write_text(
        f'#!/bin/sh\n{shutil.which("tar")} "$@"\ncase "$1" in --version) exit;; esac\n'
        f"echo >>{tmp_path}/count; [ $(wc -l <{tmp_path}/count) -gt {n_troubles} ] && exit\n"
        f"printf 'tar: %s: %s\\n' '{name}' '{trouble}' >&2; exit 2\n"
    )
    fake.chmod(0o755)
    settings = login_script(tmp_path / "rc", f"PATH={fake.parent}:$PATH; export PATH")
    spec = spec_for(own_lab, own_lab.start("127.0.0.4", settings=settings), tmp_path / "host")
    outcome = only_host(collected(spec, tmp_path / "run", FULL))
    if n_troubles == 1:
        assert outcome.state == "complete", outcome.reason
        assert host_tree(tmp_path / "run") == tree(tmp_path / "host")
    else:
        assert outcome.state == "partial"
        assert file_of(outcome, "name.json").reason == trouble
        odd.unlink()
        assert host_tree(tmp_path / "run") == tree(tmp_path / "host")


def test_a_busybox_like_find_or_tar_is_not_trusted(own_lab: SshLab, tmp_path: Path) -> None:
    path = path_with(tmp_path / "bin", "tar", "zstd")
    fake = tmp_path / "bin" / "find"
    fake.write_text("#!/bin/sh\necho 'find (busybox) 1.30'\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    settings = login_script(tmp_path / "rc", f"PATH={path}; export PATH")
    server = own_lab.start("127.0.0.4", settings=settings)
    make_capture(tmp_path / "host")
    watch = Recorder()
    outcome = only_host(
        collected(spec_for(own_lab, server, tmp_path / "host"), tmp_path / "run", FULL, watch)
    )
    assert (outcome.reason, watch.notes[1:]) == ("", ["sftp"])


@BOTH
def test_start_up_files_that_print_do_no_harm(own_lab: SshLab, tmp_path: Path, transport: str) -> None:
    """scp, sftp, rsync and `ssh tar | tar` all fail on such a host."""
    settings = login_script(
        tmp_path / "rc", "echo Welcome; printf 'binary \\000\\377'; seq 20000; echo oops >&2"
    )
    server = own_lab.start("127.0.0.4", settings=settings)
    make_capture(tmp_path / "host")
    watch = Recorder()
    spec = spec_for(own_lab, server, tmp_path / "host", transport=transport, prepare="echo prepared")
    outcome = only_host(collected(spec, tmp_path / "run", FULL, watch))
    assert (outcome.reason, watch.notes[-1]) == ("", "tar+zstd")
    assert host_tree(tmp_path / "run") == tree(tmp_path / "host")
    assert (tmp_path / "run/cluster_profiler/1/prepare.log").read_bytes().endswith(b"prepared\n")


def test_a_clock_that_is_wrong_is_measured(own_lab: SshLab, tmp_path: Path) -> None:
    path = path_with(tmp_path / "bin", "find", "tar", "zstd")
    (tmp_path / "bin" / "date").unlink()
    (tmp_path / "bin" / "date").write_text("#!/bin/sh\nexec /bin/date -d '1 hour' \"$@\"\n")
    (tmp_path / "bin" / "date").chmod(0o755)
    settings = login_script(tmp_path / "rc", f"PATH={path}; export PATH")
    server = own_lab.start("127.0.0.4", settings=settings)
    make_capture(tmp_path / "host")
    outcome = only_host(collected(spec_for(own_lab, server, tmp_path / "host"), tmp_path / "run"))
    assert outcome.state == "complete", outcome.reason
    assert outcome.clock_offset_ms == pytest.approx(3_600_000, abs=5_000)


def test_a_prepare_command_without_end_meets_its_deadline(own_lab: SshLab, tmp_path: Path) -> None:
    server = own_lab.start("127.0.0.4")
    make_capture(tmp_path / "host")
    spec = spec_for(own_lab, server, tmp_path / "host", prepare="yes")
    options = replace(FULL, prepare_deadline_s=1.0, n_attempts=1)
    outcome = only_host(collected(spec, tmp_path / "run", options))
    assert outcome.state == "failed"
    assert outcome.reason == "no answer for 1 s while running its prepare command"


@BOTH
@pytest.mark.parametrize("has_shell", [True, False])
@pytest.mark.parametrize("compression", ["auto", "none"])
def test_a_server_by_another_hand_gives_the_same_files(
    tmp_path: Path, transport: str, has_shell: bool, compression: str
) -> None:
    make_capture(tmp_path / "host", size_bytes=1_500_000, n_more=20)
    host_key, user_key = make_key(tmp_path / "host_key"), make_key(tmp_path / "user_key")
    authorized = Path(f"{user_key}.pub").read_text()
    options = {} if has_shell else {"execute": None}
    with ParamikoServer(host_key, authorized_keys=authorized, **options) as server:  # type: ignore[arg-type]
        known = tmp_path / "known"
        known.write_text(f"[{server.address}]:{server.port} {Path(f'{host_key}.pub').read_text()}")
        spec = HostSpec(
            host=HostId("1"),
            server_id=ServerId("s"),
            address=server.address,
            port=server.port,
            user="any",
            identity_file=str(user_key),
            known_hosts=str(known),
            profiler_root=str(tmp_path / "host"),
            transport=transport,
            ssh_config=os.devnull,
        )
        watch = Recorder()
        run_options = replace(FULL, compression=compression)
        outcome = only_host(collected(spec, tmp_path / "run", run_options, watch))
    assert outcome.reason == ""
    assert watch.notes[-1] == {(True, "auto"): "tar+zstd", (True, "none"): "tar"}.get(
        (has_shell, compression), "sftp"
    )
    assert host_tree(tmp_path / "run") == tree(tmp_path / "host")


def test_a_host_with_neither_shell_nor_sftp_is_told_so(tmp_path: Path) -> None:
    host_key, user_key = make_key(tmp_path / "host_key"), make_key(tmp_path / "user_key")
    authorized = Path(f"{user_key}.pub").read_text()
    for transport in ("asyncssh", "paramiko"):
        with ParamikoServer(host_key, authorized_keys=authorized, execute=None, files=None) as server:
            known = tmp_path / "known"
            known.write_text(f"[{server.address}]:{server.port} {Path(f'{host_key}.pub').read_text()}")
            spec = HostSpec(
                HostId("1"),
                ServerId("s"),
                address=server.address,
                port=server.port,
                user="any",
                identity_file=str(user_key),
                known_hosts=str(known),
                profiler_root="/x",
                transport=transport,  # type: ignore[arg-type]
                ssh_config=os.devnull,
            )
            outcome = only_host(collected(spec, tmp_path / f"run-{transport}"))
        assert outcome.state == "failed"
        assert outcome.failure == "no-shell"
        assert outcome.reason.startswith("the host runs no commands for us")
        assert outcome.reason.endswith(", and it offers no SFTP")
