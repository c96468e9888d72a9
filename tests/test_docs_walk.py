"""docs/from-file-to-verdict.md names functions that are there, their callers, and their order."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.layers import ROOT
from tests.test_docs_architecture import WALK, rows

#: What begins a way through the code, and a registry: modules that it names are asked for by their names.
_FROM_OUTSIDE = "the command line"
_REGISTRIES = {"FILES": "findings_json"}
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Row(NamedTuple):
    """A function of the page, in its module, and who calls it."""

    path: Path
    name: str
    callers: tuple[str, ...]


def _row(cells: list[str]) -> Row:
    found = re.fullmatch(r"`([\w/]+\.py)` \(`([\w.]+)`\)", cells[0])
    assert found is not None, cells[0]
    return Row(ROOT / found[1], found[2], tuple(re.findall(r"`([\w.]+)`", cells[1])))


SECTIONS = [rows(f"\n{part}") for part in WALK.split("\n## ")[1:4]]
ROWS = [_row(cells) for section in SECTIONS for cells in section]
BY_NAME = {one.name: one for one in ROWS}


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def _definitions(path: Path) -> dict[str, ast.stmt]:
    """What a module defines by name: methods also as `Class.method`."""
    found: dict[str, ast.stmt] = {}
    for node in _tree(path).body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {one.id: node for one in targets if isinstance(one, ast.Name)}
        elif isinstance(node, _Function):
            found[node.name] = node
        elif isinstance(node, ast.ClassDef):
            found[node.name] = node
            for name, inner in _methods(node).items():
                found[f"{node.name}.{name}"] = inner
                found.setdefault(name, inner)
    return found


def _methods(node: ast.ClassDef) -> dict[str, ast.stmt]:
    return {one.name: one for one in node.body if isinstance(one, _Function)}


def _names(node: ast.AST) -> Iterator[tuple[str, bool]]:
    """The names that some code uses, in the order in which they are worked out; whether its module's."""
    children: Sequence[ast.AST]
    if isinstance(node, ast.Call):
        children = [*node.args, *node.keywords, node.func]
    elif isinstance(node, ast.ClassDef):
        methods = _methods(node)
        children = [methods["run"]] if "run" in methods else list(methods.values())
    elif isinstance(node, _Function):
        children = node.body
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        children = [] if node.value is None else [node.value]
    else:
        children = list(ast.iter_child_nodes(node))
    for child in children:
        yield from _names(child)
    if isinstance(node, ast.Name):
        yield node.id, True
    if isinstance(node, ast.Attribute):
        yield node.attr, isinstance(node.value, ast.Name) and node.value.id == "self"
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value.rpartition(".")[2], False


def _met(path: Path, name: str, seen: frozenset[str] = frozenset()) -> Iterator[str]:
    """Names that a function uses in their order, those of helpers of its own module in their places."""
    own = _definitions(path)
    for used, is_own in _names(own[name]):
        yield used
        if is_own and used in own and used not in seen and used != name.rpartition(".")[2]:
            yield from _met(path, used, seen | {used, name})


@cache
def met_by(caller: str) -> dict[str, list[int]]:
    """When each name is met in what a row of the page does."""
    row = BY_NAME[caller]
    found: dict[str, list[int]] = {}
    for place, used in enumerate(_met(row.path, row.name)):
        found.setdefault(used, []).append(place)
    return found


def _short(name: str, module: Path, caller: str) -> str:
    """What a caller calls a function by: its last name, or the module of a registry's entry."""
    return module.stem if caller in _REGISTRIES else name.rpartition(".")[2]


def test_the_page_has_rows_for_the_collector_and_for_both_halves_of_the_analysis() -> None:
    assert [len(section) > 10 for section in SECTIONS] == [True, True, True]
    assert len(BY_NAME) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_each_function_of_the_page_is_there_and_is_called_by_the_one_that_the_page_says(row: Row) -> None:
    assert row.name in _definitions(row.path)
    for caller in row.callers:
        assert _short(row.name, row.path, caller) in met_by(caller), f"{caller} does not call {row.name}"


def test_only_what_the_user_calls_has_no_caller() -> None:
    assert [one.name for one in ROWS if not one.callers] == ["carry_out", "run"]
    assert WALK.count(_FROM_OUTSIDE) == 2


@pytest.mark.parametrize("caller", sorted({caller for row in ROWS for caller in row.callers}))
def test_rows_with_the_same_caller_stand_in_the_order_of_their_calls(caller: str) -> None:
    called = [one for one in ROWS if one.callers and one.callers[0] == caller]
    now = 0
    for one in called:
        later = [place for place in met_by(caller)[_short(one.name, one.path, caller)] if place >= now]
        assert later, f"{caller} calls {one.name} before the row above it"
        now = later[0]
