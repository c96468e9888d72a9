"""What the writer needs of this machine, and of the run directory: no files of somebody else."""

from __future__ import annotations

import ctypes
import hashlib
import os
from contextlib import closing
from pathlib import Path

import pytest

from cluster_collect.cli import main
from cluster_collect.store.run_files import flush_to_disk, strangers_warning
from cluster_collect.store.writer import FileRefusedError, RunWriter
from tests.collect.store.test_links_in_the_way import stored


def test_a_system_that_cannot_flush_one_disk_flushes_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As macOS: its library knows no syncfs."""
    flushed: list[str] = []
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: object())
    monkeypatch.setattr(os, "sync", lambda: flushed.append("all"))
    flush_to_disk(tmp_path)
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


def made(root: Path, *names: str) -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    return root


def test_other_files_are_told_and_the_first_of_them_named(tmp_path: Path) -> None:
    text = strangers_warning(made(tmp_path, "a.txt", "b/c", "d\x1b[2J", "e"))
    assert text.startswith(f"{tmp_path} is no run directory and holds other files (a.txt, b, d")
    assert ", …" in text
    assert text.isprintable()


@pytest.mark.parametrize(
    "names",
    [
        (),
        ("manifest.json", "notes.txt"),
        ("cluster_profiler/1/profiler/x.json", "a.txt"),
        (".cluster-collect.journal", "a.txt"),
        ("host_ips_mapping.txt", "hccl.json"),
        (".cluster-collect.lock",),
    ],
)
def test_nothing_is_said_of_run_directories_and_empty_ones(tmp_path: Path, names: tuple[str, ...]) -> None:
    assert strangers_warning(made(tmp_path, *names)) == ""
    assert strangers_warning(tmp_path / "not there") == ""


def test_the_command_warns_and_keeps_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = made(tmp_path / "host", "profiler/step_trace_raw_0_detail_time.csv")
    (tmp_path / "hosts.yaml").write_text(f"version: 1\nhosts:\n  - local: {root}\n    server_id: a\n")
    run = made(tmp_path / "home", "thesis.tex")
    assert main(["--inventory", str(tmp_path / "hosts.yaml"), "--output", str(run)]) == 0
    assert f"warning: {run} is no run directory and holds other files (thesis.tex)" in capsys.readouterr().err
    assert (run / "thesis.tex").read_text() == "x"
    assert main(["--inventory", str(tmp_path / "hosts.yaml"), "--output", str(run)]) == 0
    assert "warning" not in capsys.readouterr().err
