"""A directory of somebody's other files is told before anything is put beside them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_collect.cli import main
from cluster_collect.store.run_files import strangers_warning


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
