"""The output folder: one call's output as a whole, whatever other calls do, and whoever dies."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster_analysis import output_folder
from cluster_analysis.output_folder import check_output_folder, new_output
from cluster_run.errors import InputError

NAMES = ("first.txt", "tables", "report.html", "findings.json")
OWNED = tuple((name,) for name in NAMES)


def write(folder: Path, who: str, then: Callable[[], object] = lambda: None) -> None:
    with new_output(folder, OWNED) as staging:
        (staging / "tables").mkdir()
        (staging / "tables" / "one").write_text(who)
        for name in NAMES:
            if name != "tables":
                (staging / name).write_text(who)
        then()


def written(folder: Path) -> dict[str, str]:
    """Return what is there, hidden names too."""
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def all_by(who: str) -> dict[str, str]:
    return {"first.txt": who, "tables/one": who, "report.html": who, "findings.json": who}


def test_of_calls_at_once_the_output_is_that_of_one(tmp_path: Path) -> None:
    failed: list[Exception] = []
    for n in range(60):
        folder = tmp_path / str(n)
        write(folder, "older")
        together = threading.Barrier(3)

        def one(who: str, folder: Path = folder, together: threading.Barrier = together) -> None:
            try:
                write(folder, who, together.wait)
            except Exception as error:
                failed.append(error)

        threads = [threading.Thread(target=one, args=(who,)) for who in "ABC"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        assert written(folder) in [all_by(who) for who in "ABC"]


_KILLED = """
import os, signal, sys
from pathlib import Path
from tests.analysis.outputs.test_output_folder import write
renames = int(sys.argv[2])
rename = Path.rename
def counted(path, target):
    global renames
    if not renames:
        os.kill(os.getpid(), signal.SIGKILL)
    renames -= 1
    return rename(path, target)
Path.rename = counted
write(Path(sys.argv[1]), "killed")
"""


def killed_after(renames: int, folder: Path) -> bool:
    """Whether a call that is killed after so many renames was killed at all."""
    command = [sys.executable, "-c", _KILLED, str(folder), str(renames)]
    return subprocess.run(command, check=False, timeout=60).returncode == -signal.SIGKILL


def test_what_a_killed_call_left_is_gone_after_the_next_one(tmp_path: Path) -> None:
    write(tmp_path, "older")
    assert killed_after(0, tmp_path)
    assert len(list(tmp_path.glob(".new-*"))) == 1
    write(tmp_path, "newer")
    assert written(tmp_path) == all_by("newer")


@pytest.mark.many
@pytest.mark.parametrize("renames", [1, 2, 5, 8])
def test_the_older_output_of_a_call_that_was_killed_while_it_renamed_is_put_back(
    tmp_path: Path, renames: int
) -> None:
    write(tmp_path, "older")
    assert killed_after(renames, tmp_path)
    with pytest.raises(RuntimeError), new_output(tmp_path, OWNED):
        raise RuntimeError
    assert written(tmp_path) == all_by("older")


def test_a_living_call_keeps_its_directory_while_others_come_and_go(tmp_path: Path) -> None:
    write(tmp_path, "first", lambda: write(tmp_path, "second"))
    assert written(tmp_path) == all_by("first")


@pytest.mark.parametrize("older", [NAMES, NAMES[:1], ()], ids=["ours", "of another program", "none"])
def test_an_error_while_renaming_leaves_the_older_output_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, older: tuple[str, ...]
) -> None:
    for name in older:
        (tmp_path / name).write_text("older")
    before = written(tmp_path)
    rename = Path.rename

    def fails(path: Path, target: Path) -> Path:
        if path.name == "report.html" and target.parent == tmp_path and path.read_text() == "newer":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(InputError, match="Input/output error") as told:
        write(tmp_path, "newer")
    assert told.value.advice
    assert written(tmp_path) == before


def test_no_file_of_a_directory_is_open_when_it_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NFS keeps a file that is open in its directory, by another name, so that the directory stays."""
    assert killed_after(0, tmp_path)
    held: list[str] = []
    rmtree = shutil.rmtree

    def looks(path: Path, *, ignore_errors: bool) -> None:
        files = [os.readlink(one) for one in Path("/proc/self/fd").iterdir() if one.is_symlink()]
        held.extend(file for file in files if file.startswith(f"{path}/"))
        rmtree(path, ignore_errors=ignore_errors)

    monkeypatch.setattr(shutil, "rmtree", looks)
    write(tmp_path, "newer")
    assert held == []
    assert written(tmp_path) == all_by("newer")


def test_a_file_system_without_locks_is_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(_path: Path, *, wait: bool) -> int | None:
        raise OSError(errno.ENOLCK if wait else errno.ENOSYS, "no locks")

    monkeypatch.setattr(output_folder, "lock_file", no_locks)
    (tmp_path / ".new-other").mkdir()
    write(tmp_path, "newer")
    assert written(tmp_path) == all_by("newer")
    assert (tmp_path / ".new-other").is_dir(), "nobody knows whether its call lives"


def test_a_folder_that_cannot_be_made_is_named_with_what_is_in_its_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    folder = tmp_path / "project" / "reports"
    with pytest.raises(InputError) as told:
        check_output_folder(folder, tmp_path / "run")
    assert told.value.message == f"{folder}: cannot be made: {tmp_path}: cannot be written"
