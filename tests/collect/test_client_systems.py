"""What the collector asks of the machine that it runs on: nothing that only Linux has, but in guarded places.

Calls are held by `make lint`, which has mypy look at the collector as on macOS. Here: files of Linux.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
#: Where a path of Linux may stand, and why that does no harm elsewhere.
GUARDED = {
    "cluster_collect/store/writer.py": "without the mark of a boot, files that were cut off begin anew",
    "cluster_collect/remote/reader.py": "it runs on the host, which says so where it cannot",
    "cluster_collect/live": "paths of the hosts, which are Linux",
}
_OF_LINUX = ("/proc/", "/sys/", "/dev/shm")


def _names_linux(file: Path) -> bool:
    return any(
        isinstance(node, ast.Constant) and isinstance(node.value, str) and path in node.value
        for node in ast.walk(ast.parse(file.read_text()))
        for path in _OF_LINUX
    )


@pytest.mark.slow
def test_paths_of_linux_stand_in_guarded_places_only() -> None:
    files = [
        file
        for package in ("cluster_collect", "cluster_run")
        for file in (REPOSITORY / package).rglob("*.py")
    ]
    named = {file.relative_to(REPOSITORY).as_posix() for file in files if _names_linux(file)}
    live = "cluster_collect/live"
    assert {live if name.startswith(f"{live}/") else name for name in named} == set(GUARDED)


def test_lint_looks_at_the_collector_as_on_macos() -> None:
    (of_darwin,) = re.findall(r"^DARWIN := .*\\\n.*$", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    assert "--platform darwin" in of_darwin
    assert "-p cluster_collect -p cluster_run" in of_darwin
