"""One walk over the disk: which directories may hold captures.

Symbolic links to directories are followed, each real directory once. Nothing is read but names.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from cluster_analysis.discovery.found import Form, Tree, is_directory
from cluster_analysis.discovery.legacy import names_rank
from cluster_analysis.sources.columns.place import original_name
from cluster_run import layout
from cluster_run.errors import spoken

#: Deeper than any real layout; it ends a walk that somebody started at `/`.
MAX_DEPTH = 16
#: Our own output, and what holds copies: folders of snapshots and of what was deleted, which are hidden, and
#: what a Mac packs beside a folder.
_PASSED_OVER = (layout.ANALYSIS_OUTPUT_NAME, ".", "__MACOSX")
#: The name of a packed capture without its ending.
_OF_CAPTURE = rf"{layout.CAPTURE_END}|^{layout.PROF_PREFIX}.*|rank_?\d+.*|^{layout.PROFILER_OUTPUT_NAME}"
#: Names found in place of captures: what each is, and what to do.
_NAMES: tuple[tuple[str, str, str], ...] = (
    (f"({_OF_CAPTURE}){layout.ARCHIVE}", "archive", "unpack"),
    (
        r"^cluster_analysis(\.db|_output)$|^cluster_step_trace_time\.csv$|^cluster_communication(_matrix)?\.json$",
        "made_by_msprof_analyze",
        "give_captures",
    ),
    (r"\.(nsys-rep|qdrep|qdstrm|ncu-rep)$", "nsight_report", "only_ascend"),
    (r"\.pt\.trace\.json(\.gz)?$", "pytorch_trace", "profile_with_torch_npu"),
    (r"\.xplane\.pb$", "xla_trace", "only_ascend"),
    (r"^msmonitor_\d+_\d+_-?\d+\.(db|jsonl)$", "msmonitor_record", "profile_with_torch_npu"),
    (
        r"^(communication(_matrix)?|trace_view|step_trace_time|kernel_details)\w*\.(json|csv)(\.gz)?$",
        "file_of_no_capture",
        "put_into_capture",
    ),
    (layout.ARCHIVE, "archive", "unpack"),
)
_FOREIGN = tuple((re.compile(pattern), what, advice) for pattern, what, advice in _NAMES)
#: Why a link that is named like a capture cannot be listed.
LEADS_NOWHERE = "it is a link that leads nowhere"


def walk(root: Path) -> Tree:
    """Return the directories below (and including) `root` that may hold captures."""
    captures: dict[Path, Form] = {}
    unreadable: dict[Path, str] = {}
    foreign: dict[Path, tuple[str, str]] = {}
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
                names = {original_name(child.name) for child in children}
        except OSError as error:
            unreadable[directory] = spoken(error)
            continue
        foreign.update(
            {
                directory / name: what
                for name in names
                if (what := what_else(name)) and layout.unpacked_name(name) not in names - {name}
            }
        )
        folders = [child.name for child in children if is_directory(child)]
        unreadable.update(
            (directory / child.name, LEADS_NOWHERE)
            for child in children
            if child.is_symlink() and _is_named_so(child.name) and not os.path.exists(child.path)
        )
        if directory.name.endswith(layout.CAPTURE_SUFFIXES) or layout.PROFILER_OUTPUT_NAME in names:
            captures[directory] = "ascend"
            # A capture among others that was put next to them, not into a directory of its own.
            inner = [name for name in folders if name.endswith(layout.CAPTURE_SUFFIXES)]
            pending += [(directory / name, depth + 1) for name in inner]
            continue
        if directory.name.startswith(layout.PROF_PREFIX):
            captures[directory] = "prof"
            continue
        if any(map(names_rank, names)):
            captures[directory] = "legacy"
        if depth < MAX_DEPTH:
            pending += [
                (directory / name, depth + 1) for name in folders if not name.startswith(_PASSED_OVER)
            ]
    return Tree(dict(sorted(captures.items())), unreadable, foreign)


def is_packed_capture(name: str) -> bool:
    """Return whether a name is that of a packed capture."""
    return bool(_FOREIGN[0][0].search(name))


def may_hold_captures(name: str) -> bool:
    """Return whether a name is that of an archive, which may hold captures whatever it is called."""
    return bool(_FOREIGN[-1][0].search(name))


def what_else(name: str) -> tuple[str, str] | None:
    """Return the kind of a name that is known to be no capture, and what to do; None for all others."""
    for pattern, what, advice in _FOREIGN:
        if pattern.search(name):
            return what, advice
    return None


def _is_named_so(name: str) -> bool:
    """Return whether a name is that of a capture."""
    return name.endswith(layout.CAPTURE_SUFFIXES) or name.startswith(layout.PROF_PREFIX)
