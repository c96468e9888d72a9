"""Keeps imports short: pyarrow from importing what is not used here, libraries from setting things aside.

pyarrow looks for pandas when it makes its first array, and imports it where it is installed: 0.1 to 0.4 s and
40 MB for nothing that is used here. It looks once. So that one time it is told there is no pandas;
afterwards `import pandas` and `to_pandas()` work as ever. In the same way its sums by group look for its
readers of data sets, with file systems and SSL: 0.05 s in each process.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

#: Python's own number is 700, and ten such looks until the next larger one.
_OBJECTS_UNTIL_LOOKED_FOR = 20_000


class _Without:
    """A finder of modules that has one of them not found. Its base class takes 4 ms to import."""

    def __init__(self, name: str) -> None:
        self._name = name

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == self._name:
            raise ImportError(f"{self._name} is not looked for at start-up")
        return None


@contextmanager
def _without(name: str) -> Iterator[None]:
    finder = _Without(name)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def keep_pandas_out() -> None:
    """Have pyarrow look for pandas now, in vain; without effect where pandas is imported already."""
    if "pandas" in sys.modules:
        return
    import pyarrow as pa  # noqa: PLC0415

    with _without("pandas"):
        pa.array([""])


def keep_data_sets_out() -> None:
    """Have pyarrow's sums by group do without its data sets, which no table in memory needs."""
    if "pyarrow.dataset" in sys.modules:
        return
    with _without("pyarrow.dataset"):
        import pyarrow.acero  # noqa: F401, PLC0415


def keep_no_spare_memory() -> None:
    """Have Arrow take its memory from the C library; to be called before pyarrow is imported.

    Its own allocator reserves 18 MB in each process before the first large table; time is the same.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


def keep_no_spare_threads() -> None:
    """Have NumPy start no threads for matrices; to be called before it is imported.

    None here is large, and starting the threads takes longer than all that they could save.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def collect_from_now_on() -> None:
    """Look for garbage again, but not among what was imported while that was off; else do nothing.

    Little of what is made here is garbage that only a look finds: it is looked for less often.
    """
    if not gc.isenabled():
        gc.freeze()
        gc.set_threshold(_OBJECTS_UNTIL_LOOKED_FOR)
        gc.enable()


def end_without_tidying(codes: Sequence[int]) -> None:
    """Have Python end with the exit code in `codes`, once there is one, without taking values apart first.

    To be called before anything is started: what registers itself later to be done at the end is done before.
    """
    atexit.register(_end, codes)


def _end(codes: Sequence[int]) -> None:
    with suppress(OSError, ValueError):  # Python says what became of it
        sys.stdout.flush()
        sys.stderr.flush()
        if codes:
            os._exit(codes[0])
