"""The large tables of a batch of ranks: by step, and what is summed over them while they are in memory."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from cluster_analysis.engine.joined import cut_by_step, joined
from cluster_analysis.engine.totals import totals_of
from cluster_analysis.sources.together.whole import Laid, Whole, laid_together, put_together
from cluster_analysis.tables.rank_tables import RankTables
from cluster_analysis.tables.schema import COLLECTIVES, LINKS, TOLD_SUMS, TOTALS, USES
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


def bulk_of(tables: Sequence[RankTables], wholes: Sequence[Whole]) -> Bulk:
    """Return the large tables of some ranks, which `wholes` may have together already."""
    operators, links = (
        laid_together([getattr(one, name) for one in tables], wholes) for name in ("collectives", "links")
    )
    are_told = any(one.sums.num_rows for one in tables)
    if operators is None or links is None or are_told:
        return _made(tables, wholes)
    laid = [one.laid for one in operators if one.laid is not None]
    all_links = joined([one.table for one in links if one.table is not None], LINKS)
    uses = [one.uses for one in laid if one.uses is not None]
    totals = [one.totals for one in laid if one.totals is not None]
    of_steps = (_by_step(laid, COLLECTIVES), _by_step([one.laid for one in links if one.laid], LINKS))
    steps = sorted(of_steps[0].keys() | of_steps[1].keys())
    nothing = COLLECTIVES.empty_table(), LINKS.empty_table()
    return Bulk(
        {
            Step(step): (of_steps[0].get(step, nothing[0]), of_steps[1].get(step, nothing[1]))
            for step in steps
        },
        joined(totals, TOTALS),
        group_use(joined(uses, USES), all_links),
    )


def _made(tables: Sequence[RankTables], wholes: Sequence[Whole]) -> Bulk:
    collectives, links = (
        joined(put_together([getattr(one, name) for one in tables], wholes), schema)
        for name, schema in (("collectives", COLLECTIVES), ("links", LINKS))
    )
    steps = _distinct_steps(collectives, links)
    cuts = zip(steps, cut_by_step(collectives, steps), cut_by_step(links, steps), strict=True)
    return Bulk(
        {step: (own_collectives, own_links) for step, own_collectives, own_links in cuts},
        totals_of(collectives, joined([one.sums for one in tables], TOLD_SUMS)),
        group_use(collectives, links),
    )


def _by_step(laid: Sequence[Laid], schema: pa.Schema) -> dict[int, pa.Table]:
    """Return the rows of each step of tables that lie one behind the other."""
    if len(laid) == 1:
        return dict(laid[0].by_step)
    pieces: dict[int, list[pa.Table]] = {}
    for one in laid:
        for step, rows in one.by_step.items():
            pieces.setdefault(step, []).append(rows)
    return {step: joined(own, schema) for step, own in pieces.items()}


def _distinct_steps(*tables: pa.Table) -> tuple[Step, ...]:
    numbers = {number for table in tables for number in pc.unique(table["step"]).to_pylist()}
    return tuple(Step(number) for number in sorted(numbers - {None}))
