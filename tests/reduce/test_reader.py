"""The program that runs on hosts: any Python from 3.7 on, its standard library; gone with who asked."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import pytest

from cluster_collect.remote.decompress import unpacking
from cluster_collect.remote.programs import PACKERS
from cluster_collect.remote.reader import reader, request
from cluster_collect.spec import Codec
from cluster_reduce.form import READY, SUFFIX, UNFIT
from tests.analysis.runs import write_small_run
from tests.analysis.sources.builders import OUTPUT
from tests.analysis.sources.test_kernel_columns import HEADER, ROWS
from tests.analysis.sources.test_trace_view import EVENTS
from tests.analysis.sources.twins import columns_of_file
from tests.commands import ran
from tests.layers import ROOT, imports_of

SOURCES = sorted((ROOT / "cluster_reduce").rglob("*.py"))
SETTINGS: dict[str, str | int | float | bool] = {
    "as_root": True,
    "while_running": True,
    "devices": "/dev/davinci[0-9]+",
    "memory_bytes": 2 << 30,
    "deadline_s": 60.0,
    "packer": "",
    "sign_s": 5.0,
}
#: What 3.7's standard library lacks, or has under another name.
NOT_THERE = (0, 0)
TOO_NEW = re.compile(r"removeprefix|removesuffix|strict=|functools import cache|math\.prod|:=|\bmatch \w+:")


def interpreters() -> list[str]:
    """All Pythons of this machine: on the path, and beside the one that runs the tests."""
    names = ["python2", *(f"python3.{minor}" for minor in range(6, 16))]
    found = [path for name in names if (path := shutil.which(name)) is not None]
    beside = Path(sys.base_prefix).parent.glob("*/bin/python[23]")
    paths = {os.path.realpath(path) for path in [sys.executable, *found, *map(str, beside)]}
    return sorted(path for path in paths if version_of(path) != NOT_THERE)


def version_of(python: str) -> tuple[int, int]:
    code = "import sys; print('%d %d' % sys.version_info[:2])"
    done = ran([python, "-c", code])
    if done.returncode:
        return NOT_THERE  # a wrapper without its Python
    major, minor = done.stdout.split()
    return int(major), int(minor)


def started(
    root: Path, names: list[bytes], python: str = sys.executable, **changes: str | float | bool
) -> subprocess.Popen[bytes]:
    """The reader at work on a host, with its standard input open."""
    asked = request(names, {**SETTINGS, **changes})
    process = subprocess.Popen(
        [python, "-E", "-s", "-S", "-B", "-c", reader().boot],
        cwd=root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdin is not None
    # A Python that is too old says so and reads nothing.
    with suppress(BrokenPipeError):
        process.stdin.write(asked)
        process.stdin.flush()
    return process


def answer_of(process: subprocess.Popen[bytes]) -> bytes:
    """All that it writes; its standard input ends after that."""
    with process:
        assert process.stdout is not None
        return process.stdout.read()


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """A host with one file that is worth reducing."""
    run = write_small_run(tmp_path / "run", steps=1)
    path = next(run.rglob("communication.json"))
    (tmp_path / "host" / OUTPUT).mkdir(parents=True)
    return path.rename(tmp_path / "host" / OUTPUT / path.name)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_sources_are_python_3_7_and_its_standard_library(path: Path) -> None:
    text = path.read_text()
    ast.parse(text, feature_version=(3, 7))
    assert not TOO_NEW.search(text)
    ours = {name for name in imports_of(path) if name.startswith("cluster_")}
    assert all(name.startswith("cluster_reduce") for name in ours)
    foreign = {name.partition(".")[0] for name in imports_of(path) - ours}
    assert foreign <= set(sys.stdlib_module_names)


def test_the_archive_is_the_same_bytes_each_time_and_holds_the_sources() -> None:
    first = reader()
    reader.cache_clear()
    assert reader() == first
    with zipfile.ZipFile(BytesIO(first.archive)) as archive:
        assert sorted(archive.namelist()) == sorted(str(path.relative_to(ROOT)) for path in SOURCES)
    for path in SOURCES:
        assert path.read_text() in first.as_text()
    assert f"SHA-256 {first.sha256}: of the archive of the sources below" in first.as_text()


@pytest.mark.slow
def test_every_python_from_3_7_on_makes_the_same_columns(capture: Path) -> None:
    host = capture.parents[1]
    kernels, timeline = (capture.with_name(name) for name in ("kernel_details.csv", "trace_view.json"))
    kernels.write_text("\n".join([HEADER, *ROWS * 20, ""]))
    timeline.write_text(json.dumps(EVENTS * 20))
    files = (capture, kernels, timeline)
    wanted = [columns_of_file(path) for path in files]
    for python in interpreters():
        process = started(host, [os.fsencode(path.relative_to(host)) for path in files], python)
        output = answer_of(process)
        if version_of(python) < (3, 7):
            assert output.startswith(UNFIT + b"python3 is "), python
            continue
        assert output.startswith(READY), python
        assert SUFFIX.encode() in output
        assert all(one is not None and one in output for one in wanted), python
        assert process.returncode == 0


def test_other_bytes_than_were_sent_are_not_run(capture: Path) -> None:
    boot = re.sub('"[0-9a-f]{64}"', f'"{"0" * 64}"', reader().boot)
    process = subprocess.run(
        [sys.executable, "-E", "-s", "-S", "-B", "-c", boot],
        input=request([], SETTINGS),
        capture_output=True,
        check=False,
    )
    assert process.stdout == UNFIT + b"other bytes came than were sent\n"


def test_no_file_is_left_behind_and_nothing_is_written(capture: Path, tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    host = capture.parents[1]
    assert answer_of(started(host, [os.fsencode(capture.relative_to(host))])).startswith(READY)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_it_stops_when_nobody_waits_any_more(tmp_path: Path) -> None:
    (tmp_path / OUTPUT).mkdir()
    slow = tmp_path / OUTPUT / "communication.json"
    slow.write_text('{"step1": [' + "1.5," * 8_000_000 + "1.5]}")
    process = started(tmp_path, [os.fsencode(slow.relative_to(tmp_path))])
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.read(len(READY)) == READY
    while not members(process.pid) - {process.pid}:
        time.sleep(0.01)
    process.stdin.close()
    assert process.wait(120) == 1
    assert members(process.pid) == set()
    process.stdout.close()


@pytest.mark.slow
@pytest.mark.parametrize("codec", ["none", "gzip", "zstd"])
def test_while_it_computes_it_says_so_and_does_not_keep_what_it_has(tmp_path: Path, codec: Codec) -> None:
    if codec != "none" and shutil.which(codec) is None:
        pytest.skip(f"no {codec} on this machine")
    (tmp_path / OUTPUT).mkdir()
    (tmp_path / OUTPUT / "small.csv").write_text("1,2\n")
    slow = tmp_path / OUTPUT / "communication.json"
    slow.write_text('{"step1": [' + "1.5," * 2_000_000 + "1.5]}")
    names = [os.fsencode(path.relative_to(tmp_path)) for path in sorted(slow.parent.iterdir())]
    answer = answer_of(started(tmp_path, names, packer=PACKERS[codec], sign_s=0.02))
    assert answer.startswith(READY)
    plain: list[bytes] = []
    unpacking(codec, lambda data: plain.append(bytes(data)))(answer[len(READY) :])
    with tarfile.open(fileobj=BytesIO(b"".join(plain))) as archive:
        assert sorted(archive.getnames()) == [f"./{name.decode()}" for name in names]
    assert b"".join(plain).count(b"comment=on") > 1


def members(session: int) -> set[int]:
    """The processes of a session that still run."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, owner = path.read_text().rpartition(")")[2].split()[:4]
        except OSError:
            continue
        if int(owner) == session and state != "Z":
            found.add(int(path.parent.name))
    return found
