"""Tables of several ranks, read together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from msgspec import Struct, field

from cluster_analysis.tables.model import RankMetadata
from cluster_analysis.tables.rank_tables import RankTables
from cluster_run.facts import Fact
from cluster_run.ids import Rank
from cluster_run.problem import Problem

#: A table in pieces, in the order of the ranks.
Pieces = tuple[pa.Table, ...]


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


def side_by_side(tables: Sequence[RankTables]) -> RanksTables:
    """Return ranks that were read one by one."""
    names = {name for one in tables for name in one.figures}
    return RanksTables(
        ranks=tuple(one.rank for one in tables),
        metadata={one.rank: one.metadata for one in tables},
        problems=tuple(problem for one in tables for problem in one.problems),
        notes=tuple(note for one in tables for note in one.notes),
        steps=tuple(one.steps for one in tables),
        operators=tuple(one.operators for one in tables),
        packets=tuple(one.packets for one in tables),
        iterations=tuple(one.iterations for one in tables),
        figures={name: tuple(one.figures[name] for one in tables if name in one.figures) for name in names},
        spans=tuple(one.spans for one in tables),
        collectives=tuple(one.collectives for one in tables),
        sums=tuple(one.sums for one in tables),
        links=tuple(one.links for one in tables),
    )
