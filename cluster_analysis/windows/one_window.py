"""Operators that know no step, beside step times: all steps are one window, which is compared as a whole.

MindSpore cuts step times where the host begins steps, and operators of graphs that run as a whole (O2) not at
all.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.tables.schema import STEPS
from cluster_run.facts import Fact, fact

_WITHOUT_STEPS = 0
_KEYS = ("rank", "step")


def as_one_window(steps: pa.Table, totals: pa.Table) -> tuple[pa.Table, tuple[Fact, ...]]:
    """Return STEPS, of one window where operators are of none of them, and what is to be said of that.

    Args:
        steps: STEPS of all ranks.
        totals: TOTALS of all ranks: the steps of operators, and how long they took.
    """
    numbers = sorted(pc.unique(steps["step"]).drop_null().to_pylist())
    are_without = pc.unique(totals["step"]).to_pylist() == [_WITHOUT_STEPS]
    # Operators that no other rank has (those of tables of kernels) are not compared: steps say more.
    are_shared = totals.num_rows > len(pc.unique(totals["group"]))
    if len(numbers) <= 1 or not are_without or not are_shared or _is_real_step(steps, totals):
        return steps, ()
    ordered = steps.filter(pc.is_valid(steps["step"])).sort_by([("rank", "ascending"), ("step", "ascending")])
    # The idle time before the first operator of later steps is free time of the window, and is in it.
    times = [name for name in STEPS.names if name not in (*_KEYS, "preparing_us")]
    sums = ordered.group_by("rank", use_threads=False).aggregate(
        [(name, "sum") for name in times] + [("preparing_us", "first")]
    )
    columns = {name: sums[f"{name}_sum"] for name in times}
    columns |= {"rank": sums["rank"], "preparing_us": sums["preparing_us_first"]}
    columns["step"] = pa.array([_WITHOUT_STEPS] * sums.num_rows, pa.int64())
    window = pa.table([columns[name] for name in STEPS.names], schema=STEPS)
    return window, (fact("steps_in_one_window", steps=tuple(numbers)),)


def _is_real_step(steps: pa.Table, totals: pa.Table) -> bool:
    """Return whether the operators are rather those of step 0 alone, than of all steps."""
    took_us = pc.sum(totals["elapse_us"]).as_py() or 0.0
    communicated = steps.select(["step", "communication_us"])
    all_us = pc.sum(communicated["communication_us"]).as_py() or 0.0
    first = communicated.filter(pc.equal(communicated["step"], _WITHOUT_STEPS))
    first_us = pc.sum(first["communication_us"]).as_py() or 0.0
    return bool(abs(took_us - first_us) < abs(took_us - all_us))
