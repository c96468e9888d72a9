"""Hosts that lie: none writes outside its folder, fills disk or memory, or costs the others."""

from __future__ import annotations

import io
import os
import re
import resource
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import paramiko
import pytest
import zstandard

from cluster_collect.spec import HostSpec
from cluster_run.ids import HostId, ServerId
from cluster_run.manifest import HostOutcome
from demo.sshd import SshLab, SshServer, make_key

from .helpers import FULL, QUICK, collected, make_capture, only_host, spec_for
from .paramiko_server import Files, ParamikoServer

pytestmark = pytest.mark.slow  # many servers are started

_TOOLS = b"tool tar tar (GNU tar) 1.34\0tool find find (GNU findutils) 4.9\0"
_ZSTD = b"tool zstd v1.5\0"
LISTING = b"f 4 1700000000.5 a_ascend_pt/good.json\0f 4 1700000000.5 a_ascend_pt/bad.json\0"


def read_exactly(channel: paramiko.Channel, n_bytes: int) -> bytes:
    data = b""
    while len(data) < n_bytes:
        more = channel.recv(n_bytes - len(data))
        if not more:
            raise EOFError
        data += more
    return data


@dataclass
class Liar:
    """Answers the probe with `listing` and the fetch with what `fetch` writes."""

    listing: bytes
    fetch: Callable[[paramiko.Channel, bytes], None]
    has_zstd: bool = False

    def __call__(self, command: str, channel: paramiko.Channel) -> int:
        length = int(re.findall(r"count=(\d+)", command)[0])
        while True:
            program = read_exactly(channel, length)
            marker = re.findall(rb"^marker=(\w+)", program)[0]
            channel.sendall(marker + b"\0")
            if b"codec=" in program:
                self.fetch(channel, marker)
                return 0
            self.answer(channel, marker)
            digits = b""
            while not digits.endswith(b"\n"):
                digits += read_exactly(channel, 1)
            length = int(digits)

    def answer(self, channel: paramiko.Channel, marker: bytes) -> None:
        tools = _TOOLS + (_ZSTD if self.has_zstd else b"")
        channel.sendall(tools + b"listing\0" + self.listing + b"end 0\0")


def entry(name: str, content: bytes = b"evil", kind: bytes = tarfile.REGTYPE, link: str = "") -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    info.size = len(content) if kind == tarfile.REGTYPE else 0
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as tar:
        tar.addfile(info, io.BytesIO(content))
    size = 512 + (-(-info.size // 512)) * 512
    long_name = 1024 if len(name) > 100 else 0
    return stream.getvalue()[: size + long_name]


def ending(marker: bytes, listing: bytes = LISTING) -> bytes:
    return bytes(1024) + marker + b"\0status 0\0listing\0" + listing + b"end 0\0"


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    return make_key(tmp_path / "host_key"), make_key(tmp_path / "user_key")


def met(
    tmp_path: Path, keys: tuple[Path, Path], liar: Liar | None, files: type = Files, options=FULL
) -> HostOutcome:  # type: ignore[no-untyped-def, type-arg]
    """The outcome of a collection from a liar; checks that nothing lands outside its folder."""
    (tmp_path / "outside").mkdir(exist_ok=True)
    (tmp_path / "outside" / "victim").write_text("untouched")
    before = {path for path in tmp_path.rglob("*") if "run" not in path.parts}
    with ParamikoServer(
        keys[0], authorized_keys=Path(f"{keys[1]}.pub").read_text(), execute=liar, files=files
    ) as server:
        known = tmp_path / "known"
        known.write_text(f"[{server.address}]:{server.port} {Path(f'{keys[0]}.pub').read_text()}")
        spec = HostSpec(
            HostId("1"),
            ServerId("liar"),
            address=server.address,
            port=server.port,
            user="any",
            identity_file=str(keys[1]),
            known_hosts=str(known),
            profiler_root="/prof",
            ssh_config=os.devnull,
        )
        outcome = only_host(collected(spec, tmp_path / "run", options))
    assert (tmp_path / "outside" / "victim").read_text() == "untouched"
    after = {path for path in tmp_path.rglob("*") if "run" not in path.parts}
    assert after - before <= {tmp_path / "known"}
    inside = {path.relative_to(tmp_path / "run").parts[0] for path in (tmp_path / "run").rglob("*")}
    assert inside <= {"cluster_profiler", "host_ips_mapping.txt", "manifest.json"}
    assert not any(path.is_symlink() for path in (tmp_path / "run").rglob("*"))
    return outcome


@pytest.mark.parametrize(
    "evil",
    [
        entry("./a_ascend_pt/../../../../outside/victim"),
        entry("/tmp/absolute-from-a-liar"),
        entry("./a_ascend_pt/unasked.json"),
        entry("./a_ascend_pt/bad.json", kind=tarfile.SYMTYPE, link="/etc"),
        entry("./a_ascend_pt/bad.json", kind=tarfile.LNKTYPE, link="../../outside/victim"),
        entry("./a_ascend_pt/bad.json", kind=tarfile.CHRTYPE),
        entry("./a_ascend_pt/bad.json", kind=tarfile.BLKTYPE),
        entry("./a_ascend_pt/bad.json", kind=tarfile.FIFOTYPE),
        entry("./a_ascend_pt/bad.json", kind=tarfile.DIRTYPE),
        entry("./a_ascend_pt/good.json"),
        b"this is no archive at all".ljust(512),
    ],
    ids=[
        "dotdot",
        "absolute",
        "unasked",
        "symlink",
        "hardlink",
        "device",
        "block",
        "fifo",
        "dir",
        "twice",
        "noise",
    ],
)
def test_an_evil_archive_costs_the_host_the_rest_of_its_files(
    tmp_path: Path, keys: tuple[Path, Path], evil: bytes
) -> None:
    def fetch(channel: paramiko.Channel, marker: bytes) -> None:
        channel.sendall(entry("./a_ascend_pt/good.json", b"good") + evil + ending(marker))

    outcome = met(tmp_path, keys, Liar(LISTING, fetch))
    assert outcome.state == "partial"
    assert {os.path.basename(file.source): file.state for file in outcome.files} == {
        "good.json": "stored",
        "bad.json": "failed",
    }
    assert "archive" in outcome.reason


def test_a_file_shorter_than_announced_is_not_taken_for_whole(
    tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    def fetch(channel: paramiko.Channel, marker: bytes) -> None:
        channel.sendall(
            entry("./a_ascend_pt/good.json", b"good") + entry("./a_ascend_pt/bad.json", b"x") + ending(marker)
        )

    outcome = met(tmp_path, keys, Liar(LISTING, fetch))
    assert outcome.state == "partial"
    assert "1 bytes came instead of 4" in outcome.reason


@pytest.mark.parametrize("cut", ["no end", "no listing", "in the middle"])
def test_an_archive_that_ends_early_is_never_complete(
    tmp_path: Path, keys: tuple[Path, Path], cut: str
) -> None:
    def fetch(channel: paramiko.Channel, marker: bytes) -> None:
        data = entry("./a_ascend_pt/good.json", b"good") + entry("./a_ascend_pt/bad.json", b"evil")
        tails = {"no end": b"", "no listing": bytes(1024) + marker + b"\0status 0\0", "in the middle": b""}
        channel.sendall(data[: 1024 + 514 if cut == "in the middle" else None] + tails[cut])

    outcome = met(tmp_path, keys, Liar(LISTING, fetch))
    assert outcome.state == "partial"
    assert "ended early" in outcome.reason


@pytest.mark.parametrize(
    "name",
    [
        b"../../../outside/victim",
        b"/etc/passwd",
        b"a_ascend_pt/../../x",
        b"a_ascend_pt//x",
        b"a_ascend_pt/" + b"n" * 256,
    ],
)
def test_evil_names_in_the_listing_are_left_on_the_host(
    tmp_path: Path, keys: tuple[Path, Path], name: bytes
) -> None:
    listing = b"f 4 1.0 a_ascend_pt/good.json\0f 4 1.0 " + name + b"\0"

    def fetch(channel: paramiko.Channel, marker: bytes) -> None:
        channel.sendall(entry("./a_ascend_pt/good.json", b"good") + ending(marker, listing))

    options = replace(FULL, what=("full", "*"))
    outcome = met(tmp_path, keys, Liar(listing, fetch), options=options)
    assert [file.state for file in outcome.files] == ["stored", "skipped"]
    assert outcome.state == "complete"


def test_a_file_where_a_directory_must_be_costs_only_itself(tmp_path: Path, keys: tuple[Path, Path]) -> None:
    listing = b"f 1 1.0 a_ascend_pt/x\0f 1 1.0 a_ascend_pt/x/y\0f 1 1.0 a_ascend_pt/z\0"

    def fetch(channel: paramiko.Channel, marker: bytes) -> None:
        files = b"".join(entry(f"./a_ascend_pt/{name}", b"1") for name in ("x", "x/y", "z"))
        channel.sendall(files + ending(marker, listing))

    outcome = met(tmp_path, keys, Liar(listing, fetch))
    assert sorted(file.state for file in outcome.files) == ["failed", "stored", "stored"]
    assert "cannot be stored under its name" in outcome.reason


def endless(channel: paramiko.Channel, data: bytes) -> None:
    """Send until the collector hangs up."""
    while True:
        channel.sendall(data)


@pytest.mark.parametrize(
    "stream", [b"f 1 1.0 a_ascend_pt/%d\0", b"f 1 1.0 x" + b"x" * 500, b"\0", b"f 1 1.0 a\0" * 500]
)
def test_a_listing_without_end_is_cut_off(tmp_path: Path, keys: tuple[Path, Path], stream: bytes) -> None:
    class Endless(Liar):
        def answer(self, channel: paramiko.Channel, marker: bytes) -> None:
            channel.sendall(_TOOLS + b"listing\0")
            endless(channel, stream)

    options = replace(FULL, max_entries_per_host=20_000)
    outcome = met(tmp_path, keys, Endless(b"", lambda channel, marker: None), options=options)
    assert outcome.state == "failed"
    assert "listing holds" in outcome.reason


def test_a_million_entries_are_too_many(tmp_path: Path, keys: tuple[Path, Path]) -> None:
    listing = b"".join(b"f 1 1.0 a_ascend_pt/%d\0" % n for n in range(30_000))
    options = replace(FULL, max_entries_per_host=20_000)
    outcome = met(tmp_path, keys, Liar(listing, lambda channel, marker: None), options=options)
    assert outcome.reason == "the listing holds more than 20000 entries"


def test_an_archive_without_end_is_cut_off(tmp_path: Path, keys: tuple[Path, Path]) -> None:
    def fetch(channel: paramiko.Channel, marker: bytes) -> None:
        channel.sendall(entry("./a_ascend_pt/good.json", b"good") + bytes(1024))
        endless(channel, bytes(30_000))

    outcome = met(tmp_path, keys, Liar(LISTING, fetch))
    assert outcome.reason == "the archive does not end"


def test_a_bomb_stops_at_what_was_announced(tmp_path: Path, keys: tuple[Path, Path]) -> None:
    """A gigabyte of zeros in a few dozen KiB: neither memory nor disk may take it."""
    compressor = zstandard.ZstdCompressor(level=1).compressobj()
    header = tarfile.TarInfo("./a_ascend_pt/bad.json")
    header.size = 4
    bomb = compressor.compress(header.tobuf(tarfile.GNU_FORMAT) + b"evil" + bytes(508))
    bomb += b"".join(compressor.compress(bytes(1 << 20)) for _ in range(1024)) + compressor.flush()
    assert len(bomb) < 200_000
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = met(tmp_path, keys, Liar(LISTING, lambda channel, marker: channel.sendall(bomb), has_zstd=True))
    assert outcome.state in ("failed", "partial")
    assert "does not end" in outcome.reason
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 100_000
    assert sum(path.stat().st_size for path in (tmp_path / "run").rglob("*") if path.is_file()) < 100_000


def test_a_file_that_comes_with_a_thousand_times_its_size_is_refused(
    tmp_path: Path, keys: tuple[Path, Path]
) -> None:
    header = tarfile.TarInfo("./a_ascend_pt/bad.json")
    header.size = 200 << 20

    def fetch(channel: paramiko.Channel, marker: bytes) -> None:
        channel.sendall(header.tobuf(tarfile.GNU_FORMAT))
        endless(channel, bytes(30_000))

    outcome = met(tmp_path, keys, Liar(LISTING, fetch))
    assert "was announced with 4 bytes and comes with 209715200" in outcome.reason


def evil_files(names: list[str], kind: int = 0o100644) -> type[Files]:
    class Evil(Files):
        def list_folder(self, path: str) -> list[paramiko.SFTPAttributes]:
            found = []
            for name in names:
                attributes = paramiko.SFTPAttributes()
                attributes.filename = name
                attributes.st_mode, attributes.st_size, attributes.st_mtime = kind, 4, 1
                attributes.longname = name  # type: ignore[attr-defined]
                found.append(attributes)
            return found

        def canonicalize(self, path: str) -> str:
            return path

    return Evil


@pytest.mark.parametrize("name", ["../victim", "/etc/passwd", "", "a/b", "n" * 300, "a\0b"])
def test_evil_sftp_names_quarantine_the_host(tmp_path: Path, keys: tuple[Path, Path], name: str) -> None:
    outcome = met(tmp_path, keys, None, evil_files(["x.csv", name]))
    assert outcome.state == "failed"
    assert "the host lists" in outcome.reason


def test_sftp_directories_without_end_are_cut_off(tmp_path: Path, keys: tuple[Path, Path]) -> None:
    outcome = met(tmp_path, keys, None, evil_files(["deeper"], kind=0o040755))
    assert outcome.reason == "directories are nested deeper than 40"


def test_sftp_links_are_told_and_never_opened(tmp_path: Path, keys: tuple[Path, Path]) -> None:
    class Linking(evil_files(["step_trace_raw_0.csv"], kind=0o120777)):  # type: ignore[misc]
        def open(self, path: str, flags: int, attr: paramiko.SFTPAttributes) -> int:
            raise AssertionError("a link was opened")

    outcome = met(tmp_path, keys, None, Linking)
    assert [(file.state, file.reason) for file in outcome.files] == [
        ("skipped", "a symbolic link: not followed, not copied")
    ]


def test_a_liar_among_honest_hosts_costs_them_nothing(
    tmp_path: Path, keys: tuple[Path, Path], lab: SshLab, server: SshServer
) -> None:
    make_capture(tmp_path / "host")
    with ParamikoServer(
        keys[0],
        authorized_keys=lab.identity_file.with_suffix(".pub").read_text(),
        execute=Liar(LISTING, lambda channel, marker: channel.sendall(entry("../x"))),
    ) as liar:
        lab.trust(liar.address, liar.port, keys[0])
        honest = [spec_for(lab, server, tmp_path / "host", number) for number in (1, 3)]
        lying = spec_for(lab, SshServer(liar.address, liar.port, tmp_path, 0), "/prof", 2)
        hosts = collected([honest[0], lying, honest[1]], tmp_path / "run", QUICK).hosts
    assert [host.state for host in hosts] == ["complete", "failed", "complete"]
