"""Whether the sweep may read what a job wrote: training containers often run as root and write 0750."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def why_unreadable(top: Path) -> str:
    """Return what below `top` this process cannot read, and what to do; empty where it can read all."""
    closed: list[Path] = []
    pending = [top]
    while pending:
        directory = pending.pop()
        if not os.access(directory, os.R_OK | os.X_OK):
            closed.append(directory)
            continue
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(Path(entry.path))
                elif entry.is_file(follow_symlinks=False) and not os.access(entry.path, os.R_OK):
                    closed.append(Path(entry.path))
    if not closed:
        return ""
    first = min(closed)
    status = first.lstat()
    return (
        f"user {os.getuid()} cannot read {len(closed)} of its files and directories, "
        f"{first.relative_to(top.parent)} first (user {status.st_uid}, group {status.st_gid}, "
        f"mode {stat.S_IMODE(status.st_mode):04o}). Let the job write with umask 022, or with umask 027 and "
        "set supplementalGroups of the sweep to that group. For what is there: chmod -R a+rX"
    )
