"""Commands that tests run to their end, and programs that they write."""

from __future__ import annotations

import io
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, TypeVar

import pytest

_T = TypeVar("_T")
#: A test may take three minutes, with what it sets up. What hangs is named well before that.
HANGS_S = 120.0
_LOOKS_S = 0.02


def ran(
    argv: Sequence[str | os.PathLike[str]], *, check: bool = False, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command, whatever its end; what it says is kept as text."""
    settings = {"capture_output": True, "text": True, "timeout": HANGS_S}
    return subprocess.run(argv, check=check, **{**settings, **options})


def ran_here(
    main: Callable[[Sequence[str]], int], argv: Sequence[str], env: Mapping[str, str], cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the `main` of a command in this process: to start another one takes longer than most commands."""
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2)]
    with pytest.MonkeyPatch.context() as patched, redirect_stdout(streams[0]), redirect_stderr(streams[1]):
        for name, value in env.items():
            patched.setenv(name, value)
        patched.chdir(cwd or Path.cwd())
        try:
            code = main(argv)
        except SystemExit as end:
            code = int(end.code or 0)
    out, err = (stream.buffer.getvalue().decode() for stream in streams)  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(argv, int(code), out, err)


def wait_until(
    holds: Callable[[], _T],
    process: subprocess.Popen[Any] | None = None,
    otherwise: Callable[[], object] = lambda: "it did not come to pass",
) -> _T:
    """Wait until something holds, and return it; a process that ends meanwhile has failed, and says why."""
    end_s = time.monotonic() + HANGS_S
    while not (found := holds()):
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < end_s, otherwise()
        time.sleep(_LOOKS_S)
    return found


def ended(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Wait until a process has ended; return what it said on stdout and on stderr."""
    return process.communicate(timeout=HANGS_S)


def program(path: Path, script: str) -> Path:
    """Write a script of the shell that can be run; what stands there before is replaced."""
    path.unlink(missing_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path
