"""An interpreter that every user can run, with the hook and all it needs; ours may lie in somebody's home."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.commands import HANGS_S, ran

NOBODY = 65534
_REPOSITORY = Path(__file__).parents[2]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can work in another user's name")


@contextmanager
def public_directory() -> Iterator[Path]:
    """Make a directory below which every user can read; pytest's own are for one user only."""
    root = Path(tempfile.mkdtemp(prefix="cluster-hook-test-"))
    root.chmod(0o755)
    try:
        yield root
    finally:
        shutil.rmtree(root, ignore_errors=True)


def make_public_python(root: Path) -> Path:
    """Make an environment below `root`; return its interpreter. What others wrote is what we have of it."""
    system_python = Path("/usr/bin/python3")
    if not system_python.exists():
        pytest.skip("there is no /usr/bin/python3 that every user can run")
    subprocess.run([system_python, "-m", "venv", "--without-pip", root], check=True, timeout=HANGS_S)
    (packages,) = root.glob("lib/python*/site-packages")
    for package in _REPOSITORY.glob("cluster_*"):
        # With what is compiled of it: other users may not write that down, and would compile at each start.
        shutil.copytree(package, packages / package.name)
    (packages / "needed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = root / "bin" / "python"
    as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    tried = ran(
        [*(as_nobody if os.geteuid() == 0 else []), python, "-I", "-c", "import numpy, pyarrow, msgspec"],
        cwd="/",
        env={"PATH": os.defpath},
    )
    if tried.returncode != 0:
        pytest.skip(f"other users cannot run what is installed for {sys.executable}: {tried.stderr[-200:]}")
    return python
