"""Files of one host that the r1.x layout puts on one path: kept apart, but identical content only once."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from cluster_collect.selection.select import COLLIDED_NAME, PlacedFile, Selection
from cluster_run.manifest import CollectedFile


def merge_identical(
    run: Path,
    files: Sequence[CollectedFile],
    selection: Selection,
    path_of: Callable[[PlacedFile], str],
) -> list[CollectedFile]:
    """Remove the copies in `collided/` whose content is that of the file in their place; return all files.

    A copy with other content stays, and its line says whose place it would have had.
    """
    collided = [
        placed
        for placed in selection.files
        if placed.target.startswith(COLLIDED_NAME + b"/") and placed.target != placed.entry.path
    ]
    if not collided:
        return list(files)
    winners = {file.target: file for file in selection.files}
    by_source = {file.source: file for file in files}
    rivals: dict[str, str] = {}
    for placed in collided:
        winner = winners.get(placed.entry.path.rpartition(b"/")[2])
        if winner is not None:
            rivals[os.fsdecode(placed.entry.path)] = os.fsdecode(winner.entry.path)
    return [_merged(run, file, by_source.get(rivals.get(file.source, ""))) for file in files]


def _merged(run: Path, file: CollectedFile, winner: CollectedFile | None) -> CollectedFile:
    if winner is None or file.state != "stored":
        return file
    if winner.state != "stored" or winner.sha256 != file.sha256:
        return replace(
            file, reason=f"has the name of {winner.source}, which has its place, and other content"
        )
    if file.path != winner.path:
        _remove(run, file.path)
    return replace(file, path=winner.path, reason=f"same content as {winner.source}, stored once")


def _remove(run: Path, path: str) -> None:
    full = run / path
    full.unlink(missing_ok=True)
    for directory in full.parents:
        if directory == run or any(directory.iterdir()):
            return
        directory.rmdir()
