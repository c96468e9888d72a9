"""Recognise timelines by their names, without the slow import of their reader."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

#: Role of a timeline of a whole capture; its further slices are `prof_timeline/1` and so on.
TIMELINE = "prof_timeline"
_SLICE = re.compile(r"^msprof_slice_(\d{1,9})_")
#: Role of timelines by iteration: `iteration/msprof/2/7` is the seventh iteration of model 2.
ROLE = "iteration"
#: Kind, model and iteration.
NAME = re.compile(r"^(msprof|hccl|step_trace)_\d+_(\d+)_(\d+)\.json$")


def role_of(path: Path) -> str | None:
    """Return the role of a timeline by iteration by its name; None for any other file."""
    match = NAME.match(path.name)
    return "/".join((ROLE, match.group(1), match.group(2), str(int(match.group(3))))) if match else None


def is_iteration_export(files: Mapping[str, object]) -> bool:
    """Return whether a rank's files are timelines by iteration."""
    return any(role.startswith(f"{ROLE}/") for role in files)


def slice_number(path: Path) -> int:
    """Return which slice of a timeline a file is; -1 for a whole timeline."""
    match = _SLICE.match(path.name)
    return int(match.group(1)) if match else -1
