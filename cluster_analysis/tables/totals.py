"""Sums over the operators of a group, made while a rank's table is in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.tables.schema import TOLD_SUMS, TOTALS

_KEYS = ("rank", "step", "group")


def totals_of(collectives: pa.Table, told: pa.Table) -> pa.Table:
    """Return TOTALS of COLLECTIVES rows.

    Args:
        collectives: the rows.
        told: TOLD_SUMS of the ranks whose hosts have summed what is not in the rows.
    """
    summed = [name for name in TOTALS.names if name not in _KEYS]
    # One thread: the order of a sum decides its last digit.
    grouped = collectives.group_by(list(_KEYS), use_threads=False).aggregate(
        [(name, "sum") for name in summed]
    )
    columns = [*(grouped[name] for name in _KEYS), *(grouped[f"{name}_sum"] for name in summed)]
    return _with_told(pa.table(columns, schema=TOTALS), told)


def _with_told(totals: pa.Table, told: pa.Table) -> pa.Table:
    if not told.num_rows:
        return totals
    places = {key: place for place, key in enumerate(_keys(told))}
    rows = pa.array(map(places.get, _keys(totals)), pa.int64())
    is_told = rows.is_valid()
    for name in TOLD_SUMS.names[len(_KEYS) :]:
        values = pc.if_else(is_told, told[name].combine_chunks().take(rows), totals[name])
        totals = totals.set_column(totals.schema.get_field_index(name), TOTALS.field(name), values)
    return totals


def _keys(table: pa.Table) -> Iterator[tuple[int, int, str]]:
    return zip(*(table[name].to_pylist() for name in _KEYS), strict=True)
