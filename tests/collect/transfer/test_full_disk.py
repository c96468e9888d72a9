"""A disk of ours that is full, or fills up."""

from __future__ import annotations

import errno
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_collect.faults import DiskFullError, local_error
from cluster_collect.spec import CollectOptions
from cluster_run.ids import HostId
from demo.sshd import SshLab, SshServer
from tests.collect.helpers import (
    COLUMNS,
    FULL,
    OneHost,
    Recorder,
    collected,
    file_of,
    host_tree,
    make_capture,
    no_leftovers,
    spec_for,
    tree,
)
from tests.collect.liar import Liar, entry, met, sending

pytestmark = pytest.mark.slow  # many servers are started


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a small tmpfs: {mounted.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.fixture
def onto(host: OneHost, small_disk: Path) -> OneHost:
    """The host whose run directory is on the small disk."""
    return replace(host, run=small_disk / "run")


def test_a_host_that_does_not_fit_is_named_and_the_others_are_collected(
    lab: SshLab, two_servers: tuple[SshServer, SshServer], small_disk: Path, tmp_path: Path
) -> None:
    for rank in range(4):
        make_capture(tmp_path / "large", rank, size_bytes=4_000_000)
    make_capture(tmp_path / "small")
    specs = [
        spec_for(lab, server, tmp_path / name, number)
        for number, (server, name) in enumerate(zip(two_servers, ("large", "small"), strict=True), 1)
    ]
    large, small = collected(specs, small_disk / "run", FULL).hosts
    assert (large.state, large.failure) == ("failed", "no-room")
    assert "16.1 MB do not fit" in large.reason
    assert small.state == "complete"
    assert host_tree(small_disk / "run", 1) == {}
    assert host_tree(small_disk / "run", 2) == tree(tmp_path / "small")


def test_a_disk_that_keeps_no_room_is_told_of_the_host_and_with_what_stays_free(onto: OneHost) -> None:
    outcome = onto.collect(replace(FULL, min_free_bytes=1 << 30))
    assert (outcome.state, outcome.failure) == ("failed", "no-room")
    assert outcome.reason.endswith("has room for 0 B more (1.1 GB stay free: --min-free)")


def test_a_disk_that_holds_no_more_files_is_told_with_what_shows_it(onto: OneHost, small_disk: Path) -> None:
    make_capture(onto.root, 1, n_more=10)
    subprocess.run(["mount", "-o", "remount,nr_inodes=12", str(small_disk)], check=True)
    with pytest.raises(DiskFullError) as caught:
        onto.collect()
    assert "df -i" in caught.value.advice
    subprocess.run(["mount", "-o", "remount,nr_inodes=1000", str(small_disk)], check=True)
    onto.collect_all()


def test_a_quota_is_not_told_as_a_full_disk() -> None:
    told = local_error(OSError(errno.EDQUOT, "Disk quota exceeded"), "run/a")
    assert isinstance(told, DiskFullError)
    assert told.message == "run/a: your quota on this machine is used up"


def test_a_file_larger_than_the_disk_costs_only_itself(onto: OneHost) -> None:
    """Five terabytes in name, one block on the disk: what a broken preallocation leaves."""
    with (next(onto.root.rglob("device_0")) / "huge.bin").open("wb") as stream:
        stream.truncate(5 << 40)
    outcome = onto.collect()
    assert (outcome.state, outcome.failure) == ("partial", "files-missing")
    assert "5.5 TB do not fit" in file_of(outcome, "huge.bin").reason
    assert {file.state for file in outcome.files if not file.source.endswith("huge.bin")} == {"stored"}


def test_a_host_that_sends_more_than_there_is_room_for_costs_only_itself(
    small_disk: Path, keys: tuple[Path, Path]
) -> None:
    """Its listing says that the files are small; what it sends is not."""
    listing = b"f 1000 1.0 a_ascend_pt/one.json\0f 1000 1.0 a_ascend_pt/two.json\0"
    files = (entry(f"./a_ascend_pt/{name}.json", b"x" * 7_000_000) for name in ("one", "two"))
    (small_disk / "in").mkdir()
    outcome = met(small_disk / "in", keys, Liar(listing, sending(*files, listing=listing)))
    assert (outcome.state, outcome.failure) == ("failed", "no-room")
    assert {file.state for file in outcome.files} == {"failed"}
    assert no_leftovers(small_disk / "in" / "run")


@pytest.mark.parametrize("options", [FULL, COLUMNS], ids=["files", "columns"])
def test_a_disk_that_fills_up_stops_everything_and_a_second_call_goes_on(
    onto: OneHost, small_disk: Path, options: CollectOptions
) -> None:
    make_capture(onto.root, 1, size_bytes=4_000_000, n_more=10)
    ballast = small_disk / "ballast"

    class Filler(Recorder):
        n_bytes_received = 0

        def bytes_received(self, host: HostId, n_bytes: int) -> None:
            self.n_bytes_received += n_bytes
            if self.n_bytes_received > 256 * 1024 and not ballast.exists():
                ballast.write_bytes(bytes(6_000_000))

    first, second = Filler(), Recorder()
    with pytest.raises(DiskFullError, match="no space left") as caught:
        onto.collect(options, first)
    assert "goes on" in caught.value.advice
    assert not (onto.run / "manifest.json").exists()
    assert no_leftovers(onto.run)
    ballast.unlink()
    outcome = onto.collect(options, second)
    assert (outcome.state, outcome.reason) == ("complete", "")
    assert sorted([*first.stored, *second.stored]) == sorted(file.path for file in outcome.files)
