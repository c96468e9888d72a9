"""A disk of ours that is full, or fills up."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_collect.faults import DiskFullError
from cluster_run.ids import HostId
from demo.sshd import SshLab, SshServer
from tests.collect.helpers import (
    FULL,
    Recorder,
    collected,
    host_tree,
    make_capture,
    no_leftovers,
    only_host,
    spec_for,
    tree,
)

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


def test_what_does_not_fit_is_refused_before_anything_is_written(
    lab: SshLab, server: SshServer, small_disk: Path, tmp_path: Path
) -> None:
    make_capture(tmp_path / "host", size_bytes=20_000_000)
    with pytest.raises(DiskFullError, match="7 MiB free, 19 MiB needed"):
        collected(spec_for(lab, server, tmp_path / "host"), small_disk / "run", FULL)
    assert host_tree(small_disk / "run") == {}


def test_a_disk_that_fills_up_stops_everything_and_a_second_call_goes_on(
    lab: SshLab, server: SshServer, small_disk: Path, tmp_path: Path
) -> None:
    make_capture(tmp_path / "host", size_bytes=4_000_000, n_more=10)
    ballast = small_disk / "ballast"

    class Filler(Recorder):
        def bytes_received(self, host: HostId, n_bytes: int) -> None:
            if not ballast.exists():
                ballast.write_bytes(bytes(6_000_000))

    spec = spec_for(lab, server, tmp_path / "host")
    with pytest.raises(DiskFullError, match="no space left") as caught:
        collected(spec, small_disk / "run", FULL, Filler())
    assert "goes on" in caught.value.advice
    assert not (small_disk / "run" / "manifest.json").exists()
    assert no_leftovers(small_disk / "run")
    ballast.unlink()
    assert only_host(collected(spec, small_disk / "run", FULL)).state == "complete"
    assert host_tree(small_disk / "run") == tree(tmp_path / "host")
