"""Errors survive pickling, know their exit code, and the worst code wins; a missing extra is named."""

from __future__ import annotations

import ast
import importlib
import itertools
import pickle
import pkgutil
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import cluster_collect
import cluster_run
from cluster_run.errors import (
    ClusterError,
    ExitCode,
    InputError,
    InterruptedRunError,
    SchemaError,
    UsageError,
    spoken,
    worst,
)
from cluster_simulate.cli import main as simulate
from tests.commands import ran
from tests.layers import ROOT


def every_error(base: type[ClusterError] = ClusterError) -> Iterator[type[ClusterError]]:
    for package in (cluster_run, cluster_collect):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    seen = {base}
    pending = [base]
    while pending:
        for error in pending.pop().__subclasses__():
            # Those of the analysis say their reason by facts, and have a test of their own.
            if error not in seen and not error.__module__.startswith("cluster_analysis.sources"):
                seen.add(error)
                pending.append(error)
    return iter(sorted(seen, key=lambda error: error.__qualname__))


@pytest.mark.parametrize("arguments", [("node7: no answer",), ("node7: no answer", "is it switched on?"), ()])
def test_every_error_survives_pickling_with_text_advice_and_code(arguments: tuple[str, ...]) -> None:
    found = list(every_error())
    assert len(found) > 5
    for error_type in found:
        error = error_type(*arguments)
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is error_type
        assert copy.args == error.args
        assert str(copy) == str(error)
        assert (copy.message, copy.advice, copy.exit_code) == (error.message, error.advice, error.exit_code)


@pytest.mark.parametrize(
    ("error", "code"),
    [(ClusterError, 1), (UsageError, 2), (InputError, 1), (SchemaError, 1), (InterruptedRunError, 130)],
)
def test_exit_codes_are_those_of_the_contract(error: type[ClusterError], code: int) -> None:
    assert error("x").exit_code == code


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ((), 0),
        ((0, 3), 3),
        ((3, 4), 4),
        ((4, 1), 1),
        ((1, 130), 130),
        ((0, 3, 4, 1, 130), 130),
        ((0, 3, 4, 1), 1),
        ((0, 0), 0),
    ],
)
def test_the_worst_code_wins_in_every_order(codes: tuple[int, ...], expected: int) -> None:
    for order in itertools.permutations(map(ExitCode, codes)):
        assert worst(*order) == expected


def test_message_and_advice_read_as_one_line() -> None:
    assert str(InputError("a.json: not there", "make it")) == "a.json: not there (make it)"
    assert str(InputError("a.json: not there")) == "a.json: not there"
    assert str(InputError()) == "InputError"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyError("nodes"), "'nodes' is missing"),
        (TypeError("string indices must be integers"), "a value has another form"),
        (AttributeError("'list' object has no attribute 'get'"), "a value has another form"),
        (FileNotFoundError(2, "No such file or directory"), "No such file or directory"),
        (EOFError(), "it ends too early"),
        (ValueError("Expecting value: line 1"), "Expecting value: line 1"),
    ],
)
def test_what_is_wrong_with_a_document_is_said_without_names_of_classes(error: Exception, said: str) -> None:
    assert spoken(error) == said


def test_no_message_shows_an_error_as_the_interpreter_writes_it() -> None:
    product = (
        path
        for name in ("analysis", "collect", "hook", "tell", "fleet", "act", "run", "reduce")
        for path in (ROOT / f"cluster_{name}").rglob("*.py")
    )
    assert not [path for path in product if "{error!r}" in path.read_text("utf-8")]


def of_the_system(kinds: ast.expr | None) -> bool:
    """Whether an `except` takes errors of the system, alone or with others."""
    return kinds is not None and bool({"OSError", "ERRORS"} & set(re.findall(r"\w+", ast.unparse(kinds))))


def told_as_python_tells_it(handler: ast.ExceptHandler) -> Iterator[ast.AST]:
    for node in (node for part in handler.body for node in ast.walk(part)):
        into_text = isinstance(node, ast.FormattedValue) and node.value
        by_str = isinstance(node, ast.Call) and ast.unparse(node.func) == "str" and node.args[0]
        if any(isinstance(one, ast.Name) and one.id == handler.name for one in (into_text, by_str)):
            yield node


def test_what_the_system_refused_is_told_without_its_number() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in ROOT.glob("cluster_*/**/*.py")
        for handler in ast.walk(ast.parse(path.read_text()))
        if isinstance(handler, ast.ExceptHandler) and of_the_system(handler.type)
        for node in told_as_python_tells_it(handler)
        if isinstance(node, ast.expr)
    ]
    # What a channel or SFTP says is the server's text, not the system's.
    allowed = ("by_asyncssh/connection.py", "by_paramiko/files.py")
    assert [one for one in found if not one.partition(":")[0].endswith(allowed)] == []


_JOB = ("--tp", "1", "--pp", "1", "--dp", "2", "--steps", "3", "--dated", "1000000000", "-q")


def _without(library: str, package: str, *given: str) -> str:
    """Return what a command says where a library cannot be imported."""
    main = f"import sys\nsys.modules[{library!r}] = None\nfrom {package}.cli import main\n"
    ended = ran([sys.executable, "-c", f"{main}sys.exit(main(sys.argv[1:]))", *given])
    return ended.stdout + ended.stderr


@pytest.mark.parametrize(("package", "given"), [("cluster_fleet", ["status"]), ("cluster_act", ["--log"])])
def test_a_command_that_needs_an_extra_names_it(package: str, given: list[str]) -> None:
    said = _without("sqlalchemy", package, *given, "--db", "fleet.db")
    assert "sqlalchemy is not installed (pip install 'cluster-profiler[fleet]')" in said


def test_a_run_is_judged_though_the_fleet_cannot_be_asked_for_want_of_an_extra(tmp_path: Path) -> None:
    simulate([str(tmp_path / "run"), *_JOB])
    said = _without("sqlalchemy", "cluster_analysis", str(tmp_path / "run"), "--no-output", "--fleet", "f.db")
    assert "2 ranks and 3 steps" in said
    assert (
        "sqlalchemy is not installed (pip install 'cluster-profiler[fleet]'): nothing is known of"
        in " ".join(said.split())
    )


def test_a_host_that_needs_an_extra_names_it_and_the_other_hosts_go_on(tmp_path: Path) -> None:
    simulate([str(tmp_path / "run"), *_JOB])
    data = tmp_path / "run" / "cluster_profiler" / "1" / "profiler"
    (tmp_path / "hosts.yaml").write_text(
        f"version: 1\nhosts:\n  - {{local: {data}, server_id: near}}\n"
        f"  - {{address: 127.0.0.1, transport: paramiko, profiler_root: {data}}}\n"
    )
    given = ("--inventory", str(tmp_path / "hosts.yaml"), "--check")
    said = " ".join(_without("paramiko", "cluster_collect", *given).split())
    assert "paramiko is not installed → pip install 'cluster-profiler[paramiko]'" in said
    assert "1 of 2 hosts ready" in said
