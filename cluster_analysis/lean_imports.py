"""Keeps pyarrow from importing pandas, and from setting memory aside.

pyarrow looks for pandas when it makes its first array, and imports it where it is installed: 0.4 s and
40 MB for nothing that is used here. It looks once. So that one time it is told there is no pandas;
afterwards `import pandas` and `to_pandas()` work as ever.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType


class _NoPandas(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == "pandas":
            raise ImportError("pandas is not looked for at start-up")
        return None


def keep_pandas_out() -> None:
    """Have pyarrow look for pandas now, in vain; without effect where pandas is imported already."""
    if "pandas" in sys.modules:
        return
    import pyarrow as pa  # noqa: PLC0415

    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        pa.array([""])
    finally:
        sys.meta_path.remove(finder)


def keep_no_spare_memory() -> None:
    """Have Arrow take its memory from the C library; to be called before pyarrow is imported.

    Its own allocator reserves 18 MB in each process before the first large table; time is the same.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
