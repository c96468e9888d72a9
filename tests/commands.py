"""Commands that tests run to their end, and programs that they write."""

from __future__ import annotations

import io
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

#: A test may take three minutes, with what it sets up. A command that hangs is named well before that.
_HANGS_S = 120.0


def ran(
    argv: Sequence[str | os.PathLike[str]], *, check: bool = False, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command, whatever its end; what it says is kept as text."""
    settings = {"capture_output": True, "text": True, "timeout": _HANGS_S}
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


def program(path: Path, script: str) -> Path:
    """Write a script of the shell that can be run; what stands there before is replaced."""
    path.unlink(missing_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path
