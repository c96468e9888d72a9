"""One walk over the disk: which directories may hold captures.

Symbolic links to directories are followed, each real directory once. Nothing is read but names.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from cluster_analysis.discovery.found import Tree, is_directory
from cluster_run import layout

#: Deeper than any real layout; it ends a walk that somebody started at `/`.
MAX_DEPTH = 16
LEGACY_FILE = re.compile(
    r"^(step_trace_raw_\d+_detail_time\.csv|hccl_raw_\d+\.csv|(ascend|gpu)_cluster_analyse_.*_\d+\.csv)$"
)
_CAPTURE_SUFFIXES = (layout.PYTORCH_SUFFIX, layout.MINDSPORE_SUFFIX)
_PROF_PREFIX = "PROF_"
#: Why a link that is named like a capture cannot be listed.
LEADS_NOWHERE = "it is a link that leads nowhere"


def walk(root: Path) -> Tree:
    """Return the directories below (and including) `root` that may hold captures."""
    ascend: list[Path] = []
    prof: list[Path] = []
    legacy: list[Path] = []
    unreadable: dict[Path, str] = {}
    seen: set[tuple[int, int]] = set()
    pending = [(root, 0)]
    while pending:
        directory, depth = pending.pop()
        try:
            status = directory.stat()
            if (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
            with os.scandir(directory) as entries:
                children = sorted(entries, key=lambda entry: entry.name)
                names = {child.name for child in children}
        except OSError as error:
            unreadable[directory] = error.strerror or str(error)
            continue
        folders = [child.name for child in children if is_directory(child)]
        unreadable.update(
            (directory / child.name, LEADS_NOWHERE)
            for child in children
            if child.is_symlink() and _looks_like_capture(child.name) and not os.path.exists(child.path)
        )
        if _is_capture(directory, names):
            ascend.append(directory)
            # A capture among others that was put beside them, not into a directory of its own.
            pending += [(directory / name, depth + 1) for name in folders if name.endswith(_CAPTURE_SUFFIXES)]
            continue
        if directory.name.startswith(_PROF_PREFIX):
            prof.append(directory)
            continue
        if any(LEGACY_FILE.match(name) for name in names):
            legacy.append(directory)
        if depth < MAX_DEPTH:
            pending += [
                (directory / name, depth + 1) for name in folders if name != layout.ANALYSIS_OUTPUT_NAME
            ]
    return Tree(tuple(sorted(ascend)), tuple(sorted(prof)), tuple(sorted(legacy)), unreadable)


def _is_capture(directory: Path, names: set[str]) -> bool:
    return directory.name.endswith(_CAPTURE_SUFFIXES) or layout.PROFILER_OUTPUT_NAME in names


def _looks_like_capture(name: str) -> bool:
    return name.endswith(_CAPTURE_SUFFIXES) or name.startswith(_PROF_PREFIX)
