"""Rows of a table of steps that hold one step more than once.

A rank has one device and counts its steps up, so a table that repeats a step holds several devices, or
several sessions. Nothing says which of the rows is this rank's, and both together would be a wrong number.
"""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.sources.errors import Remark, left_out


def without_repeated_steps(table: pa.Table, remark: Remark) -> pa.Table:
    """Return the rows of `table` whose `step` no other row has; rows without a step stay."""
    counts = Counter(table["step"].to_pylist())
    repeated = [step for step, count in counts.items() if count > 1 and step is not None]
    if not repeated:
        return table
    is_repeated = pc.is_in(table["step"], value_set=pa.array(repeated, pa.int64()))
    remark(left_out(pc.sum(is_repeated).as_py(), "row", "step_repeated"))
    return table.filter(pc.invert(is_repeated))
