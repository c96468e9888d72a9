"""Which of a host's files are wanted, and where they land. Pure: entries in, placements out.

Three kinds of things are known below a profiler root:

* captures: `*_ascend_pt`, `*_ascend_ms` and `PROF_*` directories at any depth, kept whole;
* r1.x directories: `profiler*/*.*`, or `{device_regex}{i}/{output_dir}*/profiler*/*.*`, laid flat as the
  r1.x script did (its last match wins the flat name; earlier ones go to `collided/`);
* `msmonitor_*.db` files beside them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache

from cluster_collect.entries import Link, RemoteEntry, group_of, is_capture, unsafe_because
from cluster_collect.selection.analysis_files import is_timeline, needed_by_analysis
from cluster_collect.selection.captures import (
    captures_of,
    chosen_captures,
    matcher,
    not_excluded,
)
from cluster_collect.selection.links import Links
from cluster_collect.selection.options import COLUMNS, KINDS, NARROW
from cluster_collect.spec import CollectOptions, HostSpec

COLLIDED_NAME = b"collided"
_MSMONITOR = re.compile(rb"msmonitor_.*\.db")
#: Names that tell an r1.x directory that is not called `profiler`.
_R1_MARKS = re.compile(
    rb"(?:step_trace_raw_|step_trace_point_info|hccl_raw_|aicore_intermediate_|minddata_|flops_|memory_usage_"
    rb"|output_op_compute_time_|framework_raw_|\w+_cluster_analyse_).*"
)


@dataclass(frozen=True)
class Tree:
    """What a host lists: entries, the links to directories among them, and where the root really lies.

    `clock_ahead_s`: how far its clock, which dates its files, is ahead of ours.
    """

    entries: Sequence[RemoteEntry]
    links: Sequence[Link] = ()
    real_root: bytes = b""
    clock_ahead_s: float = 0.0


@dataclass(frozen=True, slots=True)
class PlacedFile:
    """A wanted file. `target` is relative to the host's `profiler` directory; `rival` is the path on the host
    of the file that has the place of one in `collided/`.

    `reduced_from_bytes` is the size on the host of a file that came as columns; `entry` is the host's file. A
    file that `stays_whole` never comes as columns; one that `comes_reduced` comes in no other form. If it
    `is_unread`, its columns only say that its host had no time or memory to read it.
    """

    entry: RemoteEntry
    target: bytes
    reduced_from_bytes: int | None = None
    stays_whole: bool = False
    comes_reduced: bool = False
    is_unread: bool = False
    rival: bytes = b""

    @property
    def most_bytes(self) -> int:
        """Most bytes that it may need here, by its size on the host."""
        return 0 if self.comes_reduced else self.entry.size_bytes


@dataclass(frozen=True)
class Refused:
    """Something that was found but is not taken, and why.

    `is_lost` tells what belongs to the profiler data from what was left out on purpose.
    """

    entry: RemoteEntry
    reason: str
    is_lost: bool = False


@dataclass(frozen=True)
class Selection:
    """The files to take, in the order to take them, and what is left out on purpose."""

    files: tuple[PlacedFile, ...]
    refused: tuple[Refused, ...]


def select(tree: Tree, spec: HostSpec, options: CollectOptions) -> Selection:
    """Choose and place the entries of one host.

    Globs match the path below the profiler root or the bare name.
    """
    links = Links(tree.links, tree.real_root, [entry.path for entry in tree.entries if entry.kind == "f"])
    entries = [entry for entry in tree.entries if not links.hide(entry.path)]
    place = _placer(entries, spec)
    whole = captures_of(options.whole_ranks, entries, spec.device_ranks) if options.whole_ranks else set()
    wanted = _wanted(entries, options.what, whole)
    is_in = not_excluded(options.exclude)
    is_chosen = chosen_captures(entries, spec, options, tree.clock_ahead_s)
    taken: list[tuple[RemoteEntry, bytes]] = []
    refused: list[Refused] = []
    for entry in entries:
        target = place(entry.path)
        if not is_in(entry.path):
            continue
        if entry.kind == "l" and links.know(entry.path):
            if lost := links.lost_behind(entry.path):
                refused.append(Refused(entry, lost, is_lost=True))
            continue
        if not wanted(entry.path, target is not None) or not is_chosen(entry.path):
            continue
        if unsafe := unsafe_because(entry.path):
            refused.append(Refused(entry, unsafe, is_lost=True))
        elif entry.kind == "l":
            refused.append(Refused(entry, "a symbolic link: not followed", is_lost=True))
        elif entry.kind != "f":
            refused.append(Refused(entry, _kind_reason(entry.kind)))
        else:
            taken.append((entry, entry.path if target is None else target))
    files = _apart(taken)
    if whole:
        files = tuple(replace(file, stays_whole=group_of(file.entry.path) in whole) for file in files)
    if options.columns:
        files = tuple(
            replace(file, comes_reduced=True)
            if is_timeline(file.entry.path) and not file.stays_whole
            else file
            for file in files
        )
    return Selection(files, tuple(refused))


def _kind_reason(kind: str) -> str:
    names = {"p": "a fifo", "s": "a socket", "c": "a device", "b": "a device"}
    return f"{names.get(kind, 'not a regular file')}: not copied"


def _placer(entries: Sequence[RemoteEntry], spec: HostSpec) -> Callable[[bytes], bytes | None]:
    """Return the function that gives a path its place below the host's directory, None where it has none."""
    root_name = os.fsencode(spec.root.rstrip("/").rpartition("/")[2])
    if is_capture(root_name):
        return lambda path: root_name + b"/" + path
    known = _by_directory(_r1_directory(spec))
    if any(known(entry.path) is not None for entry in entries):
        return known
    is_flat_root = root_name.startswith(b"profiler") or any(
        _R1_MARKS.fullmatch(entry.path) for entry in entries
    )
    return _flat_place if is_flat_root else known


def _by_directory(r1_directory: re.Pattern[bytes]) -> Callable[[bytes], bytes | None]:
    """Return the function that places files by their directory; it looks at each directory once."""

    @cache
    def is_of_capture(directory: bytes) -> bool:
        return any(map(is_capture, directory.split(b"/")))

    def place(path: bytes) -> bytes | None:
        directory, _, name = path.rpartition(b"/")
        if is_of_capture(directory) or _MSMONITOR.fullmatch(name):
            return path
        return _dotted(name) if r1_directory.fullmatch(directory) else None

    return place


def _flat_place(path: bytes) -> bytes | None:
    return None if b"/" in path else _dotted(path)


def _dotted(name: bytes) -> bytes | None:
    """The r1.x script copies `*.*`: names with a dot that is not the first character."""
    return name if b"." in name[1:] and not name.startswith(b".") else None


def _r1_directory(spec: HostSpec) -> re.Pattern[bytes]:
    if not spec.device_regex:
        return re.compile(rb"profiler[^/]*")
    device = _glob_body(spec.device_regex.strip("/").removeprefix("./"))
    middle = ""
    if spec.output_dir and spec.output_dir.strip("./"):
        middle = _glob_body(spec.output_dir.strip("/").removeprefix("./")) + "[^/]*/"
    return re.compile(os.fsencode(f"{device}[0-9]+/{middle}profiler[^/]*"))


def _glob_body(glob: str) -> str:
    """The regular expression of a shell glob whose stars do not cross a `/`."""
    return "/".join(
        re.escape(part).replace(r"\*", "[^/]*").replace(r"\?", "[^/]") for part in glob.split("/")
    )


def _wanted(
    entries: Sequence[RemoteEntry], what: Sequence[str], whole: Set[bytes]
) -> Callable[[bytes, bool], bool]:
    """Return the test for paths, and whether they are known; all of the captures `whole` is of the kind."""
    is_narrow = bool(set(NARROW) & set(what))
    paths = [entry.path for entry in entries] if is_narrow else []
    needed = needed_by_analysis(paths, with_timelines=COLUMNS in what) if is_narrow else None
    globs = [text for text in what if text not in KINDS]
    matches = matcher(globs)

    def wanted(path: bytes, is_known: bool) -> bool:
        if len(globs) == len(what):
            return matches(path)
        is_of_kind = is_known and (
            needed is None or needed(path) or (bool(whole) and group_of(path) in whole)
        )
        return is_of_kind and (not globs or matches(path))

    return wanted


def _apart(taken: Sequence[tuple[RemoteEntry, bytes]]) -> tuple[PlacedFile, ...]:
    """Give every file a place of its own. Of several for one place the last in natural order gets it."""
    winners: dict[bytes, bytes] = {}
    for entry, target in taken:
        rival = winners.get(target)
        if rival is None or natural_order(rival) <= natural_order(entry.path):
            winners[target] = entry.path
    files = [
        PlacedFile(entry, target)
        if (winner := winners[target]) == entry.path
        else PlacedFile(entry, COLLIDED_NAME + b"/" + entry.path, rival=winner)
        for entry, target in taken
    ]
    return tuple(sorted(files, key=lambda file: file.entry.path))


def natural_order(path: bytes) -> tuple[tuple[int, bytes], ...]:
    """Sort key in which `device10` comes after `device9`."""
    return tuple(
        (int(part[:18]), b"") if part.isdigit() else (-1, part) for part in re.split(rb"([0-9]+)", path)
    )
