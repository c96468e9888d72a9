"""Programs for the host's shell, and the reading of their answers."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_collect.entries import Allowance, RemoteEntry
from cluster_collect.faults import HostileDataError, NoProfilerRootError, NoShellError
from cluster_collect.remote import programs
from cluster_collect.remote.decompress import unpacking
from cluster_collect.remote.listing import ListingReader, MarkerFilter, Tools
from cluster_collect.remote.programs import (
    PACKERS,
    RemoteProgram,
    fetch_program,
    prepare_program,
    probe_program,
    quoted,
)
from cluster_collect.spec import Codec, HostSpec
from cluster_run.ids import HostId, ServerId
from tests.commands import program

SHELLS = [
    path
    for path in map(
        shutil.which, ("sh", "bash", "dash", "rbash", "csh", "tcsh", "fish", "zsh", "ksh", "busybox")
    )
    if path
]


def login(shell: str) -> list[str]:
    return [shell, "sh"] if shell.endswith("busybox") else [shell]


def has_gnu_find(shell: str) -> bool:
    """Some builds of busybox call no program that they hold themselves: their hosts are listed by SFTP."""
    asked = subprocess.run([*login(shell), "-c", "find --version"], capture_output=True, check=False)
    return b"GNU" in asked.stdout


def ran(program: RemoteProgram, shell: str = "sh") -> bytes:
    """What the program answers after its marker, run by a login shell as sshd runs it."""
    done = subprocess.run(
        [*login(shell), "-c", program.command], input=program.stdin, capture_output=True, check=False
    )
    noise = MarkerFilter(program.marker)
    answer = noise.feed(done.stdout)
    assert noise.found, done.stderr
    return answer


def at(root: Path | str) -> HostSpec:
    return HostSpec(HostId("1"), ServerId("s"), profiler_root=str(root))


def listed(data: bytes, limit: int = 1000) -> ListingReader:
    reader = ListingReader(Allowance(limit))
    reader.feed(data)
    return reader


@settings(max_examples=40, deadline=None)
@given(st.binary(min_size=1, max_size=40).filter(lambda value: b"\0" not in value))
def test_any_bytes_are_one_word_of_the_shell(value: bytes) -> None:
    script = b"LC_ALL=C; printf %s " + quoted(value) + b"; printf ."
    done = subprocess.run(["sh"], input=script, capture_output=True, check=True)
    assert done.stdout == value + b"."


@pytest.mark.parametrize("shell", [*filter(has_gnu_find, SHELLS)])
def test_the_probe_lists_what_is_there_under_every_shell(shell: str, tmp_path: Path) -> None:
    root = tmp_path / "it's $(here) \udcff"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "a\nb").write_bytes(b"12345")
    os.utime(root / "sub" / "a\nb", ns=(0, 1_700_000_000_123_456_789))
    (root / "link").symlink_to("/etc")
    reader = listed(ran(probe_program(at(root)), shell))
    assert reader.complete
    assert {(e.path, e.kind, e.size_bytes) for e in reader.entries} == {
        (b"sub/a\nb", "f", 5),
        (b"link", "l", 4),
    }
    assert 1_700_000_000_123_456_789 in {entry.mtime_ns for entry in reader.entries}
    assert reader.tools.are_gnu
    assert None not in (reader.free_bytes, reader.clock_s)


@pytest.mark.slow
def test_links_are_told_among_many_files_and_a_circle_of_links_is_no_trouble(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"file{number}").touch()
        (tmp_path / f"link{number}").symlink_to("/etc" if number % 2 else f"file{number}")
    (tmp_path / "one").symlink_to("other")
    (tmp_path / "other").symlink_to("one")
    reader = listed(ran(probe_program(at(tmp_path))))
    assert reader.find_status == 0
    assert {entry.path for entry in reader.entries} == {os.fsencode(name) for name in os.listdir(tmp_path)}
    odd = {b"link%d" % number for number in range(1, 300, 2)}
    assert {link.path: link.is_dangling for link in reader.links} == {
        **dict.fromkeys(odd, False),
        b"one": True,
        b"other": True,
    }


def test_the_command_line_never_holds_user_text() -> None:
    commands = {
        program.command.replace(str(len(program.stdin)), "N")
        for program in (
            probe_program(at("/secret $(root)")),
            prepare_program("export TOKEN=secret"),
            fetch_program(at("/secret"), [], "zstd"),
        )
    }
    assert commands == {"sh -c 'eval \"$(dd bs=1 count=N 2>/dev/null)\"'"}


def test_a_missing_root_is_told() -> None:
    reader = listed(ran(probe_program(at("/nowhere/at all"))))
    assert reader.complete
    with pytest.raises(NoProfilerRootError, match="/nowhere"):
        reader.require_root("/nowhere")


@pytest.mark.parametrize("root", ["~/prof", "prof"])
def test_a_relative_root_is_below_the_home_wherever_the_shell_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "prof").mkdir()
    (tmp_path / "prof" / "x").touch()
    monkeypatch.chdir(tmp_path / "prof")
    assert [entry.path for entry in listed(ran(probe_program(at(root)))).entries] == [b"x"]


@settings(max_examples=60, deadline=None)
@given(noise=st.binary(max_size=200), answer=st.binary(max_size=50), piece=st.integers(1, 60))
def test_noise_before_the_marker_is_dropped(noise: bytes, answer: bytes, piece: int) -> None:
    marker = b"0123456789abcdef"
    data = noise + marker + b"\0" + answer
    skip = MarkerFilter(marker)
    out = b"".join(skip.feed(data[begin : begin + piece]) for begin in range(0, len(data), piece))
    assert skip.found
    assert out == answer


def test_noise_without_end_is_no_shell() -> None:
    skip = MarkerFilter(b"marker")
    with pytest.raises(NoShellError, match="without end"):
        skip.feed(b"y\n" * 5_000_000)


@pytest.mark.parametrize(
    "record",
    [
        b"f 12 noise path",
        b"f -1 1.0 a",
        b"f 99999999999999999999999 1 a",
        b"f 1 1.5",
        b"",
        b"hello",
        b"end x",
    ],
)
def test_records_that_are_not_ours_are_refused(record: bytes) -> None:
    with pytest.raises(HostileDataError, match="the listing holds"):
        listed(b"listing\0" + record + b"\0")


def test_entries_and_records_have_limits() -> None:
    with pytest.raises(HostileDataError, match="more than 10 entries"):
        listed(b"listing\0" + b"".join(b"f 1 1.0 %d\0" % n for n in range(11)), limit=10)
    with pytest.raises(HostileDataError, match="without end"):
        listed(b"listing\0f 1 1.0 " + b"x" * 20_000)


@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=300), piece=st.integers(1, 50))
def test_any_answer_is_read_or_refused_as_hostile(data: bytes, piece: int) -> None:
    reader = ListingReader(Allowance(50))
    try:
        for begin in range(0, len(data), piece):
            reader.feed(data[begin : begin + piece])
    except HostileDataError:
        return
    assert len(reader.entries) <= 50


@pytest.mark.parametrize(
    ("tools", "wanted", "chosen"),
    [
        (Tools(zstd="v1.5", gzip="1.12"), "auto", "zstd"),
        (Tools(gzip="1.12"), "auto", "gzip"),
        (Tools(), "auto", "none"),
        (Tools(zstd="v1.5", gzip="1.12"), "gzip", "gzip"),
        (Tools(zstd="v1.5"), "none", "none"),
    ],
)
def test_the_best_compressor_of_the_host_is_used(tools: Tools, wanted: str, chosen: str) -> None:
    assert tools.codec(wanted) == chosen


@pytest.mark.parametrize("codec", get_args(Codec))
def test_every_compressor_is_asked_for_and_used_and_unpacked(codec: Codec) -> None:
    is_asked_for = f" {codec} ".encode() in programs._PROBE
    assert is_asked_for != (codec == "none")
    tools = Tools(**({codec: "1.0"} if is_asked_for else {}))
    assert tools.codec("auto") == tools.codec(codec) == codec
    got: list[bytes] = []
    if is_asked_for and not shutil.which(codec):
        pytest.skip(f"{codec} is not here")
    how = ["sh", "-c", PACKERS[codec] or "cat"]
    packed = subprocess.run(how, input=b"content", capture_output=True, check=True)
    unpacking(codec, lambda data: got.append(bytes(data)))(packed.stdout)
    assert b"".join(got) == b"content"


def test_tar_and_compressor_on_the_host_give_way_to_its_own_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "prof").mkdir()
    (tmp_path / "prof" / "x").write_text("content")
    (tmp_path / "bin").mkdir()
    for tool in ("tar", "gzip"):
        program(tmp_path / "bin" / tool, f'nice >{tmp_path}/{tool}.nice\nexec {shutil.which(tool)} "$@"')
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    before = int(subprocess.run(["nice"], capture_output=True, check=True).stdout)
    ran(fetch_program(at(tmp_path / "prof"), [b"x"], "gzip"))
    assert {int((tmp_path / f"{tool}.nice").read_text()) for tool in ("tar", "gzip")} == {
        min(19, before + 10)
    }


@pytest.mark.parametrize(("status", "n_calls"), [(1, 2), (137, 1)])
def test_a_zstd_of_before_1_3_4_is_called_without_the_option_it_lacks_and_no_other_failure_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, n_calls: int
) -> None:
    (tmp_path / "prof").mkdir()
    (tmp_path / "prof" / "x").write_text("content")
    (tmp_path / "bin").mkdir()
    program(
        tmp_path / "bin" / "zstd",
        f"echo >>{tmp_path}/calls\n"
        f'case "$*" in *--single-thread*) exit {status};; esac\nexec {shutil.which("cat")}',
    )
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    answer = ran(fetch_program(at(tmp_path / "prof"), [b"x"], "zstd"))
    assert (tmp_path / "calls").read_text().count("\n") == n_calls
    assert (b"content" in answer) == (status == 1)


def test_a_second_listing_keeps_what_was_asked_for_and_what_is_as_before_once() -> None:
    before = RemoteEntry(b"a", "f", 3, 1_500_000_000)
    changed = RemoteEntry(b"b", "f", 3, 1_500_000_000)
    reader = ListingReader(Allowance(5), known={entry.path: entry for entry in (before, changed)})
    reader.feed(b"listing\0f 3 1.5 ./a\0f 4 1.5 ./b\0f 1 1.5 ./c\0end 0\0")
    first, second = reader.entries  # nobody asked for the third
    assert first is before
    assert (second.path, second.size_bytes) == (b"b", 4)
