"""Files reduced on hosts, by a real Python behind a real sshd; where that fails they come as they are."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import paramiko
import pytest

from cluster_collect.spec import CollectOptions
from cluster_reduce.form import READY, SCHEMA, SUFFIX
from cluster_run.manifest import HostOutcome
from tests.analysis.runs import write_small_run
from tests.collect.conftest import Start
from tests.collect.helpers import BOTH, COLUMNS, QUICK, OneHost, Recorder, host_tree, local_host
from tests.collect.liar import Liar, ending, entry, met
from tests.collect.transfer.test_fallbacks import found_first, only
from tests.commands import program

RAW = replace(QUICK, what=("analysis",))
LARGE = ("communication.json", "communication_matrix.json")
BEHIND_THE_SHELL = ("find", "tar", "gzip", "xargs", "readlink", "sleep", "cat")


@pytest.fixture(scope="module")
def four_ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The profiler root of a host with four ranks."""
    run = write_small_run(tmp_path_factory.mktemp("columns") / "run", steps=2)
    return run / "cluster_profiler" / "1" / "profiler"


@pytest.fixture
def root(four_ranks: Path, tmp_path: Path) -> Path:
    """The same, for a test to change."""
    return shutil.copytree(four_ranks, tmp_path / "host")


def names_of(run: Path) -> list[str]:
    return [Path(name).name for name in host_tree(run)]


def raw(host: OneHost) -> OneHost:
    """The same host, collected elsewhere."""
    return replace(host, run=host.run.with_name("raw"))


def sent_raw(host: OneHost, options: CollectOptions = COLUMNS) -> HostOutcome:
    """The outcome of a host that sends its files as they are, all of them, and says why."""
    outcome = host.collect(options)
    assert (outcome.state, outcome.reason) == ("complete", "")
    assert outcome.raw_because
    whole = raw(host).collect(RAW)
    assert host.landed() == raw(host).landed()
    assert [file.sha256 for file in outcome.files] == [file.sha256 for file in whole.files]
    return outcome


def reduced(host: OneHost, options: CollectOptions = COLUMNS, watch: Recorder | None = None) -> HostOutcome:
    """The outcome of a host that sends columns."""
    outcome = host.collect(options, watch)
    assert (outcome.state, outcome.reason, outcome.raw_because) == ("complete", "", "")
    return outcome


@pytest.mark.slow
@BOTH
def test_large_files_come_as_columns_in_their_place(host: OneHost, transport: str) -> None:
    host = host.having(transport=transport)
    outcome, whole = reduced(host), raw(host).collect(RAW)
    assert [file.source for file in outcome.files] == [file.source for file in whole.files]
    for file, one in zip(outcome.files, whole.files, strict=True):
        is_large = Path(file.source).name in LARGE
        assert file.path == one.path + (SUFFIX if is_large else "")
        assert file.mtime_ns == one.mtime_ns
        assert file.reduced_from_bytes == (one.size_bytes if is_large else None)
        assert (host.run / file.path).stat().st_size == file.size_bytes
    assert outcome.wire_bytes < whole.wire_bytes
    assert sorted(names_of(host.run)) == sorted(
        name + (SUFFIX if name in LARGE else "") for name in names_of(raw(host).run)
    )


def test_columns_of_a_shared_file_system_are_those_over_ssh(host: OneHost, tmp_path: Path) -> None:
    reduced(host)
    local = local_host(host.root, tmp_path / "local")
    reduced(local)
    assert local.landed() == host.landed()


@pytest.mark.slow
def test_a_second_call_goes_on_and_whole_files_take_the_place_of_columns(host: OneHost) -> None:
    reduced(host)
    assert host.planned(replace(COLUMNS, verify=True)) == 0
    assert {file.reduced_from_bytes for file in host.collect(RAW).files} == {None}
    assert not [name for name in names_of(host.run) if name.endswith(SUFFIX)]
    assert host.planned(COLUMNS) == 0, "files that are here whole are better than their columns"


@pytest.mark.slow
def test_columns_of_another_version_come_again(host: OneHost) -> None:
    reduced(host)
    old = next(host.run.rglob(f"communication.json{SUFFIX}"))
    written_ns = old.stat().st_mtime_ns
    old.write_bytes(old.read_bytes().replace(SCHEMA.encode(), b"cluster-columns/3", 1))
    os.utime(old, ns=(written_ns, written_ns))
    again = Recorder()
    reduced(host, watch=again)
    assert again.n_planned == [1]
    assert old.read_bytes().startswith(SCHEMA.encode())


@pytest.mark.slow
def test_a_file_that_changed_comes_again_as_columns(host: OneHost) -> None:
    reduced(host)
    changed = next(host.root.rglob("communication.json"))
    changed.write_text(changed.read_text().replace("step10", "step12"))
    again = Recorder()
    reduced(host, watch=again)
    assert again.n_planned == [1]


def test_a_damaged_file_travels_as_it_is(host: OneHost) -> None:
    damaged = next(host.root.rglob("communication.json"))
    damaged.write_bytes(damaged.read_bytes()[:-100])
    outcome = reduced(host)
    (file,) = (one for one in outcome.files if one.source == os.path.relpath(damaged, host.root))
    assert file.reduced_from_bytes is None
    assert (host.run / file.path).read_bytes() == damaged.read_bytes()
    assert sum(one.reduced_from_bytes is not None for one in outcome.files) == 7


def real_python() -> str:
    return shutil.which("python3", path=os.defpath) or sys.executable


@pytest.mark.slow  # a server for each
@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("", "no python3"),
        ("exit 127", "did not start"),
        ("echo nonsense", "did not start"),
        ("printf 'columns 1'; sleep 0.1; kill -9 $$", "did not start"),
        ('{python} "$@" | head -c 10', "archive"),
        ('ulimit -f 1; exec {python} "$@"', "Python there: [Errno 27] File too large"),
        ('{python} -c "import sys; sys.stdin.buffer.raw.read(50)"; exec {python} "$@"', ""),
        ("exec sleep 100", "waiting for its columns"),
    ],
    ids=["none", "broken", "other", "killed at once", "killed early", "no space", "torn", "hangs"],
)
def test_a_host_whose_python_fails_sends_its_files_as_they_are(
    start: Start, tmp_path: Path, script: str, why: str
) -> None:
    programs = only(tmp_path / "bin", *BEHIND_THE_SHELL)
    if script:
        program(programs / "python3", script.replace("{python}", real_python()))
    hangs = replace(COLUMNS, columns_deadline_s=1.0, progress_deadline_s=5.0)
    outcome = sent_raw(start(found_first(programs)), hangs if script.startswith("exec sleep") else COLUMNS)
    assert why in outcome.raw_because


@BOTH
@pytest.mark.slow
def test_a_host_that_allows_one_session_at_a_time_sends_its_files_when_the_reader_has_ended(
    start: Start, tmp_path: Path, transport: str
) -> None:
    programs = only(tmp_path / "bin", *BEHIND_THE_SHELL)
    program(programs / "python3", "printf 'unfit for that\\n'; exec sleep 1.5")
    watch = Recorder()
    host = start({**found_first(programs), "MaxSessions": "1"}, transport=transport)
    assert (host.collect(COLUMNS, watch).reason, watch.retries) == ("", [])
    assert "sftp" not in watch.notes


def test_a_host_that_runs_no_program_is_quoted(start: Start, root: Path) -> None:
    outcome = sent_raw(start({"ForceCommand": "internal-sftp"}))
    assert "This service allows sftp connections only." in outcome.raw_because


def test_a_login_that_is_root_reads_nothing_unless_told(host: OneHost) -> None:
    if os.geteuid() != 0:
        pytest.skip("the logins of this test are not root")
    outcome = sent_raw(host, replace(COLUMNS, columns_as_root=False))
    assert outcome.raw_because == "the login is root: --columns-as-root allows it"


@pytest.mark.slow
def test_nothing_is_read_while_a_process_uses_the_devices_unless_told(host: OneHost, tmp_path: Path) -> None:
    device = tmp_path / "davinci7"
    device.touch()
    options = replace(COLUMNS, columns_devices=f"{tmp_path}/davinci[0-9]+")
    with device.open() as held, subprocess.Popen(["sleep", "60"], stdin=held) as job:
        outcome = sent_raw(host, options)
        assert outcome.raw_because.endswith(f"uses {device}: --while-running allows it")
        reduced(replace(host, run=tmp_path / "asked"), replace(options, while_running=True))
        job.kill()


@pytest.mark.slow
def test_what_needs_more_memory_or_time_travels_as_it_is_and_costs_no_other_file(
    host: OneHost, tmp_path: Path
) -> None:
    greedy = next(host.root.rglob("communication.json"))
    greedy.write_text('{"step1": [' + "1.5," * 6_000_000 + "1.5]}")
    outcome = reduced(host, replace(COLUMNS, columns_memory_bytes=120 << 20))
    assert outcome.n_over_limits == 1
    assert sum(one.reduced_from_bytes is not None for one in outcome.files) == 7
    outcome = reduced(replace(host, run=tmp_path / "late"), replace(COLUMNS, columns_deadline_s=0.001))
    assert outcome.n_over_limits == 8
    assert {one.reduced_from_bytes for one in outcome.files} == {None}


LISTING = b"f 9000 1700000000.5 a_ascend_pt/ASCEND_PROFILER_OUTPUT/communication.json\0"
NAME = "./a_ascend_pt/ASCEND_PROFILER_OUTPUT/communication.json"
GOOD = entry(NAME, b"x" * 9000)


@dataclass
class OnceEvil:
    """Sends something evil when it is first asked, and the file itself from then on."""

    evil: bytes
    listing: bytes = LISTING
    n_asked: int = 0

    def __call__(self, channel: paramiko.Channel, marker: bytes) -> None:
        self.n_asked += 1
        is_first = self.n_asked == 1  # the second may be asked for before this one is cut off
        try:
            channel.sendall((self.evil if is_first else GOOD) + ending(marker, self.listing))
        except OSError:
            assert is_first  # hung up


@pytest.mark.slow  # a server for each
@pytest.mark.parametrize(
    "evil",
    [
        lambda: READY + entry("./a_ascend_pt/../../../../outside/victim"),
        lambda: READY + entry(f"{NAME}.columns.columns"),
        lambda: READY + entry(f"{NAME}.columns") + entry(f"{NAME}.columns"),
        lambda: READY + entry(f"{NAME}.columns", bytes(80 << 20)),  # not while tests are collected
        lambda: READY + b"no archive".ljust(512),
        lambda: b"unfit " + b"\x1b[31m because\n",
        lambda: b"unfit " + b"x" * 5000,
        lambda: b"\n" * 5000,
        lambda: b"",
    ],
    ids=["dotdot", "unasked", "twice", "too large", "noise", "signs", "long", "lines", "nothing"],
)
def test_a_host_that_lies_about_columns_is_asked_for_its_files_as_they_are(
    tmp_path: Path, keys: tuple[Path, Path], evil: Callable[[], bytes]
) -> None:
    liar = OnceEvil(evil())
    outcome = met(tmp_path, keys, Liar(LISTING, liar), options=COLUMNS)
    assert liar.n_asked == 2
    assert (outcome.state, [file.state for file in outcome.files]) == ("complete", ["stored"])
    assert outcome.raw_because
    assert "\x1b" not in json.dumps(outcome.raw_because)
    assert list(host_tree(tmp_path / "run").values()) == [b"x" * 9000]


TIMELINE = "./a_ascend_pt/ASCEND_PROFILER_OUTPUT/trace_view.json"


@pytest.mark.slow  # a server for each
@pytest.mark.parametrize("name", [TIMELINE, f"{TIMELINE}.columns"])
def test_a_host_whose_timeline_is_huge_may_not_send_as_much(
    tmp_path: Path, keys: tuple[Path, Path], name: str
) -> None:
    listing = b"f 900000000000 1700000000.5 " + TIMELINE[2:].encode() + b"\0" + LISTING
    liar = OnceEvil(READY + entry(name, bytes(80 << 20)), listing)
    outcome = met(tmp_path, keys, Liar(listing, liar), options=COLUMNS)
    assert "was announced with 65536 bytes" in outcome.raw_because
    assert {file.source.rpartition("/")[2]: file.state for file in outcome.files} == {
        "communication.json": "stored",
        "trace_view.json": "skipped",
    }
    assert list(host_tree(tmp_path / "run").values()) == [b"x" * 9000]
