"""Several windows of one rank as more steps of one capture."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from cluster_analysis.sources.rank import read_ranks
from cluster_analysis.sources.reading import of_steps
from cluster_analysis.tables import schema
from cluster_analysis.tables.model import RankSource, Selection
from cluster_analysis.tables.rank_tables import BY_STEP, RankTables


def read_windows(source: RankSource, selection: Selection, *, with_spans: bool) -> RankTables:
    """Return the tables of all windows of a rank; `selection` counts steps as they are numbered here.

    Rows of a step have the number that it has among all windows, and kinds of operators are summed. Metadata
    and figures of a capture as a whole come from the newest window, and so do the positions of operators for
    the files of MindStudio Insight.
    """
    each = [(added, read_ranks([one], None, with_spans=with_spans)) for added, one in source.windows]
    newest = each[-1][1]
    joined = {name: _joined([(added, getattr(one, name)) for added, one in each]) for name in BY_STEP}
    joined["spans"] = _joined([(each[-1][0], newest.spans)])
    if selection.steps is not None:
        joined = {name: of_steps(one, selection.steps) for name, one in joined.items()}
    return replace(
        newest,
        operators=_summed([one.operators for _, one in each]),
        problems=tuple(dict.fromkeys(problem for _, one in each for problem in one.problems)),
        notes=tuple(dict.fromkeys(note for _, one in each for note in one.notes)),
        **joined,
    )


def _joined(tables: Sequence[tuple[int, pa.Table]]) -> pa.Table:
    numbered = []
    for added, table in tables:
        if added:
            table = schema.with_columns(table, step=pc.add(table["step"], added))  # noqa: PLW2901
        numbered.append(table)
    return schema.one_behind_the_other(numbered)


def _summed(tables: Sequence[pa.Table]) -> pa.Table:
    """Return OPERATORS over all windows, longest first."""
    together = schema.one_behind_the_other(tables)
    if not together.num_rows:
        return together
    keys = [name for name in schema.OPERATORS.names if not name.endswith(("_us", "_calls"))]
    sums = [("n_calls", "sum"), ("total_us", "sum"), ("min_us", "min"), ("max_us", "max")]
    found = (
        together.group_by(keys, use_threads=False).aggregate(sums).sort_by([("total_us_sum", "descending")])
    )
    columns = {name: found[name] for name in keys} | {name: found[f"{name}_{how}"] for name, how in sums}
    columns["avg_us"] = pc.divide(columns["total_us"], columns["n_calls"])
    typed = [columns[one.name].cast(one.type) for one in schema.OPERATORS]
    return pa.table(typed, schema=schema.OPERATORS).combine_chunks()
