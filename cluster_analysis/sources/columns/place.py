"""Where a file of a capture lies on this disk: as it is, or as columns in its place.

All of the analysis calls a file by the name that it has on its host. This module says where it lies.
"""

from __future__ import annotations

import os
from pathlib import Path

from cluster_reduce.form import SUFFIX


def original_name(name: str) -> str:
    """Return what a file of this name is called on its host."""
    return name.removesuffix(SUFFIX)


def on_disk(path: Path) -> Path:
    """Return the path of the file itself, or of its columns where only they are there."""
    columns = columns_of(path)
    return path if columns is None else columns


def columns_of(path: Path) -> Path | None:
    """Return the path of a file's columns, None where the file itself is there, or neither."""
    if os.path.exists(path):  # asked of each file of each rank, several times
        return None
    columns = path.with_name(path.name + SUFFIX)
    return columns if os.path.exists(columns) else None
