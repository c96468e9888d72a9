"""The names that a function uses in the order of its calls, by its source: nothing is run."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def definitions(path: Path) -> dict[str, ast.stmt]:
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
        targets = node.targets if isinstance(node, ast.Assign) else []
        places = [one for one in targets if not isinstance(one, ast.Name)]
        children = places if node.value is None else [node.value, *places]
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
    own = definitions(path)
    for used, is_own in _names(own[name]):
        yield used
        if is_own and used in own and used not in seen and used != name.rpartition(".")[2]:
            yield from _met(path, used, seen | {used, name})


@cache
def met_by(path: Path, name: str) -> dict[str, list[int]]:
    """When a function, or the methods of a class, meet each name; with helpers of their own module."""
    found: dict[str, list[int]] = {}
    for place, used in enumerate(_met(path, name)):
        found.setdefault(used, []).append(place)
    return found
