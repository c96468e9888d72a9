"""Which files are timelines by iteration, told by their names: importing what reads them takes longer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

#: Role of these files: `iteration/msprof/2/7` is the seventh iteration of model 2.
ROLE = "iteration"
#: Kind, model and iteration.
NAME = re.compile(r"^(msprof|hccl|step_trace)_\d+_(\d+)_(\d+)\.json$")


def role_of(path: Path) -> str | None:
    """Return the role of one of these files by its name; None for any other."""
    match = NAME.match(path.name)
    return "/".join((ROLE, match.group(1), match.group(2), str(int(match.group(3))))) if match else None


def is_iteration_export(files: Mapping[str, object]) -> bool:
    """Return whether a rank's files are such timelines."""
    return any(role.startswith(f"{ROLE}/") for role in files)
