"""Results of the walk over the disk, before they are put together."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from cluster_analysis.sources.columns.place import on_disk
from cluster_analysis.tables.model import SourceKind
from cluster_run.ids import DeviceId, HostId, Rank
from cluster_run.layout import CAPTURE_END

_RANK_DIGITS = 6
_HOST_IN_NAME = re.compile(rf"^.+(_\d+_\d{{14,17}}{CAPTURE_END})$")
_HOST_IN_TEXT = re.compile(rf"[^\s/'\"]+(_\d+_\d{{14,17}}{CAPTURE_END})\b")
#: Columns of databases stand for 10 times their bytes, those of texts for 150 times. They take as long to
#: read, and their tables as much room.
_COLUMNS_GROW = 50


def public_name(directory: Path) -> str:
    """Return a capture's name without the host that `{host}_{pid}_{time}_ascend_pt` begins with."""
    return _HOST_IN_NAME.sub(r"*\1", directory.name)


def public_text(text: str) -> str:
    """Return a text about captures without the hosts that their names begin with."""
    return _HOST_IN_TEXT.sub(r"*\1", text)


def _bytes_read(path: Path) -> int:
    """Return about the size of a file on its host; 0 where it has gone, which reading it will report."""
    there = on_disk(path)
    try:
        return os.stat(there).st_size * (1 if there is path else _COLUMNS_GROW)
    except OSError:
        return 0


def modified_ns(path: Path) -> int:
    """Return when a file, or its columns, was last written; 0 where it has gone meanwhile."""
    try:
        return os.stat(on_disk(path)).st_mtime_ns
    except OSError:
        return 0


def as_rank(said: object) -> Rank | None:
    """Return what a file says as a rank, None where that is no number of at most six digits."""
    text = str(said)
    return Rank(int(text)) if text.isdecimal() and len(text) <= _RANK_DIGITS else None


def is_file(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a file, or a link to one; a link to itself is none."""
    try:
        return entry.is_file()
    except OSError:
        return False


def is_directory(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a directory, or a link to one; a link to itself is none."""
    try:
        return entry.is_dir()
    except OSError:
        return False


class Found(Struct, frozen=True):
    """One capture of one rank.

    `window` names the session where the path does; `stamp` is when it began, as 17 digits (20231119…), 0
    where its name does not say; `ended_ns` when it ended, where it says so itself; `folder` is the
    directory it lies in, without the host; `worker` the process that wrote it, where its name says so.
    """

    directory: Path
    kind: SourceKind
    files: Mapping[str, Path]
    rank: Rank | None
    host: HostId | None = None
    device: DeviceId | None = None
    host_name: str = ""
    window: str = ""
    stamp: int = 0
    ended_ns: int = 0
    folder: str = ""
    worker: str = ""

    @property
    def size_bytes(self) -> int:
        """About the size of all its files on their host, where columns are read instead."""
        return sum(map(_bytes_read, self.files.values()))


#: How a directory holds captures: that of a framework, of CANN itself, or files of r1.x.
Form = Literal["ascend", "prof", "legacy"]


class Tree(Struct, frozen=True):
    """What a walk found: directories that may hold captures, with their form, in order of their paths."""

    captures: Mapping[Path, Form]
    unreadable: Mapping[Path, str]
    #: Files and folders that are no captures: their kind, and what to do.
    foreign: Mapping[Path, tuple[str, str]]
