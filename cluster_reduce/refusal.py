"""When the reader does no work on a host: for root, and while a process uses its devices."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any


def why_refused(settings: dict[str, Any]) -> str:
    """Return why this host does no such work; empty where it does."""
    if os.geteuid() == 0 and not settings["as_root"]:
        return "the login is root: --columns-as-root allows it"
    if not settings["while_running"]:
        for process, device in _holders(settings["devices"]):
            return f"process {process} uses {device}: --while-running allows it"
    return ""


def _holders(devices: str) -> Iterator[tuple[int, str]]:
    """Yield number and device of each process that has a device open whose path `devices` matches.

    Of other users' processes only root learns what they have open.
    """
    pattern = re.compile(devices)
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        opened = f"/proc/{name}/fd"
        try:
            links = [os.readlink(os.path.join(opened, number)) for number in os.listdir(opened)]
        except OSError:
            continue
        for link in links:
            if pattern.fullmatch(link):
                yield int(name), link
                break
