"""How much memory the tables of a run may take before they go to files, and the directory of these files."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dask.utils import parse_bytes

from cluster_analysis.engine.protocol import Engine
from cluster_run.errors import InputError, UsageError

#: The tables take about this share of the bytes they were read from (1.16 KB of JSON become 0.2 KB).
TABLE_SHARE = 0.25
_PREFIX = "cluster-analyse-"


def must_file(engine: Engine, size_bytes: int, limit_bytes: int) -> bool:
    """Return whether the large tables must go to files of the scratch directory, if tasks see it at all."""
    return engine.shares_scratch and (engine.wants_files or size_bytes * TABLE_SHARE > limit_bytes)


def parse_size(text: str) -> int:
    """Parse `512M` (1000), `1.5GB`, `2GiB` (1024) or a number of bytes.

    Raises:
        UsageError: it is none of these, or 0.
    """
    try:
        size: int = parse_bytes(text)
    except (ValueError, OverflowError):
        size = 0
    if size <= 0:
        raise UsageError(f"not a size: {text!r}", "write it like 512M or 2GiB")
    return size


@contextmanager
def scratch_directory(parent: Path | None) -> Iterator[Path]:
    """Make an own directory below `parent` (None: the system's choice), and remove it at the end.

    Raises:
        InputError: it cannot be made; the message says where.
    """
    try:
        made = tempfile.TemporaryDirectory(prefix=_PREFIX, dir=parent, ignore_cleanup_errors=True)
    except OSError as error:
        where = parent or tempfile.gettempdir()
        raise InputError(
            f"{where}: no scratch directory can be made: {error.strerror}", "name another one with --scratch"
        ) from error
    with made as path:
        yield Path(path)
