"""Analyses for notebooks and programs: `import cluster_analysis as ca; run = ca.analyse("run1")`.

`ca.load("run1/cluster_analysis_output")` gives the same from an earlier output, without the raw data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cluster_analysis.api import Run, analyse, load

    analyze = analyse
    __version__: str

__all__ = ["Run", "__version__", "analyse", "analyze", "load"]


def __getattr__(name: str) -> object:
    # Looked up when it is asked for: the command's --help must not wait for pyarrow.
    if name == "__version__":
        from cluster_run.version import VERSION  # noqa: PLC0415

        return VERSION
    if name == "analyze":
        name = "analyse"
    if name in __all__:
        from cluster_analysis import api  # noqa: PLC0415

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
