"""How much memory the tables of a run may take before they go to files."""

from __future__ import annotations

import contextlib
import ctypes
import re

from cluster_analysis.engine.protocol import Engine
from cluster_run.errors import UsageError

#: The tables take about this share of the bytes they were read from (1.16 KB of JSON become 0.2 KB).
TABLE_SHARE = 0.25
#: So much the tables may take unless told otherwise. Files take no more processor time, and are read by step.
DEFAULT_LIMIT_BYTES = 16 * 1024 * 1024
#: mallopt's parameter in the GNU C library, and the value for it: arrays of a million operators are larger,
#: those of a batch or a step are smaller.
_M_MMAP_THRESHOLD, _LARGE_BLOCK_BYTES = -3, 4 * 1024 * 1024
#: The same for what it keeps of smaller blocks: some that are used again and again.
_M_TRIM_THRESHOLD, _KEPT_BYTES = -1, 16 * 1024 * 1024
_SIZE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*$", re.IGNORECASE)


def must_file(engine: Engine, size_bytes: int, limit_bytes: int) -> bool:
    """Return whether the large tables must go to files of the scratch directory, if tasks see it at all."""
    return engine.shares_scratch and (engine.wants_files or size_bytes * TABLE_SHARE > limit_bytes)


def give_back() -> None:
    """Return memory that was freed to the system, which allocators keep; without effect where they cannot."""
    with contextlib.suppress(OSError, AttributeError):  # only the GNU C library knows how
        ctypes.CDLL(None).malloc_trim(0)


def return_large_blocks() -> None:
    """Have large blocks returned to the system when they are freed, now and in processes forked later.

    Without it the GNU C library begins to keep blocks of up to 32 MiB for itself once it has seen one freed.
    Smaller ones it would give back one by one, and ask for again, a page at a time.
    """
    with contextlib.suppress(OSError, AttributeError):  # only the GNU C library knows how
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE_BLOCK_BYTES)
        ctypes.CDLL(None).mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)


def parse_size(text: str) -> int:
    """Parse `512M`, `1.5GB`, `2GiB` or a number of bytes.

    Raises:
        UsageError: it is none of these, or 0.
    """
    match = _SIZE.match(text)
    size = 0
    if match:
        number, prefix, binary = match.groups()
        base = 1024 if binary or not text.strip().lower().endswith("b") else 1000
        size = int(float(number) * base ** " kmgt".index(prefix.lower() or " "))
    if size <= 0:
        raise UsageError(f"not a size: {text!r}", "write it like 512M or 2GiB")
    return size
