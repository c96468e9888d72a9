"""What a registry lists is all there is: a detector, report, way or rule that nobody registered is found."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeGuard

import pytest

from cluster_run.kinds import FAULT_KINDS
from tests.layers import ROOT

Definition = ast.FunctionDef | ast.ClassDef | ast.Assign


def _arguments(node: Definition) -> tuple[str, ...]:
    return tuple(one.arg for one in node.args.args) if isinstance(node, ast.FunctionDef) else ()


def _annotations(node: Definition) -> tuple[str, ...]:
    given = node.args.args if isinstance(node, ast.FunctionDef) else []
    return tuple(ast.unparse(one.annotation) for one in given if one.annotation is not None)


def _returns(node: Definition) -> str:
    return ast.unparse(node.returns) if isinstance(node, ast.FunctionDef) and node.returns else ""


def _name(node: Definition) -> str:
    return ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else node.name


def _takes(*names: str) -> Callable[[Definition], bool]:
    return lambda node: _arguments(node) == names


def _reports(*annotations: str) -> Callable[[Definition], bool]:
    return lambda node: _annotations(node) == annotations


def _gives_a_draft(node: Definition) -> bool:
    return _returns(node) == "Draft" and _arguments(node) != ("path",)


def _is_way(node: Definition) -> bool:
    return isinstance(node, ast.ClassDef) and node.name.endswith("Way")


def _acts(node: Definition) -> bool:
    body = node.body if isinstance(node, ast.ClassDef) else []
    return {"apply", "undo"} <= {one.name for one in body if isinstance(one, ast.FunctionDef)}


#: Of each registry its file, where what it lists is made, and how that is known.
REGISTRIES = {
    "detectors": (
        "cluster_analysis/judge/detection.py", "cluster_analysis/judge/detectors", 9,
        _takes("case", "found"),
    ),
    "rules of the gates": (
        "cluster_analysis/judge/gates.py", "cluster_analysis/judge/gates.py", 13, _takes("one", "context"),
    ),
    "reports in files": ("cluster_analysis/outputs/registry.py", "cluster_analysis", 5, _reports("Reported")),
    "reports on stdout": (
        "cluster_analysis/outputs/registry.py", "cluster_analysis", 3, _reports("Reported", "Shown"),
    ),
    "forms of inventories": (
        "cluster_collect/inventory/forms.py", "cluster_collect/inventory", 3, _gives_a_draft,
    ),
    "ways to capture": ("cluster_collect/live/ways/registry.py", "cluster_collect/live/ways", 4, _is_way),
    "ways to act": ("cluster_act/ways/registry.py", "cluster_act/ways", 5, _acts),
    "subcommands of the hook": (
        "cluster_hook/cli.py", "cluster_hook/subcommands", 6, _takes("commands"),
    ),
}  # fmt: skip


@cache
def _definitions(path: Path) -> list[Definition]:
    tree = ast.parse(path.read_text("utf-8"))
    return [one for one in tree.body if isinstance(one, ast.FunctionDef | ast.ClassDef | ast.Assign)]


def made(place: str, is_one: Callable[[Definition], bool]) -> dict[str, Path]:
    """The public definitions below a place that a registry has to list, each with its module."""
    root = ROOT / place
    found: dict[str, Path] = {}
    for path in sorted(root.rglob("*.py")) if root.is_dir() else [root]:
        for node in _definitions(path):
            if is_one(node) and not _name(node).startswith("_"):
                found[f"{path.stem}.{_name(node)}"] = path
    return found


@pytest.mark.parametrize("what", REGISTRIES)
def test_everything_that_is_made_stands_in_its_registry(what: str) -> None:
    registry, place, n_least, is_one = REGISTRIES[what]
    text = (ROOT / registry).read_text("utf-8")
    listed = re.findall(r"[\w.]+", text)
    found = made(place, is_one)
    assert len(found) >= n_least, found
    owns = [name.rpartition(".")[2] for name in found]
    for (name, path), own in zip(found.items(), owns, strict=True):
        module = str(path.relative_to(ROOT).with_suffix("")).replace("/", ".")
        # More than its import or its own definition. A name that several have says nothing of one of them.
        n_own = listed.count(own) if owns.count(own) == 1 else 0
        assert n_own + 2 * (listed.count(name) + listed.count(module)) >= 2, (
            f"{module}.{own} is missing in {registry}"
        )


#: Where a kind is asked for by its name: its record, what makes it, its words, and its commands.
NAMES_KINDS = (
    "cluster_run/kinds.py",
    "judge/",
    "cluster_words/",
    "sentences/",
    "reports/commands.py",
    "cluster_simulate/",
)


def test_a_kind_is_asked_for_by_its_record_and_not_by_its_name() -> None:
    kinds = re.compile("[\"'](" + "|".join(FAULT_KINDS) + ")[\"']|slow_\\(")
    code = [
        file
        for package in ROOT.glob("cluster_*")
        for file in package.rglob("*")
        if file.suffix in (".py", ".js", ".j2")
    ]
    texts = {str(file.relative_to(ROOT)): file.read_text("utf-8") for file in code}
    # A search for single words is a hundred times as fast as one for a pattern.
    maybe = {name for name, text in texts.items() if any(word in text for word in (*FAULT_KINDS, "slow_("))}
    naming = [name for name in sorted(maybe) if kinds.search(texts[name])]
    assert len(code) > 500
    assert [name for name in naming if not any(place in name for place in NAMES_KINDS)] == []


def _is_literal(node: ast.AST) -> TypeGuard[ast.Subscript]:
    return isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "Literal"


def _words(node: ast.AST) -> frozenset[str]:
    """The words of a Literal, tuple, list or set; none if it holds anything else."""
    if _is_literal(node):
        node = node.slice
    given = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else []
    words = [one.value for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return frozenset(words) if len(words) == len(given) else frozenset()


@pytest.mark.slow
def test_the_words_of_a_literal_stand_there_alone() -> None:
    named: dict[frozenset[str], str] = {}
    listed: dict[frozenset[str], list[str]] = {}
    for path in sorted(file for package in ROOT.glob("cluster_*") for file in package.rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        for node in tree.body:
            if isinstance(node, ast.Assign) and _is_literal(node.value):
                named[_words(node.value)] = _name(node)
        lists = [
            one for one in ast.walk(tree) if isinstance(one, ast.Subscript | ast.Tuple | ast.List | ast.Set)
        ]
        inside = {id(one.slice) for one in lists if isinstance(one, ast.Subscript)}
        for one in lists:
            if id(one) not in inside and len(words := _words(one)) > 1:
                listed.setdefault(words, []).append(f"{path.relative_to(ROOT)}:{one.lineno}")
    assert len(named) > 20
    assert {named[words]: places for words, places in listed.items() if words in named and places[1:]} == {}
