"""Windows without steps that hold unlike numbers of iterations, as of servers that stop at unlike times.

Iterations are counted by operators that repeat: a rank that ran each kind of operator 1.7 times as often in
1.7 times the time ran 1.7 times as many iterations, and is compared as if it had run as many as the others.
Where operators do not show it, the rank is not compared.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct

from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.tables.schema import rows_of, with_columns
from cluster_analysis.thresholds.calls import MOST_KINDS, OTHER_LENGTH_SHARE, SAME_COUNT_SHARE
from cluster_analysis.trace.calls import on_device_us
from cluster_run.facts import Fact, fact

_WITHOUT_STEPS = [0]
_KEYS = ("rank", "step")


class Alike(Struct, frozen=True):
    """STEPS as if all ranks had recorded as many iterations; `notes` say what was done, if anything."""

    steps: pa.Table
    notes: tuple[Fact, ...] = ()


def as_many_iterations(steps: pa.Table, operators: pa.Table) -> Alike:
    """Return the windows of all ranks with as many iterations as most have.

    Args:
        steps: STEPS of all ranks.
        operators: OPERATORS of all ranks: how often each kind of operator ran.
    """
    ranks = steps["rank"].to_numpy()
    if steps["step"].unique().to_pylist() != _WITHOUT_STEPS or len(set(ranks.tolist())) < len(ranks):
        return Alike(steps)
    length_us = on_device_us(steps)
    if not np.isfinite(length_us).any():
        return Alike(steps)
    relative = length_us / np.nanmedian(length_us)
    is_other = np.abs(relative - 1) > OTHER_LENGTH_SHARE
    if not is_other.any():
        return Alike(steps)
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
    return Alike(_scaled(steps, factors), tuple(notes))


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
