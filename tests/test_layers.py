"""The declared layers hold: who may import whom, and who may know which library."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.layers import ALLOWED, FORBIDDEN, IN_ONE_MODULE, OWNERS, ROOT, edges, imports_of, is_in, modules

COMMANDS = {
    "cluster_collect": "cluster_collect",
    "cluster_analysis": "cluster_analysis",
    "cluster_analysis.simulation": "cluster_analysis.simulation",
    "cluster_hook": "cluster_hook",
}
HEAVY = ("asyncssh", "dask", "distributed", "pandas", "paramiko")


def _package(name: str) -> str:
    return name.partition(".")[0]


def test_packages_import_only_the_packages_they_may() -> None:
    wrong = {
        (name, imported)
        for name, imports in edges(at_start=False).items()
        for imported in imports
        if _package(imported) not in {_package(name), *ALLOWED[_package(name)]}
    }
    assert wrong == set()


def test_cluster_run_needs_the_standard_library_only() -> None:
    foreign = {
        (name, imported)
        for name, path in modules().items()
        if is_in(name, "cluster_run")
        for imported in imports_of(path)
        if _package(imported) not in sys.stdlib_module_names | {"cluster_run"}
    }
    assert foreign == set()


@pytest.mark.parametrize("part", sorted(FORBIDDEN))
def test_no_arrow_of_the_analysis_goes_back(part: str) -> None:
    wrong = {
        (name, imported)
        for name, imports in edges(at_start=False).items()
        if is_in(name, part)
        for imported in imports
        if any(is_in(imported, other) for other in FORBIDDEN[part])
    }
    assert wrong == set()


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = edges(at_start=True)
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, f"circle: {' -> '.join([*trail[trail.index(name) :], name])}"
        if name in done:
            return
        for imported in sorted(graph[name]):
            visit(imported, (*trail, name))
        done.add(name)

    for name in graph:
        visit(name, ())


def test_detectors_do_not_import_the_pipeline_of_detection() -> None:
    graph = edges(at_start=False)
    wrong = {name for name in graph if is_in(name, "cluster_analysis.detectors")} & {
        name for name, imports in graph.items() if "cluster_analysis.detection" in imports
    }
    assert wrong == set()


@pytest.mark.parametrize("library", sorted(OWNERS))
def test_a_library_is_known_only_where_it_belongs(library: str) -> None:
    users = {name for name, path in modules().items() if library in map(_package, imports_of(path))}
    strangers = {name for name in users if not any(is_in(name, owner) for owner in OWNERS[library])}
    assert strangers == set()


@pytest.mark.parametrize("library", IN_ONE_MODULE)
def test_a_library_is_imported_by_one_module_of_a_package(library: str) -> None:
    users = [name for name, path in modules().items() if library in map(_package, imports_of(path))]
    packages = [_package(name) for name in users if not is_in(name, "demo")]
    assert len(packages) == len(set(packages)), users


def test_package_files_are_empty() -> None:
    full = [path for path in modules().values() if path.name == "__init__.py" and path.read_bytes().strip()]
    assert full == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_help_imports_nothing_heavy(command: str) -> None:
    program = (
        "import sys\n"
        f"sys.argv = ['{command}', '--help']\n"
        f"import {COMMANDS[command]}.__main__ as command\n"
        "try:\n    command.run()\nexcept SystemExit as stop:\n    assert not stop.code, stop.code\n"
        f"print('heavy:', sorted(set({HEAVY!r}) & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=280, check=True
    )
    assert done.stdout.splitlines()[-1] == "heavy: []"


def test_every_source_file_belongs_to_a_package() -> None:
    known = set(modules().values())
    loose = [path for path in Path(ROOT).glob("cluster_*/**/*.py") if path not in known]
    assert loose == []
