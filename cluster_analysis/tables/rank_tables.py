"""Tables of one rank, and of several that were read together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from msgspec import Struct, field

from cluster_analysis.tables import schema
from cluster_analysis.tables.model import RankMetadata
from cluster_run.facts import Fact
from cluster_run.ids import Rank
from cluster_run.problem import Problem

#: A table in pieces, in the order of the ranks.
Pieces = tuple[pa.Table, ...]


class RankTables(Struct, frozen=True):
    """One rank, read: tables of `schema`, metadata, and what could not be read.

    `figures` are tables of `schema.FIGURES` by name; one that is not there has no row. `sums` is HOST_SUMS.
    """

    rank: Rank
    steps: pa.Table = field(default_factory=schema.STEPS.empty_table)
    collectives: pa.Table = field(default_factory=schema.COLLECTIVES.empty_table)
    links: pa.Table = field(default_factory=schema.LINKS.empty_table)
    operators: pa.Table = field(default_factory=schema.OPERATORS.empty_table)
    packets: pa.Table = field(default_factory=schema.PACKETS.empty_table)
    metadata: RankMetadata = RankMetadata()
    problems: tuple[Problem, ...] = ()
    notes: tuple[Fact, ...] = ()
    iterations: pa.Table = field(default_factory=schema.ITERATIONS.empty_table)
    figures: Mapping[str, pa.Table] = field(default_factory=dict)
    spans: pa.Table = field(default_factory=schema.OPERATOR_SPANS.empty_table)
    sums: pa.Table = field(default_factory=schema.HOST_SUMS.empty_table)


class RanksTables(Struct, frozen=True):
    """Several ranks, read: tables of `schema`, each in pieces; see `RankTables`."""

    ranks: tuple[Rank, ...]
    metadata: Mapping[Rank, RankMetadata]
    problems: tuple[Problem, ...] = ()
    notes: tuple[Fact, ...] = ()
    steps: Pieces = ()
    operators: Pieces = ()
    packets: Pieces = ()
    iterations: Pieces = ()
    figures: Mapping[str, Pieces] = field(default_factory=dict)
    spans: Pieces = ()
    collectives: Pieces = ()
    sums: Pieces = ()
    links: Pieces = ()


_TABLES = RanksTables.__struct_fields__[4:]
_OF_NOBODY = RankTables(Rank(0))
#: Tables that have rows of steps.
BY_STEP = tuple(
    name for name in _TABLES if name != "figures" and "step" in getattr(_OF_NOBODY, name).column_names
)


def of_one(tables: RankTables) -> RanksTables:
    """Return a rank that was read alone."""
    pieces: dict[str, Any] = {name: (getattr(tables, name),) for name in _TABLES}
    pieces["figures"] = {name: (table,) for name, table in tables.figures.items()}
    return RanksTables(
        (tables.rank,), {tables.rank: tables.metadata}, tables.problems, tables.notes, **pieces
    )


def alone(tables: RanksTables) -> RankTables:
    """Return the tables of the only rank."""
    pieces = {name: own for name in _TABLES if (own := getattr(tables, name)) and name != "figures"}
    (rank,) = tables.ranks
    return RankTables(
        rank,
        metadata=tables.metadata[rank],
        problems=tables.problems,
        notes=tables.notes,
        figures={name: own for name, (own,) in tables.figures.items()},
        **{
            name: own[0] if len(own) == 1 else schema.one_behind_the_other(own)
            for name, own in pieces.items()
        },
    )
