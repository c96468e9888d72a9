"""The declared layers hold: who may import whom, and who may know which library."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.layers import (
    ALLOWED,
    DECODING,
    IN_ONE_MODULE,
    MAX_DECIDING_LINES,
    MAX_LINES,
    MAX_MODULES,
    OF_VALUES,
    OWNERS,
    PACKAGES,
    ROOT,
    circles,
    edges,
    imports_of,
    is_in,
    levels,
    modules,
    numbers_that_decide,
    room_of,
)

COMMANDS = (
    "cluster_act",
    "cluster_analysis",
    "cluster_collect",
    "cluster_fleet",
    "cluster_hook",
    "cluster_simulate",
)
HEAVY = (
    *("ClusterShell", "asyncssh", "dask", "distributed", "numpy", "pandas", "paramiko"),
    *("pyarrow", "rich", "sqlalchemy", "yaml", "zstandard"),
)


def _package(name: str) -> str:
    return name.partition(".")[0]


def test_a_room_imports_only_the_rooms_it_may() -> None:
    wrong = {
        (name, imported)
        for graph in (edges(), edges(for_types=True))
        for name, imports in graph.items()
        for imported in imports
        if room_of(imported) != room_of(name)
        and not any(is_in(imported, room) for room in ALLOWED[room_of(name)])
        and not is_in(imported, room_of(name))
    }
    assert wrong == set()


def test_every_package_is_a_room_with_a_rule() -> None:
    packages = {name for name, path in modules().items() if path.name == "__init__.py"}
    assert packages - set(ALLOWED) == set()


def test_every_rule_is_about_something_that_is_there() -> None:
    known = modules()
    assert [room for room in ALLOWED if room not in known] == []
    assert [one for allowed in ALLOWED.values() for one in allowed if one not in known] == []


def test_no_package_has_more_modules_than_a_reader_can_hold() -> None:
    counted = Counter(path.parent for path in modules().values() if path.name != "__init__.py")
    too_many = {str(folder.relative_to(ROOT)): n for folder, n in counted.items() if n > MAX_MODULES}
    assert too_many == {}


def test_no_module_is_longer_than_one_idea() -> None:
    lengths = {name: len(path.read_text().splitlines()) for name, path in modules().items()}
    assert {name: n for name, n in lengths.items() if n > MAX_LINES} == {}


def test_what_decides_is_short_enough_to_be_known_as_a_whole() -> None:
    rooms = ("cluster_analysis.judge", "cluster_analysis.trace", "cluster_analysis.replay")
    deciding = [path for name, path in modules().items() if any(is_in(name, room) for room in rooms)]
    assert sum(len(path.read_text().splitlines()) for path in deciding) <= MAX_DECIDING_LINES


def test_cluster_run_needs_the_standard_library_and_for_completions_shtab() -> None:
    foreign = {
        (name, imported)
        for name, path in modules().items()
        if is_in(name, "cluster_run")
        for imported in imports_of(path)
        if _package(imported) not in sys.stdlib_module_names | {"cluster_run"}
    }
    assert foreign == {("cluster_run.completions", "shtab")}


def test_nothing_in_a_package_imports_in_a_circle_not_inside_functions_by_name_or_for_types() -> None:
    assert {package: found for package, graph in levels().items() if (found := circles(graph))} == {}


def test_the_packages_stand_in_the_order_of_their_imports() -> None:
    late = {
        (name, imported)
        for name, imports in levels()[""].items()
        for imported in imports
        if PACKAGES.index(imported) > PACKAGES.index(name)
    }
    assert late == set()


@pytest.mark.parametrize("library", sorted(OWNERS))
def test_a_library_is_known_only_where_it_belongs(library: str) -> None:
    users = {name for name, path in modules().items() if library in map(_package, imports_of(path))}
    strangers = {name for name in users if not any(is_in(name, owner) for owner in OWNERS[library])}
    assert strangers == set()


def test_what_decodes_nothing_has_of_msgspec_the_classes_of_values_alone() -> None:
    used = {
        name: {one for one in imports_of(path) if _package(one) == "msgspec"}
        for name, path in modules().items()
        if not any(is_in(name, room) for room in DECODING)
    }
    # `import msgspec` names nothing below it, and so could decode.
    assert [name for name, names in used.items() if names == {"msgspec"}] == []
    of_it = {(name, one) for name, names in used.items() for one in names - {"msgspec"}}
    assert {(name, one) for name, one in of_it if not any(is_in(one, value) for value in OF_VALUES)} == set()


@pytest.mark.parametrize("library", IN_ONE_MODULE)
def test_a_library_is_imported_by_one_module_of_a_package(library: str) -> None:
    users = [name for name, path in modules().items() if library in map(_package, imports_of(path))]
    packages = [_package(name) for name in users if not is_in(name, "demo")]
    assert len(packages) == len(set(packages)), users


@pytest.mark.parametrize(
    "room", [f"cluster_analysis.{room}" for room in ("judge", "trace", "replay", "topology")]
)
def test_numbers_that_decide_stand_in_the_thresholds(room: str) -> None:
    found = {
        (name, *number)
        for name, path in modules().items()
        if is_in(name, room)
        for number in numbers_that_decide(path)
    }
    assert found == set()


def test_a_threshold_is_defined_once() -> None:
    named = [
        target.id
        for name, path in modules().items()
        if is_in(name, "cluster_analysis.thresholds")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    ]
    assert len(named) > 50
    assert [name for name, n in Counter(named).items() if n > 1] == []


def test_package_files_are_empty() -> None:
    full = [
        name for name, path in modules().items() if path.name == "__init__.py" and path.read_bytes().strip()
    ]
    # What notebooks import by the package's own name. It looks its two names up late and imports nothing.
    assert full == ["cluster_analysis"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("option", ["--help", "--version"])
@pytest.mark.parametrize("command", COMMANDS)
def test_help_and_version_import_nothing_heavy(command: str, option: str) -> None:
    program = (
        "import sys\n"
        f"sys.argv = ['{command}', '{option}']\n"
        f"import {command}.__main__ as command\n"
        "try:\n    command.run()\nexcept SystemExit as stop:\n    assert not stop.code, stop.code\n"
        f"print('heavy:', sorted(set({HEAVY!r}) & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=280, check=True
    )
    assert done.stdout.splitlines()[-1] == "heavy: []"


def test_no_test_has_each_worker_of_pytest_load_the_clusters_of_dask() -> None:
    """Each imports all tests, and these take half a second: tests that need them import them in functions."""
    loading = ("import distributed", "from distributed", "from cluster_analysis.engine.clusters")
    for path in Path(ROOT, "tests").rglob("*.py"):
        text = path.read_text()
        if any(one in text for one in loading):
            at_the_top = [ast.unparse(node) for node in ast.parse(text).body]
            assert not [
                one for one in at_the_top if one.startswith(loading) and not one.endswith("import reach")
            ], path


def test_every_source_file_belongs_to_a_package() -> None:
    known = set(modules().values())
    loose = [path for path in Path(ROOT).glob("cluster_*/**/*.py") if path not in known]
    assert loose == []
