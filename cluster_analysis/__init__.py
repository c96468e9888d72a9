"""Analyses for notebooks and programs: `import cluster_analysis as ca; run = ca.analyse("run1")`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cluster_analysis.api import Run, analyse

__all__ = ["Run", "analyse"]


def __getattr__(name: str) -> object:
    # Looked up when it is asked for: the command's --help must not wait for pyarrow.
    if name in __all__:
        from cluster_analysis import api  # noqa: PLC0415

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
