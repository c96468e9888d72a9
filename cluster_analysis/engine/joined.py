"""Tables of several ranks joined, and cut by step again: what the engine's tasks do to Arrow tables."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.numeric.sorting import begins
from cluster_analysis.tables.schema import one_behind_the_other
from cluster_run.ids import Step

#: Runs of rows of one step that are longer than this on average are copied run by run.
_LEAST_RUN = 32
#: Stands for a step that is not known; no step has such a number.
_UNKNOWN = -1


def joined(tables: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """Join tables into one with the columns of `schema`, each in one piece."""
    filled = [table.select(schema.names) for table in tables if table.num_rows]
    if not filled:
        return schema.empty_table()
    return one_behind_the_other(filled)


def canonical(tables: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """Join tables so that only their rows decide the result: one chunk, dictionaries sorted, none spare."""
    table = pa.concat_tables([schema.empty_table(), *tables]).combine_chunks()
    columns = [
        _sorted_dictionary(column) if pa.types.is_dictionary(kind.type) else column
        for column, kind in zip(table.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _sorted_dictionary(column: pa.ChunkedArray) -> pa.Array:
    encoded = column.unify_dictionaries().combine_chunks()
    used = pc.unique(encoded.indices).drop_null()
    values = encoded.dictionary.take(used)
    order = pc.sort_indices(values)
    ordered = values.take(order)
    indices = pc.index_in(encoded.dictionary, value_set=ordered).take(encoded.indices)
    return pa.DictionaryArray.from_arrays(indices.cast(pa.int32()), ordered)


def cut_by_step(table: pa.Table, steps: Sequence[Step]) -> list[pa.Table]:
    """Cut a table into those of each step, each in one piece."""
    pieces: dict[int, list[pa.RecordBatch]] = {int(step): [] for step in steps}
    # Most ranks hold a step in one run: pieces are joined several times as fast as rows are picked.
    for batch in table.to_batches():
        rows, step_of = batch, batch.column("step").fill_null(_UNKNOWN).to_numpy()
        if np.count_nonzero(begins(step_of)) * _LEAST_RUN > len(step_of):
            order = np.argsort(step_of, kind="stable")
            rows, step_of = batch.take(pa.array(order)), step_of[order]
        for first, last in pairwise([*np.flatnonzero(begins(step_of)).tolist(), len(step_of)]):
            if (own := pieces.get(int(step_of[first]))) is not None:
                own.append(rows.slice(first, last - first))
    return [pa.Table.from_batches(own, table.schema).combine_chunks() for own in pieces.values()]
