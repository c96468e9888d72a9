"""Tables of ranks that were read together: of one, or of several."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from msgspec import Struct, field

from cluster_analysis.tables import schema
from cluster_analysis.tables.model import RankMetadata
from cluster_run.facts import Fact
from cluster_run.ids import Rank
from cluster_run.problem import Problem


class RankTables(Struct, frozen=True):
    """Ranks, read: tables of `schema`, the metadata of each rank, and what could not be read.

    `figures` are tables of `schema.FIGURES` by name; one that is not there has no row. `sums` is HOST_SUMS.
    """

    metadata: Mapping[Rank, RankMetadata]
    problems: tuple[Problem, ...] = ()
    notes: tuple[Fact, ...] = ()
    steps: pa.Table = field(default_factory=schema.STEPS.empty_table)
    collectives: pa.Table = field(default_factory=schema.COLLECTIVES.empty_table)
    links: pa.Table = field(default_factory=schema.LINKS.empty_table)
    operators: pa.Table = field(default_factory=schema.OPERATORS.empty_table)
    packets: pa.Table = field(default_factory=schema.PACKETS.empty_table)
    iterations: pa.Table = field(default_factory=schema.ITERATIONS.empty_table)
    figures: Mapping[str, pa.Table] = field(default_factory=dict)
    spans: pa.Table = field(default_factory=schema.OPERATOR_SPANS.empty_table)
    sums: pa.Table = field(default_factory=schema.HOST_SUMS.empty_table)


_OF_NOBODY = RankTables({})
#: Tables that have rows of steps.
BY_STEP = tuple(
    name
    for name in RankTables.__struct_fields__
    if isinstance(table := getattr(_OF_NOBODY, name), pa.Table) and "step" in table.column_names
)
