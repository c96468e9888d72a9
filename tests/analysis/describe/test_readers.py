"""What the ranks' files are parsed into has a reader in the product: nothing is parsed for nobody."""

from __future__ import annotations

import ast
from functools import cache

import pyarrow as pa
import pytest
from msgspec.structs import fields

from cluster_analysis.describe.places import figures_between_ranks
from cluster_analysis.tables.rank_tables import RankTables
from cluster_analysis.tables.schema import COUNTERS, FIGURES
from tests.layers import modules

#: Who reads, writes and carries tables, whatever is in them: what only these name has no reader.
CARRIERS = ("sources", "tables", "engine", "pipeline", "result", "api", "outputs")
#: How the carriers hand on what a rank's table became: under another name.
HANDED_ON = {"collectives": "matched", "rank": "ranks", "sums": "totals"}


@cache
def names_read() -> set[str]:
    """Return every attribute and every text of a module that reads."""
    readers = [
        path
        for name, path in modules().items()
        if name.startswith("cluster_analysis.") and name.split(".")[1] not in CARRIERS
    ]
    trees = [ast.parse(path.read_text("utf-8")) for path in readers]
    return {
        node.attr if isinstance(node, ast.Attribute) else str(node.value)
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, (ast.Attribute, ast.Constant))
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FIGURES))
def test_every_table_that_describes_a_rank_is_read(name: str) -> None:
    assert name in names_read()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", sorted(one.name for one in fields(RankTables) if one.name not in ("figures", "problems", "notes"))
)
def test_every_group_of_columns_of_a_rank_is_read(name: str) -> None:
    assert HANDED_ON.get(name, name) in names_read()


def test_every_figure_is_told_between_the_ranks_that_have_it() -> None:
    rows = [
        {"rank": rank, "metric": metric, "label": "HCCL", "value": value}
        for metric, values in {
            "module_peak_reserved_bytes": {0: 5.0, 1: 9.0, 2: 7.0},
            "relay_operators_count": {4: 0.0},
        }.items()
        for rank, value in values.items()
    ]
    found = figures_between_ranks(pa.Table.from_pylist(rows, schema=COUNTERS)).to_pylist()
    assert [tuple(row.values()) for row in found] == [
        ("module_peak_reserved_bytes", "HCCL", 3, 5.0, 7.0, 9.0, 1),
        ("relay_operators_count", "HCCL", 1, 0.0, 0.0, 0.0, 4),
    ]
