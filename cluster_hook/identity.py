"""Whose rights a job's data are read with: never root's, unless the job is root's."""

from __future__ import annotations

import os
import pwd
from dataclasses import dataclass

from cluster_run.errors import InputError


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
        uid: whose files they are; None where nobody knows.

    Raises:
        InputError: we are root, and they are not root's.
    """
    if os.geteuid() == 0 and uid != 0:
        whose = "nobody knows whose they are" if uid is None else f"they are user {uid}'s"
        raise InputError(f"root does not read a job's data: {whose}", "run it as the user who may read them")
