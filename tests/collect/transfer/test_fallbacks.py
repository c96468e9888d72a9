"""Hosts without a shell, without tools, with talkative start-up files; two libraries, two servers."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_collect.spec import Codec
from tests.collect.conftest import Start
from tests.collect.helpers import BOTH, FULL, OneHost, Recorder, file_of, make_capture, tree
from tests.collect.paramiko_server import ParamikoServer, spec_of
from tests.commands import program

pytestmark = pytest.mark.slow  # many servers are started

SFTP = "/usr/lib/openssh/sftp-server"


@BOTH
def test_a_host_that_offers_sftp_only_is_collected_file_by_file(start: Start, transport: str) -> None:
    host = start({"ForceCommand": "internal-sftp"}, transport=transport)
    make_capture(host.root, 1, size_bytes=3_000_000, n_more=150)
    (host.root / "link").symlink_to("/etc/passwd")
    odd = os.fsencode(host.root / "odd_ascend_pt")
    os.makedirs(odd)
    for name in (b"bad\xff\x81name", b"new\nline", b"-rf", b"$(id)", b"empty"):
        with open(os.path.join(odd, name), "wb") as stream:
            stream.write(b"" if name == b"empty" else name)
    watch = Recorder()
    assert host.collect(watch=watch).reason == ""
    assert "sftp" in watch.notes
    (host.root / "link").unlink()
    assert host.landed() == tree(host.root)
    assert host.planned() == 0


def login_script(path: Path, text: str) -> dict[str, str]:
    """Settings of a server whose logins run `text` first, as a shell's start-up file would."""
    path.write_text(f'{text}\nexec /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n')
    first = f"exec /bin/sh {shlex.quote(str(path))}"
    return {"ForceCommand": f'case "$SSH_ORIGINAL_COMMAND" in sh*) {first};; *) exec {SFTP};; esac'}


def found_first(directory: Path) -> dict[str, str]:
    """Settings of a server whose logins look for programs there, and nowhere else."""
    return login_script(directory.with_name("rc"), f"PATH={shlex.quote(str(directory))}; export PATH")


def only(directory: Path, *tools: str) -> Path:
    """Make a directory of these programs and of what any host has."""
    directory.mkdir()
    for tool in ("sh", "dd", "date", "head", "df", "tail", "nice", "ls", *tools):
        found = shutil.which(tool)
        assert found is not None, tool
        (directory / tool).symlink_to(found)
    return directory


@pytest.fixture(params=["shell", "sftp only"])
def guarded(start: Start, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[OneHost]:
    """A host whose logins may not read everything: not one file, not one directory."""
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
    yield replace(start({"ForceCommand": command}).having(profiler_root=str(root)), root=root)
    (capture / "PROF_000001_1_A").chmod(0o755)
    shutil.rmtree(root)


def test_what_the_login_may_not_read_costs_only_itself_and_is_told(guarded: OneHost) -> None:
    outcome = guarded.collect()
    assert outcome.state == "partial"
    locked = file_of(outcome, "profiler_metadata.json")
    assert (locked.state, locked.reason) == ("failed", "Permission denied")
    assert {file.state for file in outcome.files if file != locked} == {"stored"}
    (guarded.root / locked.source).chmod(0o644)
    outcome = guarded.collect()
    assert (outcome.state, outcome.failure) == ("partial", "listing")
    assert "PROF_000001_1_A" in outcome.reason


@pytest.mark.parametrize(
    ("tools", "method"),
    [
        ("find tar zstd gzip", "tar+zstd"),
        ("find tar gzip", "tar+gzip"),
        ("find tar", "tar"),
        ("find zstd", "sftp"),
        ("tar zstd", "sftp"),
        ("tar zstd busybox-find", "sftp"),
    ],
)
def test_the_best_way_that_the_hosts_tools_allow_is_taken(
    start: Start, tmp_path: Path, tools: str, method: str
) -> None:
    programs = only(tmp_path / "bin", *tools.removesuffix(" busybox-find").split())
    if tools.endswith("busybox-find"):  # a find or tar like busybox's is not trusted
        program(programs / "find", "echo 'find (busybox) 1.30'")
    watch = Recorder()
    start(found_first(programs)).collect_all(watch=watch)
    assert watch.notes[-1] == method


@pytest.mark.parametrize("n_troubles", [1, 9])
@pytest.mark.parametrize(
    "trouble",
    [
        "Read error at byte 0, while reading 9 bytes: Input/output error",
        "File shrank by 9 bytes; padding with zeros",
    ],
)
def test_a_file_that_tar_filled_up_with_zeros_is_never_taken_for_right(
    start: Start, root: Path, tmp_path: Path, trouble: str, n_troubles: int
) -> None:
    """tar keeps to the size that it has announced; only its messages tell."""
    odd = next(root.iterdir()) / "odd\n name.json"
    odd.write_text("content")
    (tmp_path / "bin").mkdir()
    counted = shlex.quote(str(tmp_path / "count"))
    program(
        tmp_path / "bin" / "tar",
        f'{shutil.which("tar")} "$@"\ncase "$1" in --version) exit;; esac\n'
        f"echo >>{counted}; [ $(wc -l <{counted}) -gt {n_troubles} ] && exit\n"
        f"printf 'tar: %s: %s\\n' './{odd.relative_to(root)}' '{trouble}' >&2; exit 2",
    )
    host = start(login_script(tmp_path / "rc", f"PATH={shlex.quote(str(tmp_path))}/bin:$PATH; export PATH"))
    if n_troubles == 1:
        host.collect_all()
        return
    outcome = host.collect()
    assert outcome.state == "partial"
    assert file_of(outcome, "name.json").reason == trouble
    odd.unlink()
    assert host.landed() == tree(host.root)


@BOTH
def test_start_up_files_that_print_do_no_harm(start: Start, tmp_path: Path, transport: str) -> None:
    """scp, sftp, rsync and `ssh tar | tar` all fail on such a host."""
    noise = "echo Welcome; printf 'binary \\000\\377'; seq 20000; echo oops >&2"
    host = start(login_script(tmp_path / "rc", noise), transport=transport, prepare="echo prepared")
    watch = Recorder()
    host.collect_all(watch=watch)
    assert watch.notes[-1] == "tar+zstd"
    assert (host.run / "cluster_profiler/1/prepare.log").read_bytes().endswith(b"prepared\n")


@pytest.mark.parametrize("compression", ["zstd", "gzip", "none"])
def test_options_that_a_host_has_for_its_users_leave_no_file_out(
    start: Start, tmp_path: Path, compression: Codec
) -> None:
    options = "export TAR_OPTIONS='--exclude=*.csv --totals' GZIP=-9 ZSTD_CLEVEL=19 ZSTD_NBTHREADS=2"
    start(login_script(tmp_path / "rc", options)).collect_all(replace(FULL, compression=compression))


def test_a_clock_that_is_wrong_is_measured(start: Start, tmp_path: Path) -> None:
    programs = only(tmp_path / "bin", "find", "tar", "zstd")
    program(programs / "date", "exec /bin/date -d '1 hour' \"$@\"")
    outcome = start(found_first(programs)).collect_all()
    assert outcome.clock_offset_ms == pytest.approx(3_600_000, abs=120_000)


@pytest.mark.parametrize(("age_s", "is_taken"), [(600, True), (7200, False)])
def test_captures_since_a_time_are_chosen_by_our_clock(
    start: Start, tmp_path: Path, age_s: int, is_taken: bool
) -> None:
    """The host's clock, which dates its files, is three hours behind."""
    programs = only(tmp_path / "bin", "find", "tar", "zstd")
    program(programs / "date", "exec /bin/date -d '-3 hours' \"$@\"")
    host = start(found_first(programs))
    for path in host.root.rglob("*"):
        os.utime(path, (time.time() - 3 * 3600 - age_s,) * 2)
    outcome = host.collect(replace(FULL, since_s=time.time() - 3600))
    assert outcome.state == ("complete" if is_taken else "failed"), outcome.reason


def test_a_prepare_command_without_end_meets_its_deadline(host: OneHost) -> None:
    options = replace(FULL, prepare_deadline_s=1.0, n_attempts=1)
    outcome = host.having(prepare="yes").collect(options)
    assert outcome.state == "failed"
    assert outcome.reason == "no answer for 1 s while running its prepare command"


@BOTH
@pytest.mark.parametrize(
    ("has_shell", "compression", "method"),
    [(True, "auto", "tar+zstd"), (True, "none", "tar"), (False, "auto", "sftp")],
)
def test_a_server_by_another_hand_gives_the_same_files(
    root: Path, keys: tuple[Path, Path], tmp_path: Path, transport: str, has_shell: bool, compression: str,
    method: str,
) -> None:  # fmt: skip
    make_capture(root, 1, size_bytes=1_500_000, n_more=20)
    options = {} if has_shell else {"execute": None}
    authorized = Path(f"{keys[1]}.pub").read_text()
    watch = Recorder()
    with ParamikoServer(keys[0], authorized_keys=authorized, **options) as server:  # type: ignore[arg-type]
        host = OneHost(spec_of(server, keys, root, transport=transport), root, tmp_path / "run")
        host.collect_all(replace(FULL, compression=compression), watch)
    assert watch.notes[-1] == method


@BOTH
def test_a_host_with_neither_shell_nor_sftp_is_told_so(
    keys: tuple[Path, Path], tmp_path: Path, transport: str
) -> None:
    authorized = Path(f"{keys[1]}.pub").read_text()
    with ParamikoServer(keys[0], authorized_keys=authorized, execute=None, files=None) as server:
        spec = spec_of(server, keys, "/x", transport=transport)
        outcome = OneHost(spec, tmp_path, tmp_path / "run").collect()
    assert (outcome.state, outcome.failure) == ("failed", "no-shell")
    assert outcome.reason.startswith("the host runs no commands for us")
    assert outcome.reason.endswith(", and it offers no SFTP")
