"""The declared layers of the project, and the imports as they are: read from the source, nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("cluster_run", "cluster_collect", "cluster_analysis", "cluster_hook", "demo", "benchmarks")

#: Which part of the project may import which others. A part is the longest matching prefix.
ALLOWED: Mapping[str, frozenset[str]] = {
    "cluster_run": frozenset(),
    "cluster_collect": frozenset({"cluster_run"}),
    "cluster_analysis": frozenset({"cluster_run"}),
    "cluster_hook": frozenset({"cluster_run", "cluster_collect", "cluster_analysis"}),
    "demo": frozenset({"cluster_run", "cluster_collect", "cluster_analysis"}),
    "benchmarks": frozenset({"cluster_run", "cluster_collect", "cluster_analysis", "cluster_hook", "demo"}),
}
#: Parts of the analysis, and what of it they must not import: no arrow of ARCHITECTURE.md goes back.
FORBIDDEN: Mapping[str, frozenset[str]] = {
    "cluster_analysis.sources": frozenset(
        {
            "cluster_analysis.engine",
            "cluster_analysis.pipeline",
            "cluster_analysis.detectors",
            "cluster_analysis.detection",
            "cluster_analysis.reports",
            "cluster_analysis.insight",
            "cluster_analysis.outputs",
            "cluster_analysis.discover",
            "cluster_analysis.discovery",
            "cluster_analysis.simulation",
        }
    ),
    "cluster_analysis.detectors": frozenset(
        {
            "cluster_analysis.sources",
            "cluster_analysis.discover",
            "cluster_analysis.discovery",
            "cluster_analysis.engine",
            "cluster_analysis.pipeline",
            "cluster_analysis.reports",
            "cluster_analysis.insight",
            "cluster_analysis.outputs",
            "cluster_analysis.simulation",
        }
    ),
    "cluster_analysis.reports": frozenset(
        {
            "cluster_analysis.sources",
            "cluster_analysis.discover",
            "cluster_analysis.discovery",
            "cluster_analysis.engine",
            "cluster_analysis.engine_tasks",
            "cluster_analysis.pipeline",
            "cluster_analysis.insight",
            "cluster_analysis.outputs",
            "cluster_analysis.simulation",
        }
    ),
    # What is written for Insight and the output folder are the last to be made: nothing that reads, reduces
    # or judges knows of them.
    **dict.fromkeys(
        (
            "cluster_analysis.pipeline",
            "cluster_analysis.read_ranks",
            "cluster_analysis.engine",
            "cluster_analysis.engine_local",
            "cluster_analysis.engine_dask",
            "cluster_analysis.engine_slurm",
            "cluster_analysis.engine_tasks",
            "cluster_analysis.totals",
        ),
        frozenset({"cluster_analysis.insight", "cluster_analysis.outputs", "cluster_analysis.reports"}),
    ),
    "cluster_analysis.insight": frozenset(
        {
            "cluster_analysis.detection",
            "cluster_analysis.detectors",
            "cluster_analysis.discovery",
            "cluster_analysis.reports",
            "cluster_analysis.simulation",
            "cluster_analysis.outputs.everything",
        }
    ),
    "cluster_analysis.outputs": frozenset(
        {
            "cluster_analysis.detection",
            "cluster_analysis.detectors",
            "cluster_analysis.discovery",
            "cluster_analysis.simulation",
            "cluster_analysis.sources",
        }
    ),
    "cluster_analysis.discovery": frozenset(
        {"cluster_analysis.engine", "cluster_analysis.pipeline", "cluster_analysis.detectors"}
    ),
    "cluster_analysis.simulation": frozenset(
        {"cluster_analysis.pipeline", "cluster_analysis.engine", "cluster_analysis.detection"}
    ),
}
#: Foreign libraries and the modules that may import them.
OWNERS: Mapping[str, tuple[str, ...]] = {
    "asyncssh": ("cluster_collect.by_asyncssh", "demo"),
    # In the benchmark it is a rival of the collector.
    "paramiko": ("cluster_collect.by_paramiko", "benchmarks.collect_driver"),
    "dask": ("cluster_analysis.engine_dask", "cluster_analysis.engine_slurm"),
    # The hook only makes certificates with it, for the cluster that it starts.
    "distributed": (
        "cluster_analysis.engine_dask",
        "cluster_analysis.engine_slurm",
        "cluster_hook.dask_allocation",
    ),
    "dask_jobqueue": ("cluster_analysis.engine_slurm",),
    "jinja2": ("cluster_analysis.reports.html",),
    "msgspec": ("cluster_analysis.sources", "cluster_analysis.discovery"),
    "ClusterShell": ("cluster_collect", "cluster_hook"),
}
#: Libraries that one module alone may import: their errors are made ours there.
IN_ONE_MODULE = ("asyncssh", "jinja2", "dask_jobqueue", "ClusterShell")


def modules() -> dict[str, Path]:
    """Return the dotted name and the file of every module of the project."""
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(path: Path, *, at_start: bool = False) -> set[str]:
    """Return the dotted names a module imports; `at_start` leaves out those in functions."""
    tree = ast.parse(path.read_bytes(), str(path))
    nodes: Iterable[ast.AST] = _executed_at_import(tree) if at_start else ast.walk(tree)
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.add(node.module or "")
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def _executed_at_import(node: ast.AST) -> Iterable[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        yield child
        yield from _executed_at_import(child)


def edges(*, at_start: bool) -> dict[str, set[str]]:
    """Return which modules of the project each module imports."""
    known = modules()
    return {
        name: {one for one in imports_of(path, at_start=at_start) if one in known and one != name}
        for name, path in known.items()
    }


def is_in(name: str, part: str) -> bool:
    """Return whether a module is `part` or lies below it."""
    return name == part or name.startswith(f"{part}.")
