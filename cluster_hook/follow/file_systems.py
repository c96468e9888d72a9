"""Whether a path lies on a file system that several hosts share, as Linux says it in /proc/self/mountinfo."""

from __future__ import annotations

import os
import re
from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")
#: File systems of one host's own disks and memory. Those of networks have many names, sites have their own.
_LOCAL = frozenset((
    "ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "jfs", "reiserfs", "vfat", "exfat",
    "tmpfs", "ramfs", "devtmpfs", "overlay", "squashfs", "iso9660", "rootfs", "autofs",
    "proc", "sysfs", "cgroup", "cgroup2", "devpts", "mqueue", "hugetlbfs", "securityfs", "debugfs",
))  # fmt: skip


def is_shared_between_hosts(path: Path) -> bool:
    """Whether `path`, or where it would be made, lies on a file system of the network."""
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return False
    kind = file_system_of(os.path.realpath(path), mounts)
    return kind != "" and kind not in _LOCAL


def file_system_of(path: str, mounts: str) -> str:
    """Return the kind of file system at a real path; empty where the table of mounts does not say.

    A line of the table: `36 35 0:32 / /home rw,noatime shared:1 - nfs4 server:/home rw,vers=4.2`.
    """
    longest, kind = "", ""
    for line in mounts.splitlines():
        mount, dash, file_system = line.partition(" - ")
        fields = mount.split(" ")
        if not dash or len(fields) < 5:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), fields[4])
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        # Of two at one place the later one lies on top.
        if inside and len(point) >= len(longest):
            longest, kind = point, file_system.partition(" ")[0]
    return kind
