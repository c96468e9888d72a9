"""Tables of one rank."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pyarrow as pa
from msgspec import Struct, field

from cluster_analysis.tables import schema
from cluster_analysis.tables.model import RankMetadata
from cluster_run.facts import Fact
from cluster_run.ids import Rank
from cluster_run.problem import Problem


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
