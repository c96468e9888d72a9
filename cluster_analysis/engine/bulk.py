"""The large tables of a batch of ranks: by step, and what is summed over them while they are in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from cluster_analysis.engine.joined import cut_by_step, joined
from cluster_analysis.engine.totals import totals_of
from cluster_analysis.tables.ranks_tables import RanksTables
from cluster_analysis.tables.schema import COLLECTIVES, HOST_SUMS, LINKS, TOTALS
from cluster_analysis.topology.groups import GROUP_USE
from cluster_analysis.topology.use import group_use
from cluster_run.ids import Step


class Bulk(Struct, frozen=True):
    """The large tables of some ranks.

    Attributes:
        by_step: COLLECTIVES and LINKS of each step; those of a step may be parts of a larger table.
        totals: TOTALS.
        uses: GROUP_USE.
    """

    by_step: dict[Step, tuple[pa.Table, pa.Table]]
    totals: pa.Table
    uses: pa.Table


def bulk_of(tables: Sequence[RanksTables]) -> Bulk:
    """Return the large tables of ranks; those of each of `tables` come behind those of the one before."""
    operators = [_operators(one) for one in tables]
    links = [_links(one) for one in tables]
    uses = [group_use(own, all_links) for (_, _, own), (_, all_links) in zip(operators, links, strict=True)]
    of_steps = _in_order([by_step for by_step, _, _ in operators], COLLECTIVES)
    links_of_steps = _in_order([by_step for by_step, _ in links], LINKS)
    nothing = COLLECTIVES.empty_table(), LINKS.empty_table()
    return Bulk(
        {
            Step(step): (of_steps.get(step, nothing[0]), links_of_steps.get(step, nothing[1]))
            for step in sorted(of_steps.keys() | links_of_steps.keys())
        },
        joined([totals for _, totals, _ in operators], TOTALS),
        joined(uses, GROUP_USE),
    )


def _operators(ranks: RanksTables) -> tuple[Mapping[int, pa.Table], pa.Table, pa.Table]:
    """Return COLLECTIVES by step, TOTALS, and what `group_use` takes."""
    if ranks.laid is not None:
        return ranks.laid.by_step, ranks.laid.totals, ranks.laid.uses
    collectives = joined(ranks.collectives, COLLECTIVES)
    totals = totals_of(collectives, joined(ranks.sums, HOST_SUMS))
    return _cut(collectives), totals, collectives


def _links(ranks: RanksTables) -> tuple[Mapping[int, pa.Table], pa.Table]:
    """Return LINKS by step, and all of them."""
    if ranks.links_by_step is not None:
        return ranks.links_by_step, joined([*ranks.links_by_step.values()], LINKS)
    links = joined(ranks.links, LINKS)
    return _cut(links), links


def _cut(table: pa.Table) -> dict[int, pa.Table]:
    steps = [Step(step) for step in sorted(set(pc.unique(table["step"]).to_pylist()) - {None})]
    return dict(zip(steps, cut_by_step(table, steps), strict=True))


def _in_order(tables: Sequence[Mapping[int, pa.Table]], schema: pa.Schema) -> dict[int, pa.Table]:
    """Return the rows of each step, those of one of `tables` behind those of the one before."""
    if len(tables) == 1:
        return dict(tables[0])
    pieces: dict[int, list[pa.Table]] = {}
    for one in tables:
        for step, rows in one.items():
            pieces.setdefault(step, []).append(rows)
    return {step: joined(own, schema) for step, own in pieces.items()}
