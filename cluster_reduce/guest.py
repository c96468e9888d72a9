"""Limits on what this program takes of the host, and conditions under which it does not run."""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Iterator


def holders(devices: str, processes: str = "/proc") -> Iterator[tuple[int, str]]:
    """Yield number and device of each process that has a device open whose path `devices` matches.

    Of other users' processes only root learns what they have open.
    """
    pattern = re.compile(devices)
    for name in os.listdir(processes):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        opened = os.path.join(processes, name, "fd")
        try:
            links = [os.readlink(os.path.join(opened, number)) for number in os.listdir(opened)]
        except OSError:
            continue
        for link in links:
            if pattern.fullmatch(link):
                yield int(name), link
                break


def n_workers() -> int:
    """Return half of the processors that this program may use, at least one."""
    return max(1, len(os.sched_getaffinity(0)) // 2)


def limit_memory(n_bytes: int) -> None:
    """Let this process take no more memory than that, and leave no image of it behind."""
    resource.setrlimit(resource.RLIMIT_AS, (n_bytes, n_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
