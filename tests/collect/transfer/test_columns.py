"""Files reduced on hosts, by a real Python behind a real sshd; where that fails they come as they are."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest

from cluster_collect.spec import CollectOptions, HostSpec
from cluster_reduce.form import READY, SUFFIX
from cluster_run.ids import HostId, ServerId
from cluster_run.manifest import HostOutcome
from demo.sshd import SshLab, SshServer
from tests.analysis.runs import write_small_run
from tests.collect.helpers import BOTH, QUICK, Recorder, collected, host_tree, only_host, spec_for
from tests.collect.liar import Liar, ending, entry, met
from tests.collect.transfer.test_fallbacks import login_script, path_with

#: Logins of the tests may be those of root.
COLUMNS = replace(QUICK, what=("columns",), columns_as_root=True)
RAW = replace(QUICK, what=("analysis",))
LARGE = ("communication.json", "communication_matrix.json")
BEHIND_THE_SHELL = ("find", "tar", "gzip", "xargs", "readlink", "sleep", "cat")


@pytest.fixture(scope="module")
def host_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The profiler root of a host with four ranks."""
    run = write_small_run(tmp_path_factory.mktemp("columns") / "run", steps=2)
    return run / "cluster_profiler" / "1" / "profiler"


def names_of(run: Path) -> list[str]:
    return [Path(name).name for name in host_tree(run)]


def sent_raw(spec: HostSpec, tmp_path: Path, root: Path, options: CollectOptions = COLUMNS) -> HostOutcome:
    """The outcome of a host that sends its files as they are, all of them, and says why."""
    outcome = only_host(collected(spec, tmp_path / "run", options))
    assert (outcome.state, outcome.reason) == ("complete", "")
    assert outcome.raw_because
    whole = only_host(collected(spec, tmp_path / "raw", RAW))
    assert host_tree(tmp_path / "run") == host_tree(tmp_path / "raw")
    assert [file.sha256 for file in outcome.files] == [file.sha256 for file in whole.files]
    return outcome


@BOTH
def test_large_files_come_as_columns_in_their_place(
    lab: SshLab, server: SshServer, host_root: Path, tmp_path: Path, transport: str
) -> None:
    spec = spec_for(lab, server, host_root, transport=transport)
    outcome = only_host(collected(spec, tmp_path / "run", COLUMNS))
    assert (outcome.state, outcome.raw_because) == ("complete", ""), outcome.reason
    whole = only_host(collected(spec, tmp_path / "raw", RAW))
    assert [file.source for file in outcome.files] == [file.source for file in whole.files]
    for file, raw in zip(outcome.files, whole.files, strict=True):
        is_large = Path(file.source).name in LARGE
        assert file.path == raw.path + (SUFFIX if is_large else "")
        assert file.mtime_ns == raw.mtime_ns
        assert file.reduced_from_bytes == (raw.size_bytes if is_large else None)
        assert (tmp_path / "run" / file.path).stat().st_size == file.size_bytes
    assert outcome.wire_bytes < whole.wire_bytes
    assert sorted(names_of(tmp_path / "run")) == sorted(
        name + (SUFFIX if name in LARGE else "") for name in names_of(tmp_path / "raw")
    )


def test_columns_of_a_shared_file_system_are_those_over_ssh(
    lab: SshLab, server: SshServer, host_root: Path, tmp_path: Path
) -> None:
    collected(spec_for(lab, server, host_root), tmp_path / "run", COLUMNS)
    local = HostSpec(HostId("1"), ServerId("a"), local=str(host_root), transport="local")
    outcome = only_host(collected(local, tmp_path / "local", COLUMNS))
    assert (outcome.state, outcome.reason, outcome.raw_because) == ("complete", "", "")
    assert host_tree(tmp_path / "local") == host_tree(tmp_path / "run")


def test_a_second_call_goes_on_and_whole_files_take_the_place_of_columns(
    lab: SshLab, server: SshServer, host_root: Path, tmp_path: Path
) -> None:
    spec, run = spec_for(lab, server, host_root), tmp_path / "run"
    collected(spec, run, COLUMNS)
    again = Recorder()
    collected(spec, run, replace(COLUMNS, verify=True), again)
    assert again.n_planned == [0]
    whole = only_host(collected(spec, run, RAW))
    assert {file.reduced_from_bytes for file in whole.files} == {None}
    assert not [name for name in names_of(run) if name.endswith(SUFFIX)]
    again = Recorder()
    collected(spec, run, COLUMNS, again)
    assert again.n_planned == [0], "files that are here whole are better than their columns"


def test_a_file_that_changed_comes_again_as_columns(
    lab: SshLab, server: SshServer, host_root: Path, tmp_path: Path
) -> None:
    root = tmp_path / "host"
    shutil.copytree(host_root, root)
    spec, run = spec_for(lab, server, root), tmp_path / "run"
    collected(spec, run, COLUMNS)
    changed = next(root.rglob("communication.json"))
    changed.write_text(changed.read_text().replace("step10", "step12"))
    again = Recorder()
    outcome = only_host(collected(spec, run, COLUMNS, again))
    assert (again.n_planned, outcome.raw_because) == ([1], "")


def test_a_damaged_file_travels_as_it_is(
    lab: SshLab, server: SshServer, host_root: Path, tmp_path: Path
) -> None:
    root = tmp_path / "host"
    shutil.copytree(host_root, root)
    damaged = next(root.rglob("communication.json"))
    damaged.write_bytes(damaged.read_bytes()[:-100])
    outcome = only_host(collected(spec_for(lab, server, root), tmp_path / "run", COLUMNS))
    assert (outcome.state, outcome.raw_because) == ("complete", ""), outcome.reason
    (file,) = (one for one in outcome.files if one.source == os.path.relpath(damaged, root))
    assert file.reduced_from_bytes is None
    assert (tmp_path / "run" / file.path).read_bytes() == damaged.read_bytes()
    assert sum(one.reduced_from_bytes is not None for one in outcome.files) == 7


def test_files_of_r1_come_as_columns(lab: SshLab, server: SshServer, tmp_path: Path) -> None:
    run = write_small_run(tmp_path / "source", form="r1", steps=12)
    root = run / "cluster_profiler" / "1" / "profiler"
    outcome = only_host(collected(spec_for(lab, server, root), tmp_path / "run", COLUMNS))
    assert (outcome.state, outcome.raw_because) == ("complete", ""), outcome.reason
    reduced = {Path(file.source).name for file in outcome.files if file.reduced_from_bytes is not None}
    assert reduced == {
        name.format(rank)
        for name in ("step_trace_raw_{}_detail_time.csv", "hccl_raw_{}.csv")
        for rank in range(4)
    }


def real_python() -> str:
    return shutil.which("python3", path=os.defpath) or sys.executable


@pytest.fixture
def python_of_host(own_lab: SshLab, tmp_path: Path) -> tuple[SshServer, Path]:
    """A server whose logins find what a test puts into a file as their python3."""
    path = path_with(tmp_path / "bin", *BEHIND_THE_SHELL)
    settings = login_script(tmp_path / "rc", f"PATH={path}; export PATH")
    return own_lab.start("127.0.0.4", settings=settings), tmp_path / "bin" / "python3"


def put(python: Path, script: str) -> None:
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)


@pytest.mark.slow  # a server for each
@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("", "no python3"),
        ("exit 127", "did not start"),
        ("echo nonsense", "did not start"),
        ("printf 'columns 1'; sleep 0.1; kill -9 $$", "did not start"),
        ('{python} "$@" | head -c 3000', "archive"),
        ('{python} "$@" | head -c 10', "archive"),
        ('ulimit -f 1; exec {python} "$@"', "Python there: [Errno 27] File too large"),
        ('{python} -c "import sys; sys.stdin.buffer.raw.read(50)"; exec {python} "$@"', ""),
    ],
    ids=["none", "broken", "other", "killed at once", "killed", "killed early", "no space", "torn"],
)
def test_a_host_whose_python_fails_sends_its_files_as_they_are(
    own_lab: SshLab,
    python_of_host: tuple[SshServer, Path],
    host_root: Path,
    tmp_path: Path,
    script: str,
    why: str,
) -> None:
    server, python = python_of_host
    if script:
        put(python, script.replace("{python}", real_python()))
    outcome = sent_raw(spec_for(own_lab, server, host_root), tmp_path, host_root)
    assert why in outcome.raw_because


@pytest.mark.slow
def test_a_host_that_hangs_sends_its_files_as_they_are(
    own_lab: SshLab, python_of_host: tuple[SshServer, Path], host_root: Path, tmp_path: Path
) -> None:
    server, python = python_of_host
    put(python, "exec sleep 100")
    options = replace(COLUMNS, columns_deadline_s=1.0, progress_deadline_s=5.0)
    outcome = sent_raw(spec_for(own_lab, server, host_root), tmp_path, host_root, options)
    assert "waiting for its columns" in outcome.raw_because


def test_a_login_that_is_root_reads_nothing_unless_told(
    lab: SshLab, server: SshServer, host_root: Path, tmp_path: Path
) -> None:
    if os.geteuid() != 0:
        pytest.skip("the logins of this test are not root")
    options = replace(COLUMNS, columns_as_root=False)
    outcome = sent_raw(spec_for(lab, server, host_root), tmp_path, host_root, options)
    assert outcome.raw_because == "the login is root: --columns-as-root allows it"


def test_nothing_is_read_while_a_process_uses_the_devices_unless_told(
    lab: SshLab, server: SshServer, host_root: Path, tmp_path: Path
) -> None:
    device = tmp_path / "davinci7"
    device.touch()
    options = replace(COLUMNS, columns_devices=f"{tmp_path}/davinci[0-9]+")
    spec = spec_for(lab, server, host_root)
    with device.open() as held, subprocess.Popen(["sleep", "60"], stdin=held) as job:
        outcome = sent_raw(spec, tmp_path, host_root, options)
        assert outcome.raw_because.endswith(f"uses {device}: --while-running allows it")
        asked = replace(options, while_running=True)
        assert only_host(collected(spec, tmp_path / "asked", asked)).raw_because == ""
        job.kill()


def test_what_needs_more_memory_or_time_travels_as_it_is_and_costs_no_other_file(
    lab: SshLab, server: SshServer, host_root: Path, tmp_path: Path
) -> None:
    root = tmp_path / "host"
    shutil.copytree(host_root, root)
    greedy = next(root.rglob("communication.json"))
    greedy.write_text('{"step1": [' + "1.5," * 6_000_000 + "1.5]}")
    spec = spec_for(lab, server, root)
    outcome = only_host(collected(spec, tmp_path / "run", replace(COLUMNS, columns_memory_bytes=120 << 20)))
    assert (outcome.state, outcome.raw_because, outcome.n_over_limits) == ("complete", "", 1)
    assert sum(one.reduced_from_bytes is not None for one in outcome.files) == 7
    outcome = only_host(collected(spec, tmp_path / "late", replace(COLUMNS, columns_deadline_s=0.001)))
    assert (outcome.state, outcome.raw_because, outcome.n_over_limits) == ("complete", "", 8)
    assert {one.reduced_from_bytes for one in outcome.files} == {None}


LISTING = b"f 9000 1700000000.5 a_ascend_pt/ASCEND_PROFILER_OUTPUT/communication.json\0"
NAME = "./a_ascend_pt/ASCEND_PROFILER_OUTPUT/communication.json"
GOOD = entry(NAME, b"x" * 9000)


@pytest.mark.slow  # a server for each
@pytest.mark.parametrize(
    "evil",
    [
        READY + entry("./a_ascend_pt/../../../../outside/victim"),
        READY + entry(f"{NAME}.columns.columns"),
        READY + entry(f"{NAME}.columns") + entry(f"{NAME}.columns"),
        READY + entry(f"{NAME}.columns", bytes(80 << 20)),
        READY + b"no archive".ljust(512),
        b"unfit " + b"\x1b[31m because\n",
        b"unfit " + b"x" * 5000,
        b"\n" * 5000,
        b"",
    ],
    ids=["dotdot", "unasked", "twice", "too large", "noise", "signs", "long", "lines", "nothing"],
)
def test_a_host_that_lies_about_columns_is_asked_for_its_files_as_they_are(
    tmp_path: Path, keys: tuple[Path, Path], evil: bytes
) -> None:
    n_asked = 0

    def fetch(channel: paramiko.Channel, marker: bytes) -> None:
        nonlocal n_asked
        n_asked += 1
        answer = evil if n_asked == 1 else GOOD
        try:
            channel.sendall(answer + ending(marker, LISTING))
        except OSError:
            assert answer is evil  # hung up

    outcome = met(tmp_path, keys, Liar(LISTING, fetch), options=COLUMNS)
    assert n_asked == 2
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
    n_asked = 0

    def fetch(channel: paramiko.Channel, marker: bytes) -> None:
        nonlocal n_asked
        n_asked += 1
        is_first = n_asked == 1  # the second may be asked for before this one is cut off
        answer = READY + entry(name, bytes(80 << 20)) if is_first else GOOD
        try:
            channel.sendall(answer + ending(marker, listing))
        except OSError:
            assert is_first  # hung up

    outcome = met(tmp_path, keys, Liar(listing, fetch), options=COLUMNS)
    assert "was announced with 65536 bytes" in outcome.raw_because
    assert {file.source.rpartition("/")[2]: file.state for file in outcome.files} == {
        "communication.json": "stored",
        "trace_view.json": "skipped",
    }
    assert list(host_tree(tmp_path / "run").values()) == [b"x" * 9000]
