"""Tables of one rank, and of several that were read together."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
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
    steps: pa.Table
    collectives: pa.Table
    links: pa.Table
    operators: pa.Table
    packets: pa.Table
    metadata: RankMetadata = RankMetadata()
    problems: tuple[Problem, ...] = ()
    notes: tuple[Fact, ...] = ()
    iterations: pa.Table = field(default_factory=partial(schema.empty, schema.ITERATIONS))
    figures: Mapping[str, pa.Table] = field(default_factory=dict)
    spans: pa.Table = field(default_factory=partial(schema.empty, schema.OPERATOR_SPANS))
    sums: pa.Table = field(default_factory=partial(schema.empty, schema.HOST_SUMS))


class RanksTables(Struct, frozen=True):
    """Several ranks, read: tables of `schema`, each in pieces; see `RankTables`."""

    ranks: tuple[Rank, ...]
    metadata: Mapping[Rank, RankMetadata]
    problems: tuple[Problem, ...]
    notes: tuple[Fact, ...]
    steps: Pieces = ()
    operators: Pieces = ()
    packets: Pieces = ()
    iterations: Pieces = ()
    figures: Mapping[str, Pieces] = field(default_factory=dict)
    spans: Pieces = ()
    collectives: Pieces = ()
    sums: Pieces = ()
    links: Pieces = ()


def of_one(tables: RankTables) -> RanksTables:
    """Return a rank that was read alone."""
    names = RanksTables.__struct_fields__[4:]
    pieces: dict[str, Any] = {name: (getattr(tables, name),) for name in names}
    pieces["figures"] = {name: (table,) for name, table in tables.figures.items()}
    return RanksTables(
        (tables.rank,), {tables.rank: tables.metadata}, tables.problems, tables.notes, **pieces
    )
