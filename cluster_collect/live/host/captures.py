"""Captures on this host: their directories, whether they are parsed, and their steps."""

from __future__ import annotations

import csv
import os
import re
import shutil
import signal
import subprocess
from typing import Any

#: Names of directories that we may remove.
MARK = ".cluster-live"
CAPTURE_SUFFIXES, OUTPUT_NAME = ("_ascend_pt", "_ascend_ms"), "ASCEND_PROFILER_OUTPUT"
_INFO = re.compile(r"^profiler_info_(\d+)\.json$")
#: MindSpore names the directory above; the steps in that name are those asked for, not those captured.
_MINDSPORE = re.compile(r"rank(\d+)_start\d+_stop\d+")
_PARSE = "import sys; from torch_npu.profiler.profiler import analyse; [analyse(one) for one in sys.argv[1:]]"


def make(directory: str, like: str) -> None:
    """Make a directory for a capture, of the same owner as `like`, and mark it as ours."""
    os.makedirs(directory, mode=0o750, exist_ok=True)
    with open(os.path.join(directory, MARK), "a", encoding="ascii"):
        pass
    if os.geteuid() == 0:
        owner = os.stat(like)
        for path in (directory, os.path.join(directory, MARK)):
            os.chown(path, owner.st_uid, owner.st_gid)


def remove(directory: str) -> bool:
    """Remove a directory that `make` made, and nothing else."""
    if os.path.islink(directory) or not os.path.isfile(os.path.join(directory, MARK)):
        return False
    shutil.rmtree(directory)
    return True


def captures(directory: str, since_s: float = 0.0) -> list[dict[str, Any]]:
    """Return each capture below a directory since a time: rank, steps, bytes, and whether it is parsed."""
    found = []
    for at, folders, _ in os.walk(directory):
        for name in [one for one in folders if one.endswith(CAPTURE_SUFFIXES)]:
            folders.remove(name)
            if os.stat(os.path.join(at, name)).st_mtime >= since_s:
                found.append(_capture(os.path.join(at, name)))
    return found


def _capture(path: str) -> dict[str, Any]:
    names = os.listdir(path)
    ranks = [int(match.group(1)) for match in map(_INFO.match, names) if match]
    named = _MINDSPORE.search(path)
    if not ranks and named is not None:
        ranks = [int(named.group(1))]
    output = os.path.join(path, OUTPUT_NAME)
    steps = _steps(output)
    return {
        "path": path,
        "rank": ranks[0] if len(ranks) == 1 else None,
        "is_parsed": os.path.exists(os.path.join(output, "analyse.done"))
        or (named is not None and steps is not None),
        "steps": steps,
        "n_bytes": _size(path),
    }


def _steps(output: str) -> list[int] | None:
    """Return the steps that the parsed files hold; None where they do not say."""
    try:
        with open(os.path.join(output, "step_trace_time.csv"), encoding="utf-8", newline="") as stream:
            return sorted({int(row["Step"]) for row in csv.DictReader(stream)})
    except FileNotFoundError:
        return _steps_of_database(output)
    except (KeyError, ValueError, TypeError, csv.Error):
        return None


def _steps_of_database(output: str) -> list[int] | None:
    try:
        import sqlite3  # noqa: PLC0415 - some Pythons are built without it
    except ImportError:
        return None
    path = os.path.join(output, "analysis.db")
    if not os.path.isfile(path):
        return None
    try:
        base = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            return sorted({int(step) for (step,) in base.execute("SELECT step FROM StepTraceTime")})
        finally:
            base.close()
    except (sqlite3.Error, ValueError, TypeError):
        return None


def _size(path: str) -> int:
    total = 0
    for at, _, names in os.walk(path):
        for name in names:
            try:
                total += os.lstat(os.path.join(at, name)).st_size
            except OSError:
                continue
    return total


def parse(pid: int, paths: list[str], root: str, longest_s: float) -> str:
    """Parse captures with the Python and the environment of the process that made them, beside the job.

    It runs at the lowest priority; return why it did not work, empty where it did.
    """
    with open(f"/proc/{pid}/environ", "rb") as stream:
        entries = [one.partition(b"=") for one in stream.read().split(b"\0") if b"=" in one]
    # Without these: the parser must not take itself for a rank that waits for captures.
    own = (b"RANK", b"PROF_CONFIG_PATH", b"MSMONITOR_USE_DAEMON", b"KINETO_USE_DAEMON")
    environment = {name: value for name, _, value in entries if name not in own}
    inside = [one[len(root) :] if root and one.startswith(root) else one for one in paths]
    with open(f"/proc/{pid}/cmdline", "rb") as stream:
        python = stream.read().split(b"\0")[0]
    if not os.path.isabs(python):
        python = os.readlink(f"/proc/{pid}/exe").encode()
    command: list[bytes | str] = [python, "-c", _PARSE, *inside]
    if root:
        command = ["nsenter", "-t", str(pid), "-m", "-p", "--", *command]
    process = subprocess.Popen(  # noqa: S603 - the job's own Python
        command,
        env=environment,
        cwd=os.path.dirname(paths[0]) if not root else "/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        preexec_fn=_become_unimportant(pid),  # noqa: PLW1509 - there is one thread
    )
    try:
        errors = process.communicate(timeout=longest_s)[1]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return f"parsing took longer than {longest_s:.0f} s"
    if process.returncode:
        last = errors.decode(errors="replace").strip().splitlines()[-1:]
        return "parsing failed: {}".format(last[0][:300] if last else f"exit {process.returncode}")
    return ""


def _become_unimportant(pid: int) -> Any:
    owner = os.stat(f"/proc/{pid}")
    is_root = os.geteuid() == 0

    def prepare() -> None:
        os.setsid()
        os.nice(19)
        if is_root:
            os.setgid(owner.st_gid)
            os.setuid(owner.st_uid)

    return prepare
