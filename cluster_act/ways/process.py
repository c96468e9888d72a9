"""Runs the site's commands: bounded, without a shell, their errors made ours."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

from cluster_act.values import RefusedError

_DEADLINE_S = 60.0


def run(argv: Sequence[str], *, stdin: str = "", environment: Mapping[str, str] | None = None) -> str:
    """Run a command to its end and return what it printed.

    Raises:
        RefusedError: it cannot be started, fails, or does not end.
    """
    try:
        ended = subprocess.run(  # noqa: S603 - the site's own commands, never a shell's
            list(argv), input=stdin, capture_output=True, text=True, errors="replace",
            timeout=_DEADLINE_S, check=False, env={**os.environ, **(environment or {})},
        )  # fmt: skip
    except (OSError, ValueError) as error:
        raise RefusedError(f"{argv[0]} cannot be started: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise RefusedError(f"{argv[0]} did not end within {_DEADLINE_S:g} s") from error
    if ended.returncode != 0:
        said = (ended.stderr.strip() or ended.stdout.strip() or "it said nothing").splitlines()[-1]
        raise RefusedError(f"{argv[0]} ended with {ended.returncode}: {said}")
    return ended.stdout
