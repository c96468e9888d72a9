"""Reads what is wanted from standard input, and writes the answer: one line, then an archive, packed.

The line is `columns 1`, or `unfit` and why this host does no such work. While files are read, headers
without meaning say each `sign_s` that the readers still compute. Standard input stays open as long as
somebody waits for the answer.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterator
from typing import Any

from cluster_reduce.archive import Archive, PackedOutput
from cluster_reduce.form import OVER_LIMITS, READY, SUFFIX, UNFIT, UNREAD_SUFFIX
from cluster_reduce.reduction import LEAST_BYTES, comes_reduced_only, reducer_of
from cluster_reduce.sums.trace_view import unread
from cluster_reduce.workers import GoneError, Workers

_STDOUT, _STDERR = 1, 2


def main() -> int:
    """Answer one request; return the exit code."""
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        return 1
    settings = json.loads(line)
    joined = sys.stdin.buffer.read(settings["names_bytes"])
    if len(joined) < settings["names_bytes"]:
        return 1
    names = [name for name in joined.split(b"\0") if name]
    unfit = why_refused(settings)
    if unfit:
        os.write(_STDOUT, UNFIT + unfit.encode() + b"\n")
        return 3
    try:
        os.write(_STDOUT, READY)
        output = PackedOutput(settings["packer"])
        _answer(names, settings, output)
        output.flush()
    except (GoneError, BrokenPipeError):
        # Nobody reads the report.
        os._exit(1)
    return 0


def _answer(names: list[bytes], settings: dict[str, Any], output: PackedOutput) -> None:
    end_s = time.monotonic() + settings["deadline_s"]
    wanted = [name for name in names if reducer_of(name) is not None and _size(name) >= LEAST_BYTES]
    # Whatever takes long must not cost the others their time.
    wanted.sort(key=comes_reduced_only)
    as_they_are = sorted(set(names) - set(wanted), reverse=True)
    archive = Archive(output)
    # Half of the processors that this program may use.
    n_workers = max(1, len(os.sched_getaffinity(0)) // 2)
    workers = Workers(wanted, n_workers, settings["memory_bytes"], end_s, lambda: output.descriptor)
    sign_s, sent_s = settings["sign_s"], time.monotonic()
    try:
        while as_they_are or not workers.are_done:
            done = workers.take(0.0 if as_they_are else sign_s)
            if time.monotonic() - sent_s >= sign_s:
                if workers.have_worked():
                    archive.add_sign_of_life()
                output.flush()
                sent_s = time.monotonic()
            if done is None:
                if as_they_are:
                    archive.add_file(as_they_are.pop())
                continue
            name = done.name
            if done.content is not None:
                archive.add_content(name + SUFFIX.encode(), done.content)
            elif comes_reduced_only(name) and _size(name) >= LEAST_BYTES:
                suffix = UNREAD_SUFFIX if done.is_over_limits else SUFFIX
                archive.add_content(name + suffix.encode(), unread(_size(name), done.why))
            else:
                if done.is_over_limits:
                    os.write(_STDERR, OVER_LIMITS + name + b"\n")
                archive.add_file(name)
    finally:
        workers.close()
    archive.close()


def _size(name: bytes) -> int:
    try:
        return os.stat(name).st_size
    except OSError:
        return 0


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


if __name__ == "__main__":
    sys.exit(main())
