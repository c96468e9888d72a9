"""Windows without steps: of unlike numbers of iterations, and beside step times.

Servers that stop at unlike times record unlike numbers of iterations, which are counted by operators that
repeat: a rank that ran each kind of operator 1.7 times as often in 1.7 times the time ran 1.7 times as many
iterations, and is compared as if it had run as many as the others. Where operators do not show it, it is not
compared.

MindSpore cuts step times where the host begins steps, and operators of graphs that run as a whole (O2) not at
all. Then all steps are one window, which is compared as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.tables.schema import STEPS, rows_of, with_columns
from cluster_analysis.thresholds.calls import MOST_KINDS, OTHER_LENGTH_SHARE, SAME_COUNT_SHARE
from cluster_analysis.trace.calls import on_device_us
from cluster_run.facts import Fact, fact

_WITHOUT_STEPS = 0
_KEYS = ("rank", "step")


def as_many_iterations(steps: pa.Table, operators: pa.Table) -> tuple[pa.Table, tuple[Fact, ...]]:
    """Return the windows of all ranks with as many iterations as most have, and what is to be said of that.

    Args:
        steps: STEPS of all ranks.
        operators: OPERATORS of all ranks: how often each kind of operator ran.
    """
    ranks = steps["rank"].to_numpy()
    if steps["step"].unique().to_pylist() != [_WITHOUT_STEPS] or len(set(ranks.tolist())) < len(ranks):
        return steps, ()
    length_us = on_device_us(steps)
    if not np.isfinite(length_us).any():
        return steps, ()
    relative = length_us / np.nanmedian(length_us)
    is_other = np.abs(relative - 1) > OTHER_LENGTH_SHARE
    if not is_other.any():
        return steps, ()
    counts = _counts(operators)
    usual = [counts.get(rank, {}) for rank in ranks[~is_other & np.isfinite(relative)].tolist()]
    factors = np.ones(len(ranks))
    for at in np.flatnonzero(is_other).tolist():
        factors[at] = _iterations(counts.get(int(ranks[at]), {}), usual, float(relative[at]))
    unknown = tuple(ranks[np.isnan(factors)].tolist())
    scaled = np.isfinite(factors) & (factors != 1)
    notes = []
    if scaled.any():
        times = tuple(round(factor, 2) for factor in factors[scaled].tolist())
        notes.append(fact("windows_unlike", ranks=tuple(ranks[scaled].tolist()), times=times))
    if unknown:
        notes.append(fact("windows_not_compared", ranks=unknown))
    return _scaled(steps, factors), tuple(notes)


def _counts(operators: pa.Table) -> dict[int, dict[str, int]]:
    counts: dict[int, dict[str, int]] = {}
    for rank, kind, n in rows_of(operators, "rank", "op_type", "n_calls"):
        if kind is not None and n:
            own = counts.setdefault(rank, {})
            own[kind] = own.get(kind, 0) + n
    return counts


def _iterations(own: Mapping[str, int], usual: list[dict[str, int]], relative_length: float) -> float:
    """Return how many times as many iterations a rank ran as the usual ones, NaN where unknown."""
    if not own:
        return np.nan
    for other in usual:
        if other.keys() != own.keys():
            continue
        ratios = np.array([own[kind] / other[kind] for kind in own])
        middle = float(np.median(ratios))
        if np.mean(np.abs(ratios / middle - 1) <= SAME_COUNT_SHARE) < MOST_KINDS:
            continue
        if abs(middle - 1) <= SAME_COUNT_SHARE:
            return 1.0  # it took longer for as many: that is for the judge
        if abs(relative_length / middle - 1) <= OTHER_LENGTH_SHARE:
            return middle
    return np.nan


def _scaled(steps: pa.Table, factors: FloatArray) -> pa.Table:
    """Return STEPS divided by the factors, without the ranks whose factor is not known."""
    is_known = np.isfinite(factors)
    by = pa.array(factors)
    scaled = {name: pc.divide(steps[name], by) for name in steps.column_names if name not in _KEYS}
    return with_columns(steps, **scaled).filter(pa.array(is_known))


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
