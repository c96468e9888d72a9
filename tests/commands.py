"""Commands that tests run to their end, and programs that they write."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

#: A test may take three minutes; a command that hangs is named before that.
_HANGS_S = 170.0


def ran(
    argv: Sequence[str | os.PathLike[str]], *, check: bool = False, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command, whatever its end; what it says is kept as text."""
    settings = {"capture_output": True, "text": True, "timeout": _HANGS_S}
    return subprocess.run(argv, check=check, **{**settings, **options})


def program(path: Path, script: str) -> Path:
    """Write a script of the shell that can be run; what stands there before is replaced."""
    path.unlink(missing_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path
