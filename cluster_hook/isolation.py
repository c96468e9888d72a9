"""Keeps a job's files and secrets apart: command line, environment and user of the hook's processes.

A job's work directory is its user's: no module may be taken from it. Its process is its user's: no secret may
reach it. Its data are read with its user's rights, never with root's, unless the job is root's. Its results
may be read only by those who may read its profile.
"""

from __future__ import annotations

import os
import pwd
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cluster_run.errors import InputError
from cluster_run.layout import FLEET_VARIABLE

#: Settings of our own, some of them secrets, begin so; no process that reads a job's data gets them.
SETTINGS_PREFIX = "CLUSTER_HOOK_"
#: Variables that another user's process gets: paths of the site's commands and of Slurm, its clock.
_OF_THE_SITE = ("PATH", "SLURM_CONF", "TZ")
#: A job's user gets the fleet's database where it is a file, or a URL that can hold no password.
_WITHOUT_PASSWORD = re.compile(r"(?!.*://).*|[^?@]*://([^:?@]*@)?[^?@]*(\?(?!.*password)[^@]*)?")
_LAUNCHER = Path(__file__).with_name("launch.py")


def our_command(module: str, *arguments: str) -> list[str]:
    """Return the command line that runs a module by this interpreter, apart from its surroundings."""
    return [sys.executable, "-I", str(_LAUNCHER), module, *arguments]


def child_environment(
    extra: Mapping[str, str] | None = None, identity: Identity | None = None
) -> dict[str, str]:
    """Return the environment of a process: ours without our settings, or what another user may have of it.

    `extra` lies on top.
    """
    if identity is None:
        own = {name: value for name, value in os.environ.items() if not name.startswith(SETTINGS_PREFIX)}
        return {**own, **(extra or {})}
    site = {name: os.environ[name] for name in _OF_THE_SITE if os.environ.get(name)}
    fleet = os.environ.get(FLEET_VARIABLE, "")
    if fleet and _WITHOUT_PASSWORD.fullmatch(fleet):
        site[FLEET_VARIABLE] = fleet
    user = {"HOME": identity.home, "USER": identity.name, "LOGNAME": identity.name, "LANG": "C.UTF-8"}
    return {"PATH": os.defpath, **site, **user, **(extra or {})}


def our_settings() -> dict[str, str]:
    """Return our own settings of the environment, for a post-job that reads them when its turn comes."""
    return {name: value for name, value in os.environ.items() if name.startswith(SETTINGS_PREFIX)}


@dataclass(frozen=True)
class Identity:
    """The user in whose name a command runs; only root can give one."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str
    name: str


def identity_of(uid: int) -> Identity | None:
    """Return the user that reads the data of user `uid`; None where that is already us.

    Raises:
        InputError: the user is unknown here, or we are neither that user nor root.
    """
    if uid == os.geteuid():
        return None
    if os.geteuid() != 0:
        raise InputError(
            f"the job belongs to user {uid}, and this runs as user {os.geteuid()}", "run it as root"
        )
    try:
        user = pwd.getpwuid(uid)
    except KeyError as error:
        raise InputError(f"user {uid} of the job is not known on this host") from error
    # Asks for the groups of this one user: many sites do not let all groups be listed.
    groups = tuple(sorted(set(os.getgrouplist(user.pw_name, user.pw_gid))))
    return Identity(user.pw_uid, user.pw_gid, groups, user.pw_dir, user.pw_name)


def refuse_as_root(uid: int | None) -> None:
    """Refuse to read another user's job's data as root, who could be led by them to files of root's.

    Args:
        uid: whose files they are; None if unknown.

    Raises:
        InputError: we are root, and they are not root's.
    """
    if os.geteuid() == 0 and uid != 0:
        whose = "nobody knows whose they are" if uid is None else f"they are user {uid}'s"
        raise InputError(f"root does not read a job's data: {whose}", "run it as the user who may read them")


@contextmanager
def no_wider_than(profile: Path, results: Path) -> Iterator[None]:
    """While the block runs, what is made in `results` is no wider than the directory `profile`.

    Others have no rights to it where they may not pass a directory above it. Its group's rights count
    where the results get the same group.
    """
    narrow = 0
    try:
        status = profile.stat()
        narrow = ~status.st_mode & 0o777
        narrow |= 0o007 if any(not one.stat().st_mode & 0o001 for one in profile.resolve().parents) else 0
        narrow |= 0o070 if status.st_gid != _group_below(results) else 0
    except OSError:
        # Not visible from here: only its user surely has the right.
        narrow = 0o077
    before = os.umask(0o077)
    os.umask(before | (narrow & 0o077))
    try:
        yield
    finally:
        os.umask(before)


def _group_below(results: Path) -> int:
    """Return the group that new files at `results` get: a directory above may pass its own on."""
    there = next(one for one in (results, *results.absolute().parents) if one.exists())
    status = there.stat()
    return status.st_gid if status.st_mode & 0o2000 else os.getegid()
