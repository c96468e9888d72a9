"""Which reader of the communication files works here: the compiled one, or Python alone.

The compiled one (the C files here) reads files of the plain form that profilers write, and hands every other
one over to Python: both give the same tables. It is missing where it could not be built.
"""

from __future__ import annotations

import os
from types import ModuleType

try:
    from cluster_analysis.sources.compiled import _columns
except ImportError:
    _columns = None  # type: ignore[assignment]

#: `python` leaves the compiled reader alone, to compare both.
CHOICE = "CLUSTER_PROFILER_DECODER"
_PYTHON = "python"


def compiled() -> ModuleType | None:
    """Return the compiled reader; None where there is none, or where it is not wanted."""
    return None if os.environ.get(CHOICE) == _PYTHON else _columns


def in_use() -> str:
    """Return which reader works here, for people."""
    return "JSON by Python" if compiled() is None else "JSON by the compiled reader"
