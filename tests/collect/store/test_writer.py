"""What the writer of the run directory needs of this machine."""

from __future__ import annotations

import ctypes
import hashlib
import os
from contextlib import closing
from pathlib import Path

import pytest

from cluster_collect.store.incoming import FileRefusedError
from cluster_collect.store.writer import RunWriter
from tests.collect.store.test_links_in_the_way import stored


def test_a_system_that_cannot_flush_one_disk_flushes_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As macOS: its library knows no syncfs."""
    flushed: list[str] = []
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: object())
    monkeypatch.setattr(os, "sync", lambda: flushed.append("all"))
    RunWriter(tmp_path, min_free_bytes=0).flush_to_disk()
    assert flushed == ["all"]


def test_files_of_many_directories_land_in_their_places_and_few_directories_stay_open(tmp_path: Path) -> None:
    names = [f"{number}/deep/{number % 7}.csv" for number in range(200)]
    n_before = len(os.listdir("/proc/self/fd"))
    with closing(RunWriter(tmp_path, min_free_bytes=0)) as writer:
        for name in (*names, *reversed(names)):
            assert stored(writer, name, name.encode(), 5 * 10**9) == hashlib.sha256(name.encode()).hexdigest()
        assert len(os.listdir("/proc/self/fd")) <= n_before + 64
        writer.close()
        stored(writer, names[0], b"again", 10**9)
    assert len(os.listdir("/proc/self/fd")) == n_before
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert found == set(names)
    assert (tmp_path / names[0]).read_bytes() == b"again"
    assert (tmp_path / names[1]).stat().st_mtime_ns == 5 * 10**9


def test_a_file_that_cannot_have_its_time_leaves_nothing(tmp_path: Path) -> None:
    with closing(RunWriter(tmp_path, min_free_bytes=0)) as writer, pytest.raises(FileRefusedError):
        stored(writer, "deep/a.csv", b"content", 1 << 100)
    assert list((tmp_path / "deep").iterdir()) == []
