"""Sums over the operators of a group, made while a rank's table is in memory."""

from __future__ import annotations

import pyarrow as pa

from cluster_analysis.tables.schema import TOTALS

_KEYS = ("rank", "step", "group")


def totals_of(collectives: pa.Table) -> pa.Table:
    """Return TOTALS of COLLECTIVES rows."""
    summed = [name for name in TOTALS.names if name not in _KEYS]
    # One thread: the order of a sum decides its last digit.
    grouped = collectives.group_by(list(_KEYS), use_threads=False).aggregate(
        [(name, "sum") for name in summed]
    )
    columns = [*(grouped[name] for name in _KEYS), *(grouped[f"{name}_sum"] for name in summed)]
    return pa.table(columns, schema=TOTALS)
