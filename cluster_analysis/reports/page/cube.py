"""The times of every rank and step as dense arrays: what bars, heat maps and strip plots draw."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec import Struct

from cluster_analysis.numeric.arrays import numbers
from cluster_analysis.numeric.grouped import means_of
from cluster_analysis.result import AnalysisResult

FloatArray = np.ndarray[Any, np.dtype[np.float32]]

#: Name on the page → (table, column). All in microseconds.
METRICS: Mapping[str, tuple[str, str]] = {
    "computing": ("steps", "computing_us"),
    "overlapped": ("steps", "overlapped_us"),
    "exposed": ("steps", "communication_not_overlapped_us"),
    "bubble": ("steps", "bubble_us"),
    "free": ("steps", "free_us"),
    "preparing": ("steps", "preparing_us"),
    "wait": ("rank_times", "wait_us"),
    "transfer": ("rank_times", "transfer_us"),
    "gap": ("rank_times", "gap_us"),
}
#: More ranks × steps than this are put together by steps, so that the page stays small.
MAX_CELLS = 300_000


class Cube(Struct, frozen=True):
    """`values[metric]` has the shape (ranks, bins) in µs, NaN where nothing was measured.

    Bin i holds the mean of the steps `bins[i]`; with few steps each bin is one step.
    """

    ranks: tuple[int, ...]
    bins: tuple[tuple[int, ...], ...]
    values: Mapping[str, FloatArray]


def build_cube(result: AnalysisResult, max_cells: int = MAX_CELLS) -> Cube:
    """Return the times of all ranks and steps that any table mentions."""
    tables = {name: result.table(name) for name in ("steps", "rank_times")}
    ranks = _distinct([table["rank"] for table in tables.values()], result.topology.ranks)
    steps = _distinct([table["step"] for table in tables.values()], ())
    n_bins = max(1, min(len(steps), max_cells // max(1, len(ranks))))
    bins = tuple(tuple(int(step) for step in part) for part in np.array_split(steps, n_bins) if len(part))
    values = {
        name: _dense(tables[table], column, ranks, steps, bins)
        for name, (table, column) in METRICS.items()
        if tables[table][column].null_count < tables[table].num_rows
    }
    return Cube(tuple(int(rank) for rank in ranks), bins, values)


def _dense(
    table: pa.Table,
    column: str,
    ranks: np.ndarray[Any, Any],
    steps: np.ndarray[Any, Any],
    bins: tuple[tuple[int, ...], ...],
) -> FloatArray:
    bin_of_step = np.repeat(np.arange(len(bins)), [len(part) for part in bins])
    row = np.searchsorted(ranks, table["rank"].to_numpy())
    bin_number = bin_of_step[np.searchsorted(steps, table["step"].to_numpy())] if len(steps) else row
    means = means_of(numbers(table[column]), row * len(bins) + bin_number, len(ranks) * len(bins))
    return means.astype(np.float32).reshape(len(ranks), len(bins))


def _distinct(columns: list[pa.ChunkedArray], more: tuple[int, ...]) -> np.ndarray[Any, Any]:
    parts = [column.unique().to_numpy() for column in columns]
    return np.unique(np.concatenate([*parts, np.asarray(more, dtype=np.int64)]).astype(np.int64))
