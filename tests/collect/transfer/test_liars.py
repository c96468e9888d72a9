"""Hosts that lie so that a call never ends, or fills the memory: each costs itself and nobody else.

Every class is one lie. What is short here is long by default; the words and the order are the same.
"""

from __future__ import annotations

import json
import shlex
import tarfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import paramiko
import pytest

from benchmarks.tcp_proxy import Mischief, TcpProxy
from cluster_collect.spec import CollectOptions, HostSpec
from cluster_collect.store import writer
from cluster_collect.transports.bounds import HostTime
from cluster_run.ids import HostId, ServerId
from cluster_run.manifest import read_manifest
from demo.sshd import SshLab, SshServer
from tests.collect.helpers import FULL, PLAIN, OneHost, collected, make_capture, spec_for, through, tree
from tests.collect.liar import GOOD, LISTING, TOOLS, Liar, entry, met, nothing, sending
from tests.collect.paramiko_server import ParamikoServer, spec_of
from tests.commands import wait_until

pytestmark = pytest.mark.slow  # many servers are started
Keys = tuple[Path, Path]

#: A host that brings nothing for two seconds is given up, and the time of one is over after ten.
SHORT = replace(
    FULL, n_attempts=2, listing_deadline_s=2.0, progress_deadline_s=2.0, give_up_s=4.0, host_deadline_s=10.0
)


def now_and_then(channel: paramiko.Channel, data: bytes, pause_s: float = 0.1) -> None:
    """Send until the collector hangs up."""
    with suppress(OSError):
        while True:
            channel.sendall(data)
            time.sleep(pause_s)


@dataclass
class Reports(Liar):
    """Never comes to its listing: it goes on with one record."""

    record: bytes = b""

    def answer(self, channel: paramiko.Channel, marker: bytes) -> None:
        now_and_then(channel, self.record)


@dataclass
class Lists(Liar):
    """Never comes to the end of its listing."""

    record: bytes = b""
    pause_s: float = 0.0
    n_sent: int = field(default=0)

    def answer(self, channel: paramiko.Channel, marker: bytes) -> None:
        channel.sendall(TOOLS + b"listing\0")
        with suppress(OSError):
            while True:
                channel.sendall(b"".join(self.record % (self.n_sent + n) for n in range(20)))
                self.n_sent += 20
                time.sleep(self.pause_s)


@pytest.mark.parametrize("record", [b"tool tar tar (GNU tar) 1.34\0", b"clock 1\0", b"status 0\0"])
def test_a_host_that_repeats_its_report_is_ended(tmp_path: Path, keys: Keys, record: bytes) -> None:
    outcome = met(tmp_path, keys, Reports(b"", nothing, record=record), options=SHORT)
    assert outcome.failure == "hostile-data"
    assert "twice" in outcome.reason


def test_all_that_is_listed_is_bounded_by_bytes(tmp_path: Path, keys: Keys) -> None:
    """No link is too long and their number is small: together they would be eight gigabytes."""
    long = b"link + l%%d_%b//t%b\0" % (b"y" * 200, b"/".join([b"z" * 250] * 60))
    patient = replace(SHORT, host_deadline_s=120.0)
    outcome = met(tmp_path, keys, Lists(b"", nothing, record=long), options=patient)
    assert (outcome.failure, outcome.reason) == ("hostile-data", "the listing holds more than 96 MiB")


def test_one_name_now_and_then_is_listed_no_longer_than_a_host_may_take(tmp_path: Path, keys: Keys) -> None:
    liar = Lists(b"", nothing, record=b"f 1 1.0 a_ascend_pt/%d" + b"y" * 150 + b"\0", pause_s=0.3)
    outcome = met(tmp_path, keys, liar, options=SHORT)
    assert outcome.failure == "deadline"
    assert outcome.reason == "not finished within the 10 s of a host"
    assert "call it again to go on" in outcome.advice
    assert "--host-deadline SECONDS (0: without end)" in outcome.advice


_EMPTY_GZIP = zlib.compressobj(wbits=31)
_GZIP_THAT_ENDS = _EMPTY_GZIP.compress(b"") + _EMPTY_GZIP.flush()


def behind_the_end(channel: paramiko.Channel, marker: bytes) -> None:
    channel.sendall(_GZIP_THAT_ENDS)
    now_and_then(channel, bytes(4000))


def skippable_frames(channel: paramiko.Channel, marker: bytes) -> None:
    now_and_then(channel, b"\x50\x2a\x4d\x18" + (2000).to_bytes(4, "little") + bytes(2000))


def pax_headers(channel: paramiko.Channel, marker: bytes) -> None:
    info = tarfile.TarInfo("pax")
    info.type, info.size = b"g", 9
    header = info.tobuf(tarfile.GNU_FORMAT) + b"9 a=bcde\n".ljust(512, b"\0")
    now_and_then(channel, header * 20)


def a_tail_without_end(channel: paramiko.Channel, marker: bytes) -> None:
    channel.sendall(GOOD + bytes(1024) + marker + b"\0")
    now_and_then(channel, b"status 0\0" * 300)


def a_file_that_drips(channel: paramiko.Channel, marker: bytes) -> None:
    channel.sendall(entry("./a_ascend_pt/good.json", b"x" * 1_000_000)[:512])
    now_and_then(channel, b"x" * 2000)


@pytest.mark.parametrize(
    ("lie", "tool", "failure"),
    [
        (behind_the_end, b"tool gzip gzip 1\0", "hostile-data"),
        (skippable_frames, b"tool zstd v1.5\0", "stalled"),
        (pax_headers, b"", "stalled"),
        (a_tail_without_end, b"", "hostile-data"),
        (a_file_that_drips, b"", "deadline"),
    ],
)
def test_bytes_that_are_no_content_are_no_progress(  # type: ignore[no-untyped-def]
    tmp_path: Path, keys: Keys, lie, tool: bytes, failure: str
) -> None:
    @dataclass
    class Liarly(Liar):
        def answer(self, channel: paramiko.Channel, marker: bytes) -> None:
            channel.sendall(TOOLS + tool + b"listing\0" + self.listing + b"end 0\0")

    listing = LISTING.replace(b"f 4", b"f 1000000", 1) if lie is a_file_that_drips else LISTING
    outcome = met(tmp_path, keys, Liarly(listing, lie), options=SHORT)
    assert outcome.failure == failure, outcome.reason


def test_the_manifest_of_the_others_is_there_while_one_still_drips(host: OneHost, keys: Keys) -> None:
    manifest = host.run / "manifest.json"
    seen: list[dict[str, str]] = []

    def drips_until_the_manifest_is_there(channel: paramiko.Channel, marker: bytes) -> None:
        with suppress(OSError):
            wait_until(manifest.exists)
            seen.append({host["host"]: host["state"] for host in json.loads(manifest.read_text())["hosts"]})
            channel.close()

    liar = Liar(LISTING, drips_until_the_manifest_is_there)
    options = replace(FULL, n_attempts=1, interim_s=0.2)
    with beside(liar, keys) as lying:
        first, second = collected([host.spec, lying], host.run, options).hosts
    assert seen == [{"1": "complete", "2": "failed"}]
    assert first.state == "complete"
    assert second.failure == "lost-connection"
    assert host.landed() == tree(host.root)


@contextmanager
def beside(liar: Liar, keys: Keys, number: int = 2) -> Iterator[HostSpec]:
    """Run the liar as another host of the same inventory."""
    public_key = Path(f"{keys[1]}.pub").read_text()
    with ParamikoServer(keys[0], authorized_keys=public_key, execute=liar) as server:
        yield spec_of(server, keys, "/prof", number)


def listed(root: Path) -> bytes:
    """What find prints of a tree: a host that can read another's listing can say the same."""
    lines = []
    for path in sorted(root.rglob("*")):
        if path.is_file():
            status = path.stat()
            seconds = f"{status.st_mtime_ns // 10**9}.{status.st_mtime_ns % 10**9:09d}"
            name = f"./{path.relative_to(root)}"
            lines.append(f"f {status.st_size} {seconds} {name}\0")
    return "".join(lines).encode()


@pytest.mark.parametrize("order", [(1, 2), (2, 1)], ids=["the liar second", "the liar first"])
def test_a_host_that_lists_what_another_lists_has_to_show_the_content(
    host: OneHost, keys: Keys, order: tuple[int, int]
) -> None:
    own_number, liars_number = order
    others = [entry(f"./{name}", b"E" * len(content)) for name, content in tree(host.root).items()]
    liar = Liar(listed(host.root), sending(*others, listing=listed(host.root)))
    with beside(liar, keys, liars_number) as lying:
        own = host.having(host=HostId(str(own_number)), server_id=ServerId("own"))
        specs = sorted([own.spec, lying], key=lambda spec: int(spec.host))
        outcomes = {outcome.host: outcome for outcome in collected(specs, host.run, FULL).hosts}
    honest = outcomes[own.spec.host]
    assert (honest.state, honest.same_files_as) == ("complete", "")
    assert outcomes[lying.host].same_files_as == ""
    assert own.landed() == tree(host.root)


def content_without_end(channel: paramiko.Channel, marker: bytes) -> None:
    """Bring some megabytes of content in each second, of a file that would take a minute."""
    channel.sendall(entry("./a_ascend_pt/good.json", b"x" * VAST_BYTES)[:512])
    now_and_then(channel, b"x" * 400_000)


VAST_BYTES = 250_000_000
VAST = LISTING.replace(b"f 4", b"f %d" % VAST_BYTES, 1)


def test_a_host_that_brings_content_without_end_ends_and_the_others_are_whole(
    host: OneHost, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What comes until the host's time is over depends on how busy this machine is: a little is kept, too.
    monkeypatch.setattr(writer, "LARGE_BYTES", 1 << 15)
    with beside(Liar(VAST, content_without_end), keys) as lying:
        manifest = collected([host.spec, lying], host.run, replace(FULL, host_deadline_s=30.0))
    first, second = manifest.hosts
    assert (first.state, second.failure) == ("complete", "deadline")
    assert host.landed() == tree(host.root)
    assert {file.state for file in second.files} == {"failed"}
    assert read_manifest(host.run / "manifest.json").hosts[0].state == "complete"
    (kept,) = host.run.rglob(".cut-*")
    assert kept.stat().st_size > 0


def test_who_waits_for_the_files_of_a_host_whose_time_is_over_ends_with_it_and_the_next_call_brings_them(
    host: OneHost, lab: SshLab, server: SshServer
) -> None:
    make_capture(host.root, 1, size_bytes=9_000_000)
    begun = host.run / "cluster_profiler/1/profiler/worker_0_20240101000000_ascend_pt/profiler_info_0.json"
    wait = f"while [ ! -e {shlex.quote(str(begun))} ]; do sleep 0.1; done"
    specs = [host.spec, *(spec_for(lab, server, host.root, number, prepare=wait) for number in (2, 3))]
    with TcpProxy(server.address, server.port, mischief=(Mischief(stop_after_bytes=3_000_000),)) as proxy:
        slow = through(host.spec, proxy, lab, server)
        options = replace(PLAIN, n_attempts=1, progress_deadline_s=60.0, host_deadline_s=15.0)
        hosts = collected([slow, *specs[1:]], host.run, options).hosts
    assert {one.failure for one in hosts} == {"deadline"}, [one.reason for one in hosts]
    assert [one.same_files_as for one in hosts] == ["", "1", "1"]
    assert hosts[1].reason == "it sees the files of host 1, which was not finished in time"
    again = collected(specs, host.run, PLAIN).hosts
    assert [(one.state, one.same_files_as) for one in again] == [
        *(("complete", ""), ("complete", "1"), ("complete", "1"))
    ]
    assert host.landed() == tree(host.root)


def test_queues_and_pauses_that_we_ask_for_are_no_time_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    taken = HostTime()
    now_s[0] += 30.0
    with taken.waits():
        now_s[0] += 500.0
        assert taken.own_s == 30.0
    taken.excuse(7.0)
    now_s[0] += 7.0
    assert taken.own_s == 30.0


def test_no_lie_keeps_a_call_with_defaults_for_ten_minutes() -> None:
    options = CollectOptions()
    # What a host calls being parsed is waited for beside that, and a host that lists the same for a minute.
    assert options.host_deadline_s + options.parsing_deadline_s + 60 < 600
