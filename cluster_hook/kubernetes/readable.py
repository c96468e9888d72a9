"""Whether all that a job wrote is there, and the sweep may read it: training containers often run as root."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from cluster_hook.kubernetes.trainingjob import PROFILE_DIR, TrainingJob
from cluster_run.errors import InputError


def is_being_written(
    job: TrainingJob, profiles: Path, now_s: float, settle_s: float, patience_s: float
) -> bool:
    """Return whether it, or a file of it, ended less than `settle_s` ago; files count for `patience_s`."""
    if job.finished_s is not None:
        age_s = now_s - job.finished_s
        if age_s < settle_s or age_s > patience_s:
            return age_s < settle_s
    with contextlib.suppress(InputError):
        for directory, _, names in os.walk(profile_directory(job, profiles).partition("%N")[0]):
            for name in names:
                with contextlib.suppress(OSError):
                    if now_s - os.lstat(os.path.join(directory, name)).st_mtime < settle_s:
                        return True
    return False


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


def refuse_links_out(top: Path, profiles: Path) -> None:
    """Refuse data with links that lead out of the profile volume, to files of the sweep and not of the job.

    Raises:
        InputError: there are such links.
    """
    inside = profiles.resolve()
    for directory, directories, files in os.walk(top):
        for name in (*directories, *files):
            path = Path(directory, name)
            if path.is_symlink() and not path.resolve().is_relative_to(inside):
                raise InputError(
                    f"{path.relative_to(profiles)} is a link that leads out of the profile volume",
                    "write a copy in its place",
                )


def owner_of(directory: str) -> int | None:
    """Return the owner of a directory, or of the nearest existing one above it; None without any."""
    top = Path(directory.partition("%N")[0])
    for one in (top, *top.parents):
        with contextlib.suppress(OSError):
            return one.stat().st_uid
    return None


def profile_directory(job: TrainingJob, profiles: Path) -> str:
    """Return the directory below the profile volume that a job says it wrote to.

    Raises:
        InputError: it says none, or one that leads out of the volume.
    """
    said = job.annotations.get(PROFILE_DIR, "")
    if not said:
        raise InputError(
            f"the job has no annotation {PROFILE_DIR}", "say where below the profile volume it wrote"
        )
    given = Path(said)
    if given.is_absolute() or ".." in given.parts:
        raise InputError(
            f"{PROFILE_DIR} {said!r} is no path below the profile volume",
            "write it relative to the volume, without ..",
        )
    # A link on the volume must not lead out of it, into the pod's own secrets.
    fixed = profiles / said.partition("%N")[0]
    if not fixed.resolve().is_relative_to(profiles.resolve()):
        raise InputError(f"{PROFILE_DIR} is {said!r}, which leads out of the profile volume")
    return str(profiles / given)
