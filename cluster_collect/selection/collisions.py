"""Files of one host that the r1.x layout puts on one path: kept apart, but identical content only once."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace

from cluster_collect.selection.select import Selection
from cluster_run.manifest import CollectedFile


def merge_identical(
    remove: Callable[[str], None],
    files: Sequence[CollectedFile],
    selection: Selection,
) -> list[CollectedFile]:
    """Remove the copies in `collided/` whose content is that of the file in their place; return all files.

    `remove` takes a file out of the run directory, with directories that are empty then.
    A copy with other content stays, and its line says whose place it would have had.
    """
    rivals = {
        os.fsdecode(placed.entry.path): os.fsdecode(placed.rival)
        for placed in selection.files
        if placed.rival
    }
    by_source = {file.source: file for file in files} if rivals else {}
    return [_merged(remove, file, by_source.get(rivals.get(file.source, ""))) for file in files]


def _merged(
    remove: Callable[[str], None], file: CollectedFile, winner: CollectedFile | None
) -> CollectedFile:
    if winner is None or file.state != "stored":
        return file
    if winner.state != "stored" or winner.sha256 != file.sha256:
        return replace(
            file, reason=f"has the name of {winner.source}, which has its place, and other content"
        )
    if file.path != winner.path:
        remove(file.path)
    return replace(file, path=winner.path, reason=f"same content as {winner.source}, stored once")
