"""The directory of files that live as long as one call: large tables, arrays on their way, unpacked runs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster_run.errors import InputError

_PREFIX = "cluster-analyse-"


@contextmanager
def scratch_directory(parent: Path | None) -> Iterator[Path]:
    """Make an own directory below `parent` (None: the system's choice), and remove it at the end.

    After Ctrl-C and SIGTERM too, which are exceptions here; `kill -9` leaves it there.

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
