"""What the command lines of all commands have in common."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.commands import ran


@pytest.mark.parametrize(
    ("module", "argv"),
    [
        ("cluster_analysis", [""]),
        ("cluster_analysis", ["run", "--output", ""]),
        ("cluster_analysis", ["run", "--baseline", ""]),
        ("cluster_collect", ["--inventory", "hosts.yaml", "--output", ""]),
        ("cluster_collect", ["--inventory", ""]),
        ("cluster_simulate", [""]),
        ("cluster_hook", ["drain", "--spool", ""]),
    ],
)
def test_an_empty_path_is_wrong_usage_and_never_the_directory_one_is_in(
    module: str, argv: list[str], tmp_path: Path
) -> None:
    ended = ran([sys.executable, "-m", module, *argv], cwd=tmp_path)
    assert ended.returncode == 2
    assert ended.stderr.endswith("an empty path: is a variable not set?\n")
    assert not list(tmp_path.iterdir())
