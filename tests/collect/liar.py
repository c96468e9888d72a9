"""A server that lies, and what must be true of every collection from it."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import paramiko

from cluster_run.manifest import HostOutcome
from tests.collect.helpers import FULL, collected, only_host
from tests.collect.paramiko_server import Files, ParamikoServer, spec_of

TOOLS = b"tool tar tar (GNU tar) 1.34\0tool find find (GNU findutils) 4.9\0"

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
            while (line := self.line(channel)) == b"clock\n":
                self.tell_clock(channel)
            length = int(line)

    def line(self, channel: paramiko.Channel) -> bytes:
        line = b""
        while not line.endswith(b"\n"):
            line += read_exactly(channel, 1)
        return line

    def tell_clock(self, channel: paramiko.Channel) -> None:
        channel.sendall(b"clock nan\0")

    def answer(self, channel: paramiko.Channel, marker: bytes) -> None:
        tools = TOOLS + (_ZSTD if self.has_zstd else b"")
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


def sending(*files: bytes, listing: bytes = LISTING) -> Callable[[paramiko.Channel, bytes], None]:
    """A fetch that sends these files and then ends as an honest one does."""
    return lambda channel, marker: channel.sendall(b"".join(files) + ending(marker, listing))


def nothing(channel: paramiko.Channel, marker: bytes) -> None:
    """Send no file."""


GOOD = entry("./a_ascend_pt/good.json", b"good")


def met(
    tmp_path: Path, keys: tuple[Path, Path], liar: Liar | None, files: type[Files] = Files, options=FULL
) -> HostOutcome:  # type: ignore[no-untyped-def]
    """The outcome of a collection from a liar; checks that nothing lands outside its folder."""
    (tmp_path / "outside").mkdir(exist_ok=True)
    (tmp_path / "outside" / "victim").write_text("untouched")
    before = {path for path in tmp_path.rglob("*") if "run" not in path.parts}
    with ParamikoServer(
        keys[0], authorized_keys=Path(f"{keys[1]}.pub").read_text(), execute=liar, files=files
    ) as server:
        outcome = only_host(collected(spec_of(server, keys, "/prof"), tmp_path / "run", options))
    assert (tmp_path / "outside" / "victim").read_text() == "untouched"
    after = {path for path in tmp_path.rglob("*") if "run" not in path.parts}
    assert after - before <= {tmp_path / "known"}
    inside = {path.relative_to(tmp_path / "run").parts[0] for path in (tmp_path / "run").rglob("*")}
    assert inside <= {"cluster_profiler", "host_ips_mapping.txt", "manifest.json"}
    assert not any(path.is_symlink() for path in (tmp_path / "run").rglob("*"))
    return outcome
