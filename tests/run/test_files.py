"""Files are there whole or not at all."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from cluster_run.files import write_bytes_whole, write_text_whole, written_whole


def test_the_file_appears_when_the_block_ends_and_not_before(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file.json"
    with written_whole(path) as stream:
        stream.write(b"half")
        stream.flush()
        assert not path.exists()
    assert path.read_bytes() == b"half"
    assert os.listdir(path.parent) == ["file.json"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_after_an_error_the_old_file_stays_and_no_other_is_left(
    tmp_path: Path, error: type[BaseException]
) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def write_half_and_fail() -> None:
        with written_whole(path) as stream:
            stream.write(b"half")
            raise error

    with pytest.raises(error):
        write_half_and_fail()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_name_of_255_bytes_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 127 + "x")
    write_text_whole(path, "ü")
    assert path.read_bytes() == "ü".encode()


def test_the_mode_is_what_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write_bytes_whole(tmp_path / "private", b"")
        os.umask(0o022)
        write_bytes_whole(tmp_path / "public", b"")
    finally:
        os.umask(before)
    assert (tmp_path / "private").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "public").stat().st_mode & 0o777 == 0o644


def test_a_directory_that_cannot_be_made_is_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"), written_whole(tmp_path / "file" / "below"):
        pass


def test_a_disk_that_takes_no_more_is_told_with_the_file_that_was_written(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        with pytest.raises(OSError, match="too large") as told:
            write_text_whole(tmp_path / "done.json", "x" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert told.value.filename == str(tmp_path / "done.json")
    assert list(tmp_path.iterdir()) == []
