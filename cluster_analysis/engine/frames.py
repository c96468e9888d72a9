"""Records of all ranks as Dask DataFrames, which need not fit into memory. Made for the Python API."""

from __future__ import annotations

from functools import partial

import dask.dataframe as dd
import pandas as pd
import pyarrow as pa

from cluster_analysis.engine.joined import joined
from cluster_analysis.engine.tasks import BATCH_BYTES, Batch, Wanted, batches_by_bytes, read_batch
from cluster_analysis.tables.model import RankSource, Selection
from cluster_analysis.tables.schema import COLLECTIVES, LINKS

#: Tables with a frame, by the name of their part of `StepTables`.
RECORDED = {"calls": ("collectives", COLLECTIVES), "matrix": ("links", LINKS)}


def recorded_frame(
    name: str, sources: tuple[RankSource, ...], selection: Selection, partition_bytes: int = BATCH_BYTES
) -> dd.DataFrame:
    """Return COLLECTIVES (`calls`) or LINKS (`matrix`) of all ranks; a partition is a batch of ranks.

    Nothing is read before the frame is computed, and no more ranks at once than Dask computes partitions.

    Args:
        name: a key of RECORDED.
        sources: the ranks; their files must still be there when the frame is computed.
        selection: which steps.
        partition_bytes: about how large the files of a partition are.
    """
    batches = batches_by_bytes(sources, 1, partition_bytes)
    frame: dd.DataFrame = dd.from_map(
        partial(_read, name=name, selection=selection),
        batches,
        meta=_frame_of(RECORDED[name][1].empty_table()),
        label=name,
        enforce_metadata=False,
    )
    return frame


def _read(batch: Batch, name: str, selection: Selection) -> pd.DataFrame:
    part, schema = RECORDED[name]
    _, bulk = read_batch(batch, Wanted(selection, spans=False))
    return _frame_of(joined([getattr(one.load(), part) for one in bulk.by_step.values()], schema))


def _frame_of(table: pa.Table) -> pd.DataFrame:
    """Return a table with Arrow's own types, which say the same for each partition, and texts as they are."""
    plain = pa.schema(
        [(one.name, pa.string() if pa.types.is_dictionary(one.type) else one.type) for one in table.schema]
    )
    frame: pd.DataFrame = table.cast(plain).to_pandas(types_mapper=pd.ArrowDtype)
    return frame
