"""Finds collected files that were changed since, or are gone, by the manifest.

Each has to have the same length, and the same SHA-256 if it was touched. A flipped bit in a number is
a number: the file itself does not show it. The manifest does.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cluster_analysis.discovery.found import Found
from cluster_analysis.discovery.places import Places
from cluster_analysis.sources.columns.place import on_disk, original_name
from cluster_run.facts import Fact, fact
from cluster_run.manifest import CollectedFile
from cluster_run.problem import Problem

_CHUNK_BYTES = 1 << 20
_N_THREADS = 4


def changed_files(captures: Iterable[Found], places: Places, root: Path) -> list[Problem]:
    """Return a problem for every file that differs from what was collected, or is missing.

    A file that has its length and its time stamp still is taken for unchanged, as other tools do.
    """
    problems: list[Problem] = []
    touched: list[tuple[Path, Found, CollectedFile]] = []
    read: set[str] = set()
    owners: dict[str, dict[Path, Found]] = {}
    n_before = len(root.joinpath("_").as_posix()) - 1
    for one in captures if places.stored else ():
        for path, status in map(_asked, one.files.values()):
            name = path.as_posix()[n_before:]
            read.add(name)
            owners.setdefault(name.rpartition("/")[0], {})[one.directory] = one
            collected = places.stored.get(name)
            if collected is None or status is None:
                continue
            if status.st_size != collected.size_bytes:
                why = fact("other_size", n_bytes=status.st_size, n_bytes_collected=collected.size_bytes)
                problems.append(_problem(path, one, why))
            elif status.st_mtime_ns != collected.mtime_ns and collected.sha256:
                touched.append((path, one, collected))
    hashes = _hashes([path for path, _, _ in touched]) if touched else []
    problems += _gone(places.stored.keys() - read, owners, root)
    return problems + [
        _problem(path, owner, fact("other_hash"))
        for (path, owner, collected), found in zip(touched, hashes, strict=True)
        if found is not None and found != collected.sha256
    ]


def _asked(path: Path) -> tuple[Path, os.stat_result | None]:
    """Return where a file or else its columns are, and what the system says; None if reading reports it."""
    try:
        return path, os.stat(path)  # one question for each of many files
    except OSError:
        path = on_disk(path)
    try:
        return path, os.stat(path)
    except OSError:
        return path, None


def _gone(unread: Iterable[str], owners: Mapping[str, Mapping[Path, Found]], root: Path) -> Iterator[Problem]:
    """Yield a problem for every missing file that was collected beside files that are read.

    Args:
        unread: paths below `root` that the manifest names, and no capture reads.
        owners: for each directory below `root` in which files are read, whose they are.
        root: the run directory.
    """
    for name in sorted(unread):
        folder, _, stored = name.rpartition("/")
        file = original_name(stored)
        if folder in owners and not on_disk(root / folder / file).exists():
            of = tuple(owners[folder].values())
            rank = of[0].rank if len(of) == 1 else None
            yield Problem(fact("gone_since"), file, rank, of[0].host, "collect_again")


def _problem(path: Path, owner: Found, why: Fact) -> Problem:
    return Problem(why, original_name(path.name), owner.rank, owner.host, "collect_again")


def _hashes(paths: Sequence[Path]) -> list[str | None]:
    with ThreadPoolExecutor(min(_N_THREADS, os.cpu_count() or 1)) as threads:
        return list(threads.map(_sha256, paths))


def _sha256(path: Path) -> str | None:
    """Return the hash of a file; None where it cannot be read, which reading it will report."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as stream:
            while chunk := stream.read(_CHUNK_BYTES):
                digest.update(chunk)
    except OSError:
        return None
    return digest.hexdigest()
