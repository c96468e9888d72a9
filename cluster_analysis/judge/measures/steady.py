"""What kernels say of a device whose computing follows samples or the load of experts.

Some types of kernels do the same work on all ranks of a role, whatever the samples are: optimizers, norms of
weights. Which ones is learned from the job: their times scatter least. A factor that they show on one rank
is that of its device; what only the others show is its samples'. And types that follow samples follow them
together: what one of them shows beyond the others is its device's again.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa

from cluster_analysis.judge.view import JobView
from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.numeric.stats import group_medians, median, shortest_half_sigma, sigma
from cluster_analysis.thresholds.common import CLEAR_SIGMAS, FEWEST_PEERS, HALFWAY, TOLERANCE_SHARE, TWICE
from cluster_analysis.thresholds.devices import SMALL_SHARE, STEADIER_FACTOR, STEADY_SIGMA
from cluster_analysis.trace.calls import codes, numbers


def steady_kernels(operators: pa.Table, view: JobView) -> FloatArray | None:
    """Return how much longer each rank computes by what its kernels say of the device, as logarithms (R,).

    None without kernels, or where all types scatter in ways of their own; NaN for ranks without.

    Args:
        operators: OPERATORS of all ranks, or an empty table.
        view: the job.
    """
    compared = _by_type(operators, view, view.role)
    if compared is None:
        return None
    longer, total = compared
    parts = [
        one for one in (_steadiest(longer, total, view), _beside_the_others(longer, total)) if one is not None
    ]
    return np.asarray(sum(parts[1:], parts[0])) if parts else None


def lost_by_kernels_us(
    operators: pa.Table, view: JobView, steady: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Return what each rank loses a step by its device, and by kernels that are slower than that (R,), in µs.

    A device that is slow is as slow in all kernels. What some of them show beyond that lies beside transfers,
    which slow them: those of whoever comes last, as nothing moves beside the kernels of the others.

    Args:
        operators: OPERATORS of all ranks.
        view: the job.
        steady: `steady_kernels` of them (R,).
    """
    compared = _by_type(operators, view, view.role)
    if compared is None:
        return None
    longer, total = compared
    # Longer samples make most types slower than the device too, and are nobody's to hand on.
    follows = sigma(longer, 0) > STEADY_SIGMA
    more = np.expm1(np.where(follows, 0.0, np.nan_to_num(longer))) @ total / total.sum()
    device = np.expm1(np.nan_to_num(steady))
    beyond = np.where(device >= HALFWAY * more, np.maximum(more - device, 0.0), 0.0)
    usual_us = np.nan_to_num(view.computing_us).mean(axis=1) / (1.0 + more)
    return device * usual_us, beyond * usual_us


def _steadiest(longer: FloatArray, total: FloatArray, view: JobView) -> FloatArray | None:
    """How much longer the steadiest types take on each rank (R,); None where all types scatter."""
    # The load of experts may last, so that no step tells it.
    work_differs = view.has_experts or _chance(view) > HALFWAY * STEADY_SIGMA
    # The shortest half sees through half of the ranks being slow; of few replicas two may agree by chance.
    for scatter in (sigma(longer, 0), shortest_half_sigma(longer)):
        limit = _usual(scatter, total) / STEADIER_FACTOR if work_differs else STEADY_SIGMA
        if scatter.min(initial=np.inf) <= limit:
            break
    else:
        return None
    steady = median(longer[:, scatter <= limit], 1)
    # More than this no type of kernels can have from its device.
    return np.asarray(np.where(np.isfinite(steady), np.minimum(steady, _least(longer, scatter)), np.nan))


def _beside_the_others(longer: FloatArray, total: FloatArray) -> FloatArray | None:
    """How much longer a rank computes as some types take longer on it than others that follow samples alike.

    Longer samples lengthen these types alike on every rank: the least of them says by how much. What others
    take beyond that is no sample's. As logarithms (R,); None where types hardly differ, so that they show
    nothing of what they follow, or with too few alike to tell which of them differs.
    """
    usual = _usual(sigma(longer, 0), total)
    apart = sigma(longer - median(longer, 1)[:, None], 0)
    alike = apart <= usual / (TWICE * STEADIER_FACTOR)
    if alike.sum() < FEWEST_PEERS or not usual > HALFWAY * STEADY_SIGMA:
        return None
    beyond = np.maximum(longer - _least(longer[:, alike], apart[alike])[:, None], 0.0)
    more = np.where(alike, np.nan_to_num(np.expm1(beyond)), 0.0)
    return np.asarray(np.log1p(more @ total / total.sum()))


def _usual(scatter: FloatArray, total: FloatArray) -> float:
    """How far the types that matter scatter (T,), which take so much time in all (T,)."""
    return float(median(scatter[total >= SMALL_SHARE * total.sum()]))


def _least(longer: FloatArray, scatter: FloatArray) -> FloatArray:
    """What all types (R, T) may take longer by on each rank (R,), for all that scatter (T,) says."""
    return np.asarray(np.fmin.reduce(longer + CLEAR_SIGMAS * scatter, axis=1, initial=np.inf))


def common_to_all_kernels(operators: pa.Table, view: JobView) -> FloatArray | None:
    """Return how much longer all kernels of a rank take than on the job's other ranks, as logarithms (R,).

    The least of all types that are called as often by most ranks, whatever their stage: a stage with more
    work calls some more often, or makes some longer, on all of its ranks. What one of them alone shows beyond
    that is its device's again. None without kernels; NaN for ranks without.
    """
    compared = _by_type(operators, view, np.zeros_like(view.role))
    if compared is None or not len(compared[1]):
        return None
    longer, total = compared
    # What few types have in common may be their shapes.
    is_most = np.isfinite(longer) @ total >= HALFWAY * total.sum()
    least = np.where(is_most, np.fmin.reduce(longer, axis=1, initial=np.inf), np.nan)
    # Longer samples lengthen most types alike.
    own = _beyond_others(np.nan_to_num(longer - median(longer, 1)[:, None]), view.role)
    return np.asarray(least + np.log1p(np.expm1(own) @ total / total.sum()))


def _beyond_others(values: FloatArray, role: IntArray) -> FloatArray:
    """A rank's values (R, T) without what others of its role have as well; 0 without others.

    Nobody lies below because a peer lies above.
    """
    found = np.zeros(values.shape)
    for one in np.unique(role).tolist():
        inside = np.flatnonzero(role == one)
        for rank in inside.tolist() if len(inside) > 1 else ():
            shared = np.maximum(values[inside[inside != rank]].max(axis=0), 0.0)
            found[rank] = np.maximum(values[rank] - shared, np.minimum(values[rank], 0.0))
    return found


def _by_type(operators: pa.Table, view: JobView, role: IntArray) -> tuple[FloatArray, FloatArray] | None:
    """By rank and type how much longer a call takes than `role` peers' (R, T), and the types' times (T,)."""
    table = operators.filter(pa.array(np.isin(operators["rank"].to_numpy(), view.ranks)))
    if not table.num_rows:
        return None
    types, kind = codes(table["op_type"])
    row = np.searchsorted(view.ranks, table["rank"].to_numpy())
    spent, calls = np.zeros((2, len(view.ranks), len(types)))
    np.add.at(spent, (row, kind), np.nan_to_num(numbers(table["total_us"])))
    np.add.at(calls, (row, kind), np.nan_to_num(numbers(table["n_calls"])))
    with np.errstate(divide="ignore", invalid="ignore"):
        a_call = np.log(spent / calls)
        often = np.abs(calls / group_medians(calls, role) - 1.0)
    # Other numbers of calls are other work; a few are lost with their records.
    a_call[~(often <= TOLERANCE_SHARE)] = np.nan
    longer = a_call - group_medians(a_call, role)
    total = spent.sum(0)
    matters = (np.isfinite(longer).sum(0) > FEWEST_PEERS) & (total > 0)
    return longer[:, matters], total[matters]


def _chance(view: JobView) -> float:
    """By how much samples that are dealt anew in each step make the totals of ranks differ, as a logarithm.

    Infinite with too few steps to tell.
    """
    n_steps = len(view.steps)
    if n_steps < FEWEST_PEERS:
        return float("inf")
    with np.errstate(divide="ignore", invalid="ignore"):
        series = np.log(view.computing_us) - group_medians(np.log(view.computing_us), view.role)
    return float(np.nan_to_num(sigma(series - median(series, 1)[:, None]))) / math.sqrt(n_steps)
