"""The declared layers of the project, and the imports as they are: read from the source, nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "cluster_run",
    "cluster_collect",
    "cluster_analysis",
    "cluster_simulate",
    "cluster_hook",
    "demo",
    "benchmarks",
)

_STEP = "cluster_analysis.trace cluster_analysis.numeric cluster_analysis.tables cluster_run"
_JUDGED = (
    "cluster_analysis.replay cluster_analysis.topology cluster_analysis.trace cluster_analysis.numeric "
    "cluster_analysis.tables cluster_run"
)
#: Each room (a package, or one file of the analysis that wires) and the rooms it may import. A room is the
#: longest matching prefix, and what is allowed is allowed with all that lies below it. A package may import
#: itself. The order is that of the data's way: a room only imports what stands before it.
ALLOWED: Mapping[str, frozenset[str]] = {
    name: frozenset(allowed.split())
    for name, allowed in {
        "cluster_run": "",
        "cluster_collect": "cluster_run",
        "cluster_collect.by_asyncssh": "cluster_collect",
        "cluster_collect.by_paramiko": "cluster_collect",
        "cluster_collect.inventory": "cluster_collect cluster_run",
        "cluster_analysis.numeric": "",
        "cluster_analysis.tables": "cluster_run",
        "cluster_analysis.sources": "cluster_analysis.tables cluster_run",
        "cluster_analysis.sources.text": "cluster_analysis.sources cluster_analysis.tables cluster_run",
        "cluster_analysis.sources.db": "cluster_analysis.sources cluster_analysis.tables cluster_run",
        "cluster_analysis.sources.r1": "cluster_analysis.sources cluster_analysis.tables cluster_run",
        "cluster_analysis.discovery": "cluster_analysis.sources cluster_analysis.tables cluster_run",
        "cluster_analysis.trace": "cluster_analysis.numeric cluster_analysis.tables cluster_run",
        "cluster_analysis.trace.pairing": f"{_STEP}",
        "cluster_analysis.trace.streams": f"{_STEP}",
        "cluster_analysis.trace.missing": f"{_STEP}",
        "cluster_analysis.topology": "cluster_analysis.trace.calls cluster_analysis.tables cluster_run",
        "cluster_analysis.replay": (
            "cluster_analysis.trace cluster_analysis.numeric cluster_analysis.tables cluster_run"
        ),
        "cluster_analysis.options": "cluster_analysis.tables cluster_run",
        "cluster_analysis.engine": (
            "cluster_analysis.options cluster_analysis.topology cluster_analysis.trace cluster_analysis.sources "
            "cluster_analysis.numeric cluster_analysis.tables cluster_run"
        ),
        "cluster_analysis.judge": f"{_JUDGED}",
        "cluster_analysis.judge.measures": f"cluster_analysis.judge {_JUDGED}",
        "cluster_analysis.judge.cost": f"cluster_analysis.judge {_JUDGED}",
        "cluster_analysis.judge.detectors": (
            f"cluster_analysis.judge.measures cluster_analysis.judge.view cluster_analysis.judge.suspects "
            f"cluster_analysis.judge.thresholds cluster_analysis.judge.wording {_JUDGED}"
        ),
        "cluster_analysis.result": "cluster_analysis.tables cluster_run",
        "cluster_analysis.pipeline": (
            "cluster_analysis.discovery cluster_analysis.engine cluster_analysis.options cluster_analysis.result "
            f"cluster_analysis.judge {_JUDGED}"
        ),
        "cluster_analysis.reports": (
            "cluster_analysis.result cluster_analysis.judge.baseline cluster_analysis.trace.calls "
            "cluster_analysis.numeric cluster_analysis.tables cluster_run"
        ),
        "cluster_analysis.output_folder": "cluster_run",
        # What is written for MindStudio Insight is made of the ranks' files: nothing is judged by it.
        "cluster_analysis.insight": (
            "cluster_analysis.output_folder cluster_analysis.pipeline cluster_analysis.engine "
            "cluster_analysis.topology cluster_analysis.sources cluster_analysis.numeric cluster_analysis.tables "
            "cluster_run"
        ),
        "cluster_analysis.outputs": (
            "cluster_analysis.insight cluster_analysis.reports cluster_analysis.output_folder "
            "cluster_analysis.pipeline cluster_analysis.result cluster_analysis.engine "
            "cluster_analysis.judge.baseline cluster_run"
        ),
        "cluster_analysis": "cluster_analysis cluster_run",
        "cluster_simulate": "cluster_run",
        "cluster_simulate.job": "cluster_analysis.tables cluster_run",
        "cluster_simulate.files": "cluster_simulate.job cluster_analysis.tables cluster_run",
        "cluster_hook": "cluster_run cluster_collect cluster_analysis",
        "cluster_hook.kubernetes": "cluster_hook cluster_run",
        "demo": "cluster_run cluster_collect cluster_analysis cluster_simulate",
        "benchmarks": "cluster_run cluster_collect cluster_analysis cluster_simulate cluster_hook demo",
    }.items()
}
#: With more modules than this a package has more than one thought.
MAX_MODULES = 15
#: With more lines than this a module has.
MAX_LINES = 350
#: Foreign libraries and the modules that may import them.
OWNERS: Mapping[str, tuple[str, ...]] = {
    "asyncssh": ("cluster_collect.by_asyncssh", "demo"),
    # In the benchmark it is a rival of the collector.
    "paramiko": ("cluster_collect.by_paramiko", "benchmarks.collect_driver"),
    "dask": ("cluster_analysis.engine",),
    # The hook only makes certificates with it, for the cluster that it starts.
    "distributed": ("cluster_analysis.engine", "cluster_hook.dask_allocation"),
    "dask_jobqueue": ("cluster_analysis.engine.slurm_cluster",),
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


def imports_of(path: Path) -> set[str]:
    """Return the dotted names a module imports when it runs, those inside its functions too."""
    return _named(path, (node for node in ast.walk(_tree(path)) if node not in _for_types(path)))


def imports_for_types(path: Path) -> set[str]:
    """Return the dotted names a module imports under TYPE_CHECKING only."""
    return _named(path, _for_types(path))


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes(), str(path))


@cache
def _for_types(path: Path) -> frozenset[ast.AST]:
    tests = (node for node in ast.walk(_tree(path)) if isinstance(node, ast.If))
    return frozenset(
        below for node in tests if "TYPE_CHECKING" in ast.dump(node.test) for below in ast.walk(node)
    )


def _named(path: Path, nodes: Iterable[ast.AST]) -> set[str]:
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.add(node.module or "")
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def edges(*, for_types: bool = False) -> dict[str, set[str]]:
    """Return which modules of the project each module imports; `for_types`: those under TYPE_CHECKING."""
    known = modules()
    read = imports_for_types if for_types else imports_of
    return {name: {one for one in read(path) if one in known and one != name} for name, path in known.items()}


def room_of(name: str) -> str:
    """Return the room that a module is in."""
    return max((room for room in ALLOWED if is_in(name, room)), key=len)


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return every circle that a walk along the arrows of `graph` meets, as the names along it."""
    done: set[str] = set()
    found: list[list[str]] = []

    def walk(name: str, trail: tuple[str, ...]) -> None:
        if name in trail:
            found.append([*trail[trail.index(name) :], name])
        if name in trail or name in done:
            return
        for imported in sorted(graph[name]):
            walk(imported, (*trail, name))
        done.add(name)

    for name in graph:
        walk(name, ())
    return found


def is_in(name: str, part: str) -> bool:
    """Return whether a module is `part` or lies below it."""
    return name == part or name.startswith(f"{part}.")
