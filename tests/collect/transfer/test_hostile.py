"""Hosts that lie: none writes outside its folder, takes the place of files, or costs the others."""

from __future__ import annotations

import json
import os
import tarfile
import time
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest

from cluster_run.ids import HostId
from cluster_run.layout import host_directory
from demo.sshd import SshLab, SshServer
from tests.collect.helpers import FULL, QUICK, OneHost, collected
from tests.collect.liar import GOOD, LISTING, Liar, entry, met, nothing, sending
from tests.collect.paramiko_server import Files, ParamikoServer

pytestmark = pytest.mark.slow  # many servers are started
BAD = "./a_ascend_pt/bad.json"
Keys = tuple[Path, Path]


@pytest.mark.parametrize(
    "evil",
    [
        entry("./a_ascend_pt/../../../../outside/victim"),
        entry("/tmp/absolute-from-a-liar"),
        entry("./a_ascend_pt/unasked.json"),
        entry(BAD, kind=tarfile.SYMTYPE, link="/etc"),
        entry(BAD, kind=tarfile.LNKTYPE, link="../../outside/victim"),
        entry(BAD, kind=tarfile.CHRTYPE),
        GOOD,
    ],
    ids=["dotdot", "absolute", "unasked", "symlink", "hardlink", "device", "twice"],
)
def test_an_evil_archive_costs_the_host_the_rest_of_its_files(
    tmp_path: Path, keys: Keys, evil: bytes
) -> None:
    """Which kinds and names are refused is held by the tests of the parser."""
    outcome = met(tmp_path, keys, Liar(LISTING, sending(GOOD, evil)))
    assert outcome.state == "partial"
    assert {os.path.basename(file.source): file.state for file in outcome.files} == {
        "good.json": "stored",
        "bad.json": "failed",
    }


def test_a_file_with_something_else_than_an_archive_behind_it_is_not_believed(
    tmp_path: Path, keys: Keys
) -> None:
    """It may be the end of one that was cut off, filled up with what came next."""
    outcome = met(tmp_path, keys, Liar(LISTING, sending(GOOD, b"this is no archive at all".ljust(512))))
    assert (outcome.state, outcome.failure) == ("failed", "hostile-data")
    assert {file.state for file in outcome.files} == {"failed"}
    assert "archive" in outcome.reason


def test_a_file_shorter_than_announced_is_not_taken_for_whole(tmp_path: Path, keys: Keys) -> None:
    outcome = met(tmp_path, keys, Liar(LISTING, sending(GOOD, entry(BAD, b"x"))))
    assert outcome.state == "partial"
    assert "1 bytes came instead of 4" in outcome.reason
    landed = host_directory(tmp_path / "run", HostId("1")).rglob("*.json")
    assert [path.name for path in landed] == ["good.json"]


@pytest.mark.parametrize(
    ("n_bytes", "no_listing"),
    [(None, False), (None, True), (1024 + 514, False)],
    ids=["no end", "no listing", "in the middle"],
)
def test_an_archive_that_ends_early_is_never_complete(
    tmp_path: Path, keys: Keys, n_bytes: int | None, no_listing: bool
) -> None:
    def fetch(channel: paramiko.Channel, marker: bytes) -> None:
        tail = bytes(1024) + marker + b"\0status 0\0" if no_listing else b""
        channel.sendall((GOOD + entry(BAD))[:n_bytes] + tail)

    outcome = met(tmp_path, keys, Liar(LISTING, fetch))
    assert outcome.state == "partial"
    assert "ended early" in outcome.reason


@pytest.mark.parametrize(
    "name", [b"../../../outside/victim", b"/etc/passwd", b"a_ascend_pt//x", b"a_ascend_pt/" + b"n" * 256]
)
def test_evil_names_in_the_listing_are_left_on_the_host(tmp_path: Path, keys: Keys, name: bytes) -> None:
    listing = b"f 4 1.0 a_ascend_pt/good.json\0f 4 1.0 " + name + b"\0"
    liar = Liar(listing, sending(GOOD, listing=listing))
    outcome = met(tmp_path, keys, liar, options=replace(FULL, what=("*",)))
    assert [file.state for file in outcome.files] == ["stored", "failed"]
    assert (outcome.state, outcome.failure) == ("partial", "left-out")


@pytest.mark.parametrize(
    "answer",
    [
        *(b"clock nan\0", b"clock 1e999\0", b"clock 0x10\0", b"clock " + b"9" * 400 + b"\0"),
        *(b"free fs 1 2 " + b"9" * 5000 + b" 1% /\0", "free fs 1 2 ٣ 1% /\0".encode()),
    ],
)
def test_a_number_that_is_none_costs_nothing_but_itself(tmp_path: Path, keys: Keys, answer: bytes) -> None:
    class Odd(Liar):
        def answer(self, channel: paramiko.Channel, marker: bytes) -> None:
            channel.sendall(answer)
            super().answer(channel, marker)

    outcome = met(tmp_path, keys, Odd(LISTING, sending(GOOD, entry(BAD))))
    assert outcome.state == "complete", outcome.reason
    assert outcome.clock_offset_ms is None
    json.loads((tmp_path / "run" / "manifest.json").read_text(), parse_constant=pytest.fail)


@pytest.mark.parametrize("end", [b"end " + b"9" * 5000, b"end \xb2", b"f " + b"9" * 30 + b" 1.0 x"])
def test_a_listing_with_a_number_that_is_none_is_refused(tmp_path: Path, keys: Keys, end: bytes) -> None:
    outcome = met(tmp_path, keys, Liar(LISTING + end + b"\0", nothing))
    assert (outcome.state, outcome.failure) == ("failed", "hostile-data")


def test_a_file_where_a_directory_must_be_costs_only_itself(tmp_path: Path, keys: Keys) -> None:
    listing = b"f 1 1.0 a_ascend_pt/x\0f 1 1.0 a_ascend_pt/x/y\0f 1 1.0 a_ascend_pt/z\0"
    files = [entry(f"./a_ascend_pt/{name}", b"1") for name in ("x", "x/y", "z")]
    outcome = met(tmp_path, keys, Liar(listing, sending(*files, listing=listing)))
    assert sorted(file.state for file in outcome.files) == ["failed", "stored", "stored"]
    assert "cannot be stored under its name" in outcome.reason


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

        def open(self, path: str, flags: int, attr: paramiko.SFTPAttributes) -> paramiko.SFTPHandle | int:
            assert kind != 0o120777, "a link was opened"
            return super().open(path, flags, attr)

    return Evil


@pytest.mark.parametrize("name", ["../victim", "/etc/passwd", "", "a/b", "n" * 300, "a\0b"])
def test_evil_sftp_names_quarantine_the_host(tmp_path: Path, keys: Keys, name: str) -> None:
    outcome = met(tmp_path, keys, None, evil_files(["x.csv", name]))
    assert outcome.state == "failed"
    assert "the host lists" in outcome.reason


def test_sftp_directories_without_end_are_cut_off(tmp_path: Path, keys: Keys) -> None:
    outcome = met(tmp_path, keys, None, evil_files(["deeper"], kind=0o040755))
    assert outcome.reason == "directories are nested deeper than 40"


def test_sftp_links_are_told_and_never_opened(tmp_path: Path, keys: Keys) -> None:
    outcome = met(tmp_path, keys, None, evil_files(["step_trace_raw_0.csv"], kind=0o120777))
    assert (outcome.state, outcome.files.n_stored) == ("failed", 0)


def test_a_liar_among_honest_hosts_costs_them_nothing(host: OneHost, keys: Keys, own_lab: SshLab) -> None:
    with ParamikoServer(
        keys[0],
        authorized_keys=Path(f"{host.spec.identity_file}.pub").read_text(),
        execute=Liar(LISTING, lambda channel, marker: channel.sendall(entry("../x"))),
    ) as liar:
        server = SshServer(liar.address, liar.port, host.run, 0)
        own_lab.trust(liar.address, liar.port, keys[0])
        place = {"address": server.address, "port": server.port, "known_hosts": str(own_lab.known_hosts)}
        lying = replace(host.having(**place).spec, host=HostId("2"), server_id="server-2")  # type: ignore[arg-type]
        honest = replace(host.spec, host=HostId("3"), server_id="server-3")  # type: ignore[arg-type]
        hosts = collected([host.spec, lying, honest], host.run, QUICK).hosts
    assert [one.state for one in hosts] == ["complete", "failed", "complete"]


def test_a_late_answer_does_not_make_a_clock_wrong(tmp_path: Path, keys: Keys) -> None:
    """As with forty hosts that answer at once: the first answer lay around before it was looked at."""
    late_s = 3.0

    class Late(Liar):
        def answer(self, channel: paramiko.Channel, marker: bytes) -> None:
            told = b"clock %.9f\0" % time.time()
            time.sleep(late_s)
            channel.sendall(told)
            super().answer(channel, marker)

        def tell_clock(self, channel: paramiko.Channel) -> None:
            channel.sendall(b"clock %.9f\0" % time.time())

    outcome = met(tmp_path, keys, Late(LISTING, sending(GOOD, entry(BAD))))
    assert outcome.state == "complete", outcome.reason
    assert outcome.clock_offset_ms is not None
    assert outcome.clock_uncertainty_ms is not None
    # The clock of a virtual machine may itself be set by some µs between two readings.
    assert abs(outcome.clock_offset_ms) <= outcome.clock_uncertainty_ms + 1.0
    assert outcome.clock_uncertainty_ms < 1000 * late_s / 2 - 100
