"""Keeps pandas out of a command that needs none."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


class _NoPandas:
    """A finder of modules that does not find pandas."""

    def find_spec(
        self, name: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == "pandas":
            raise ImportError("pandas is not looked for at start-up")
        return None


def import_arrow_alone() -> None:
    """Import pyarrow without pandas, which it imports with its first array wherever pandas is installed.

    That takes 0.17 to 0.2 s, a seventh of a whole command at 64 ranks, and 40 MB in each process. pyarrow has
    no setting for it, and looks once. Later `import pandas` and `to_pandas()` work as ever. Without effect
    where pandas is imported already.
    """
    if "pandas" in sys.modules:
        return
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        import pyarrow as pa  # noqa: PLC0415

        pa.array([""])
    finally:
        sys.meta_path.remove(finder)
