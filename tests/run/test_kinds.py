"""What is true of a kind of finding stands in its record alone."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from cluster_run.kinds import KINDS
from tests.layers import ROOT, modules

#: Where sentences are made of a kind: there it is a key.
_SENTENCES = "cluster_analysis.sentences"


def _names_in(node: ast.AST) -> set[str]:
    return {one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and one.value in KINDS}


@pytest.mark.slow
def test_judging_compares_with_no_name_of_a_kind() -> None:
    compared = {
        (name, node.lineno)
        for name, path in modules().items()
        if name.startswith("cluster_analysis.") and not name.startswith(_SENTENCES)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Compare) and _names_in(node)
    }
    assert compared == set()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_kind_is_named_in_few_files(kind: str) -> None:
    packages = [ROOT / one for one in ("cluster_run", "cluster_words", "cluster_analysis")]
    files = [path for one in packages for path in sorted(one.rglob("*")) if path.suffix in (".py", ".json")]
    naming = [path for path in files if f'"{kind}"' in path.read_text(encoding="utf-8")]
    made = {Path("cluster_run/schemas/findings.schema.json")}  # by `make gold`
    named = {path.relative_to(ROOT) for path in naming} - made
    assert len(named) <= 7, named
