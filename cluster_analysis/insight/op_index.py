"""Where the JSON of each operator of each rank lies: what cluster_communication.json is copied from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from cluster_analysis.model import RankSource, Selection
from cluster_analysis.sources import numbers
from cluster_analysis.sources.communication_spans import OpSpans, op_spans
from cluster_analysis.sources.errors import BadFileError

ROLE = "communication"

#: One row an operator of a rank: its JSON is `length` bytes at `offset` of the rank's communication.json.
INDEX = pa.schema(
    [
        ("rank", pa.int32()),
        ("step", pa.int64()),
        ("key", pa.dictionary(pa.int32(), pa.string())),
        ("position", pa.int32()),
        ("offset", pa.int64()),
        ("length", pa.int32()),
    ]
)


def index_ranks(sources: Sequence[RankSource], selection: Selection) -> pa.Table:
    """Return INDEX of some ranks. A file that has become bad since it was read is left out."""
    tables = [_index(source, selection) for source in sources]
    return pa.concat_tables([INDEX.empty_table(), *tables]).unify_dictionaries().combine_chunks()


def _index(source: RankSource, selection: Selection) -> pa.Table:
    found: list[tuple[int, OpSpans]] = []
    try:
        for spans in op_spans(Path(source.files[ROLE])):
            step = numbers.parse_step(spans.step_key)
            if step is not None and (selection.steps is None or step in selection.steps):
                found.append((step, spans))
    except BadFileError:
        return INDEX.empty_table()
    n_ops = sum(len(spans.keys) for _, spans in found)
    keys = pa.array([key for _, spans in found for key in spans.keys], pa.string())
    return pa.table(
        {
            "rank": np.full(n_ops, source.rank, np.int32),
            "step": np.repeat(
                np.array([step for step, _ in found], np.int64), [len(spans.keys) for _, spans in found]
            ),
            "key": keys.dictionary_encode(),
            "position": np.arange(n_ops, dtype=np.int32),
            "offset": np.concatenate([spans.offsets for _, spans in found] or [np.zeros(0, np.int64)]),
            "length": np.concatenate([spans.lengths for _, spans in found] or [np.zeros(0, np.int32)]),
        },
        schema=INDEX,
    )
