"""The files that are reduced, each with its reducer."""

from __future__ import annotations

import os
from collections.abc import Callable

from cluster_reduce.communication import reduce_communication
from cluster_reduce.form import UnfitError, kind_of
from cluster_reduce.matrix import reduce_matrix
from cluster_reduce.sums.kernel_details import reduce_kernel_details
from cluster_reduce.sums.trace_view import reduce_trace_view

#: Smaller files travel as they are: there is nothing to gain.
LEAST_BYTES = 4096
OUTPUT_NAME = b"ASCEND_PROFILER_OUTPUT"
#: A reduced file that is hardly smaller is not worth it.
_GAIN = 0.9


def _database(path: bytes) -> bytes:
    try:
        # Some Pythons are built without sqlite3.
        from cluster_reduce.database import reduce_database  # noqa: PLC0415
    except ImportError:
        raise UnfitError("no sqlite3 in this Python") from None
    return reduce_database(path)


#: By the kind of columns.
_REDUCERS: dict[str, Callable[[bytes], bytes]] = {
    "communication": lambda path: reduce_communication(_content(path)),
    "matrix": lambda path: reduce_matrix(_content(path)),
    "kernels": reduce_kernel_details,
    "timeline": reduce_trace_view,
    "database": _database,
}


def reducer_of(path: bytes) -> Callable[[bytes], bytes] | None:
    """Return what reduces a file with this path, None for one that travels as it is."""
    kind = kind_of(path) if path.split(b"/")[-2:-1] == [OUTPUT_NAME] else None
    return None if kind is None else _REDUCERS[kind]


def comes_reduced_only(path: bytes) -> bool:
    """Return whether a file with this path travels as it is only where it is small: some have gigabytes."""
    return reducer_of(path) is reduce_trace_view


def reduced(path: bytes) -> bytes:
    """Return the columns of a file.

    Raises:
        UnfitError: this file has to travel as it is, or cannot be read.
        OSError: it cannot be read.
    """
    reduce, size_bytes = reducer_of(path), os.stat(path).st_size
    if reduce is None or size_bytes < LEAST_BYTES:
        raise UnfitError("too small")
    content = reduce(path)
    if len(content) > _GAIN * size_bytes:
        raise UnfitError("not smaller")
    return content


def _content(path: bytes) -> bytes:
    with open(path, "rb") as stream:
        return stream.read()
