"""The dynamic profiler of a released torch-npu wheel, fetched once a machine; nothing of it is kept here.

It is BSD-3 licensed. Its Python files need no NPU, CANN or torch: `rank.py` stands in for what they import.
"""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest

from tests.commands import ran

VERSION = "2.14.0"
_PARTS = ("torch_npu/profiler/", "torch_npu/utils/", "torch_npu/_init/")
#: The wheel is of one Python; the files that are used of it are of any.
_OF_PYTHON = ("--python-version=3.11", "--implementation=cp", "--abi=cp311")


def profiler_package() -> Path:
    """Return the directory of the package `torch_npu`; skip the test where it cannot be had."""
    caches = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    place = caches / "cluster-profiler-tests" / f"torch-npu-{VERSION}"
    place.parent.mkdir(parents=True, exist_ok=True)
    with (place.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # One worker fetches, the others wait.
        if not (place / "torch_npu").is_dir():
            _fetch(place)
    return place / "torch_npu"


def _fetch(place: Path) -> None:
    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        command = [
            *(sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"),
            *("--only-binary=:all:", *_OF_PYTHON, f"--platform=manylinux_2_28_{platform.machine()}"),
            *(f"torch-npu=={VERSION}", "--dest", folder),
        ]
        done = ran(command)
        if done.returncode:
            pytest.skip(f"torch-npu {VERSION} cannot be downloaded here: {done.stderr.strip()[-300:]}")
        with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
            names = [name for name in wheel.namelist() if name.startswith(_PARTS) and name.endswith(".py")]
            wheel.extractall(Path(folder) / "unpacked", names)
        shutil.move(Path(folder) / "unpacked", place)
