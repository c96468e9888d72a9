"""Which processes of this host wait for a capture, and which share a memory file."""

from __future__ import annotations

import contextlib
import os
import re
from typing import Any

#: Names of dynamic profilers' memory files: torch_npu's, and MindSpore's.
_MEMORY = re.compile(
    rb"^\S+ \S+ \S+ (\S+) (\d+) +(\S*/(Dynamic(?:ProfileNpu|Profile)Shm\d{10}))( \(deleted\))?$", re.M
)
_MEMORY_NAME = re.compile(r"^Dynamic(?:ProfileNpu|Profile)Shm\d{10}$")
#: Variables that identify the jobs of a host, and how each was started. No other variable is sent.
_NAMES = (
    "RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "SLURM_JOB_ID", "TORCHELASTIC_RUN_ID",
    "RANK_ID", "RANK_SIZE", "MS_SCHED_HOST", "MS_SCHED_PORT", "PROF_CONFIG_PATH",
    "MSMONITOR_USE_DAEMON", "KINETO_USE_DAEMON", "VLLM_TORCH_PROFILER_DIR",
)  # fmt: skip
_MAX_CMDLINE = 4096
#: Where memory files are, and locks: of this host alone, and gone with its next start.
SHARED = "/dev/shm"  # noqa: S108


def look() -> dict[str, Any]:
    """Return processes that map a profiler's memory file, servers of vLLM, and unused memory files."""
    found: list[dict[str, Any]] = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            one = _process(int(name))
        except (OSError, ValueError, IndexError):
            continue  # it is another user's, or has ended meanwhile
        else:
            if one is not None:
                found.append(one)
    return {
        "uid": os.geteuid(),
        "processes": found,
        "memory": _memory_files(),
    }


def _process(pid: int) -> dict[str, Any] | None:
    at = f"/proc/{pid}/"
    cmdline = _read(at + "cmdline")[:_MAX_CMDLINE].split(b"\0")
    if not cmdline[0]:
        return None  # a thread of the kernel, or one that has ended
    mapped = _MEMORY.search(_read(at + "maps"))
    if mapped is None and not _serves_vllm(cmdline):
        return None
    status = dict(
        line.split(":\t", 1)
        for line in _read(at + "status").decode(errors="replace").splitlines()
        if ":\t" in line
    )
    fields = _read(at + "stat").rpartition(b")")[2].split()
    started_s = _booted_s() + int(fields[19]) / os.sysconf("SC_CLK_TCK")
    environment = dict(
        entry.split("=", 1)
        for entry in _read(at + "environ").decode(errors="surrogateescape").split("\0")
        if entry.partition("=")[0] in _NAMES
    )
    root = "" if os.readlink(at + "ns/mnt") == os.readlink("/proc/self/ns/mnt") else at + "root"
    one = {
        "pid": pid,
        "parent": int(fields[1]),
        "inner_pid": int(status.get("NSpid", str(pid)).split()[-1]),
        "name": status["Name"].strip(),
        "started_s": started_s,
        "environment": environment,
        "directory": os.readlink(at + "cwd"),
        "command": [word.decode(errors="replace") for word in cmdline if word],
        "root": root,
    }
    if mapped is not None:
        device, inode, _, name, deleted = mapped.groups()
        memory: dict[str, Any] = {
            "id": (device + b":" + inode).decode(),
            "name": name.decode(),
            "is_deleted": bool(deleted),
            "made_s": None,
        }
        one["memory"] = memory
        with contextlib.suppress(OSError):  # it was removed, or is where we may not look
            memory["made_s"] = os.stat(f"{root}{SHARED}/{name.decode()}").st_ctime
    return one


def _serves_vllm(cmdline: list[bytes]) -> bool:
    """Whether it is an API server: `vllm serve`, or the module behind that."""
    words = [os.path.basename(word) for word in cmdline[:4]]
    return (b"vllm" in words and b"serve" in words) or any(
        b"vllm.entrypoints" in word for word in cmdline[:4]
    )


def _memory_files() -> list[dict[str, Any]]:
    files = []
    try:
        names = os.listdir(SHARED)
    except OSError:
        return []
    for name in filter(_MEMORY_NAME.match, names):
        try:
            status = os.stat(f"{SHARED}/{name}")
        except OSError:
            continue
        files.append({"name": name, "uid": status.st_uid})
    return files


def _booted_s() -> float:
    for line in _read("/proc/stat").splitlines():
        if line.startswith(b"btime "):
            return float(line.split()[1])
    raise ValueError("no btime in /proc/stat")


def _read(path: str) -> bytes:
    with open(path, "rb") as stream:
        return stream.read()
