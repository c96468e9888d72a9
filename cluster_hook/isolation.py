"""Command line and environment of the hook's processes.

A job's work directory is its user's: no module may be taken from it. Its process is its user's: no secret may
reach it.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from cluster_hook.identity import Identity
from cluster_run.layout import FLEET_VARIABLE

#: Settings of our own, some of them secrets, begin so; no process that reads a job's data gets them.
SETTINGS_PREFIX = "CLUSTER_HOOK_"
#: Variables that another user's process gets: paths of the site's commands and of Slurm, its clock.
_OF_THE_SITE = ("PATH", "SLURM_CONF", "TZ")
#: A job's user gets the fleet's database where no password is in its URL.
_PASSWORD = re.compile(r"://[^/@]*:[^/@]*@")
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
    if fleet and not _PASSWORD.search(fleet):
        site[FLEET_VARIABLE] = fleet
    user = {"HOME": identity.home, "USER": identity.name, "LOGNAME": identity.name, "LANG": "C.UTF-8"}
    return {"PATH": os.defpath, **site, **user, **(extra or {})}


def our_settings() -> dict[str, str]:
    """Return our own settings of the environment, for a post-job that reads them when its turn comes."""
    return {name: value for name, value in os.environ.items() if name.startswith(SETTINGS_PREFIX)}
