"""Which reader of the communication files works here: the compiled one, or Python alone.

The compiled one (the C files here) reads files of the plain form that profilers write, and hands every other
one over to Python: both give the same tables. It is missing where it could not be built.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TypeVar

from cluster_analysis.sources.errors import FileOfRank, NotTogetherError

try:
    from cluster_analysis.sources.compiled import _columns
except ImportError:
    _columns = None  # type: ignore[assignment]

_T = TypeVar("_T")
#: `python` leaves the compiled reader alone, to compare both.
CHOICE = "CLUSTER_PROFILER_DECODER"
_PYTHON = "python"


def compiled() -> ModuleType | None:
    """Return the compiled reader; None where there is none, or where it is not wanted."""
    return None if os.environ.get(CHOICE) == _PYTHON else _columns


def in_use() -> str:
    """Return which reader works here, for people."""
    return "JSON by Python" if compiled() is None else "JSON by the compiled reader"


def of_plain_files(
    files: Sequence[FileOfRank], sent: Sequence[object], read: Callable[[list[str], list[int]], _T | None]
) -> _T | None:
    """Return what the compiled reader makes of files; None where Python reads them.

    Args:
        files: of one or more ranks.
        sent: the columns of each, None for a file that is here itself.
        read: takes paths and ranks; gives None where a file is not of the plain form.

    Raises:
        NotTogetherError: one of several files is not plain, or is of another kind than the others.
    """
    if any(sent):
        if not all(sent):
            raise NotTogetherError
        return None
    found = read([path for path, _ in files], [rank for _, rank in files])
    if found is None and compiled() is not None and len(files) > 1:
        raise NotTogetherError
    return found
