"""Robust statistics for few peers: medians that leave the suspect out, scales that survive outliers.

All functions take NaN for "not measured". SciPy has some of them in `scipy.stats`, which takes half a second
to import and takes one series at a time.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.numeric.grouped import medians_of
from cluster_analysis.numeric.sorting import begins

#: Up to this number each value is compared with all others one by one.
_MANY = 64
#: Makes the median absolute deviation the standard deviation of a normal distribution.
MAD_TO_SIGMA = 1.4826
#: Standard error of a median over that of a mean, for normal samples.
MEDIAN_SE = 1.2533


def median(values: FloatArray, axis: int | None = None) -> FloatArray:
    """Median that passes over NaN and stays quiet about slices without any number."""
    with np.errstate(all="ignore"):
        return np.asarray(_nan_median(np.asarray(values, np.float64), axis))


def _nan_median(values: FloatArray, axis: int | None) -> FloatArray:
    if values.size == 0:
        shape = () if axis is None else tuple(np.delete(values.shape, axis))
        return np.full(shape, np.nan)
    if axis is None:
        values, axis = values.ravel(), 0
    ordered = np.sort(values, axis=axis)  # NaN goes last
    count = np.isfinite(ordered).sum(axis=axis)
    least = int(count.min())
    if least and least == count.max():  # the usual case: one place for all
        pair = ordered.take([(least - 1) // 2, least // 2], axis=axis)
        middle: FloatArray = pair.mean(axis=axis)
        return middle
    low = np.maximum((count - 1) // 2, 0)
    high = np.minimum(count // 2, ordered.shape[axis] - 1)
    pick = np.stack(
        [
            np.take_along_axis(ordered, np.expand_dims(place, axis), axis=axis).squeeze(axis)
            for place in (np.asarray(low), np.asarray(high))
        ]
    )
    result: FloatArray = np.where(count > 0, pick.mean(axis=0), np.nan)
    return result


def sigma(values: FloatArray, axis: int | None = None) -> FloatArray:
    """Robust standard deviation: 1.4826 times the median absolute deviation."""
    centre = median(values, axis)
    deviation = np.abs(values - (centre if axis is None else np.expand_dims(centre, axis)))
    return MAD_TO_SIGMA * median(deviation, axis)


def shortest_half_sigma(values: FloatArray) -> FloatArray:
    """Robust standard deviation of each column of (N, K): half the width of its shortest half, as a normal's.

    Unlike the median absolute deviation it stays small where nearly half of the values lie elsewhere
    (Rousseeuw and Leroy, Robust Regression and Outlier Detection, 1987).
    """
    ordered = np.sort(values, axis=0)  # NaN goes last
    result = np.full(values.shape[1], np.inf)
    for column, n in enumerate(np.isfinite(values).sum(axis=0).tolist()):
        if n > 1:
            known, half = ordered[:n, column], (n + 1) // 2
            result[column] = MAD_TO_SIGMA * float((known[half - 1 :] - known[: n - half + 1]).min()) / 2.0
    return result


def leave_one_out(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Centre and robust sigma of all others, for each of `values` (N,); NaN values do not count."""
    others = _others(values)
    centre, scale = median(others, 1), sigma(others, 1)
    return np.resize(centre, len(values)), np.resize(scale, len(values))


def others_median(values: FloatArray) -> FloatArray:
    """The centre that `leave_one_out` gives, without the time that its sigma takes.

    (N,), or (G, N) for G groups of as many values, each by itself.
    """
    n = values.shape[-1]
    if n > _MANY:
        return np.repeat(median(values, -1)[..., None], n, axis=-1)
    order = np.argsort(values, axis=-1, kind="stable")  # NaN goes last
    ordered, is_known = np.take_along_axis(values, order, -1), np.isfinite(values)
    place = np.argsort(order, axis=-1)
    count = np.count_nonzero(is_known, axis=-1, keepdims=True) - is_known
    low, high = np.maximum((count - 1) // 2, 0), count // 2
    # Behind its own place each of the others is one place further.
    low, high = (np.minimum(at + (at >= place), n - 1) for at in (low, high))
    middle = (np.take_along_axis(ordered, low, -1) + np.take_along_axis(ordered, high, -1)) / 2.0
    return np.where(count > 0, middle, np.nan)


def _others(values: FloatArray) -> FloatArray:
    """All others of each of N values (N, N), NaN in its own place; or one row for all of them."""
    n = len(values)
    if n > _MANY:  # one value moves the median of many by less than its error: leave none out
        return values[None]
    others = np.tile(values, (n, 1))
    np.fill_diagonal(others, np.nan)
    return others


#: Degrees of freedom that the pooled scale is worth against a scale of few peers.
PRIOR_DF = 14.0


def shrink(scale: FloatArray, pooled: FloatArray | float, df: FloatArray | float) -> FloatArray:
    """Pull scales of few peers towards the pooled one (empirical Bayes, as limma does)."""
    result: FloatArray = np.sqrt((PRIOR_DF * pooled**2 + df * scale**2) / (PRIOR_DF + df))
    return result


def mean_lead(values: FloatArray) -> FloatArray:
    """By how much each of two or more rows (R, S) is the largest of a column: the mean over all, (R,)."""
    known = np.nan_to_num(values)
    first, (second, most) = known.argmax(axis=0), np.sort(known, axis=0)[-2:]
    return np.asarray(np.bincount(first, most - second, len(known)) / known.shape[1])


def beyond_chance(seen: float, chance: float) -> float:
    """Which part of a variance that is seen is not the one that chance makes (empirical Bayes)."""
    return max(0.0, 1.0 - chance / seen) if seen > 0 else 0.0


#: Steps of a series whose slopes are all taken: 130 000 pairs.
_MAX_SLOPED = 512


def theil_sen(values: FloatArray) -> FloatArray:
    """Median slope per step of each row of (N, S).

    There is a slope for each two steps, so that time and memory grow with the square of the steps: of more
    than _MAX_SLOPED, medians of as many stretches of equal length are taken, which follow the same slope.
    """
    n_steps = values.shape[1]
    length = -(-n_steps // _MAX_SLOPED)
    if length > 1:
        n_stretches = n_steps // length
        values = median(values[:, : n_stretches * length].reshape(len(values), n_stretches, length), 2)
    first, second = np.triu_indices(values.shape[1], 1)
    return median((values[:, second] - values[:, first]) / ((second - first) * length), 1)


def medians_by(values: FloatArray, codes: IntArray) -> FloatArray:
    """Medians of the rows of (N,) or (N, S) by code, in the order of the codes: (G,) or (G, S).

    All groups at once: a job has thousands of hosts of a few ranks.
    """
    found, code = np.unique(codes, return_inverse=True)
    n_columns = int(np.prod(values.shape[1:]))
    cell = code[:, None] * n_columns + np.arange(n_columns)
    medians = medians_of(values.ravel(), cell.ravel(), len(found) * n_columns)
    return medians.reshape(len(found), *values.shape[1:])


def group_medians(values: FloatArray, groups: IntArray) -> FloatArray:
    """Median of each row's group by column: (N, S) to (N, S), or (N,) to (N,); groups below 0 give NaN."""
    result = np.full(values.shape, np.nan)
    for group in np.unique(groups[groups >= 0]):
        inside = groups == group
        result[inside] = median(values[inside], 0)
    return result


def others_medians(values: FloatArray, groups: IntArray) -> FloatArray:
    """Median of the others of each row's group by column, (N, S) to (N, S); groups below 0 give NaN."""
    result = np.full(values.shape, np.nan)
    for group in np.unique(groups[groups >= 0]):
        inside = groups == group
        result[inside] = others_median(values[inside].T).T
    return result


def running_maxima(values: FloatArray, rank: IntArray) -> FloatArray:
    """The largest value of a rank so far; the ranks are sorted."""
    found = np.empty_like(values)
    bounds = np.r_[np.flatnonzero(begins(rank)), len(rank)]
    for begin, end in pairwise(bounds.tolist()):
        np.maximum.accumulate(values[begin:end], out=found[begin:end])
    return found


def scatter(values: FloatArray) -> float:
    """Mean distance from the middle: a few ranks that waited tell the most, and count therefore."""
    return float(np.mean(np.abs(values - np.median(values))))


def most_of_others(values: FloatArray, role: IntArray) -> FloatArray:
    """The most that any other of each rank's role has (R, N), 0 at least; infinite without others."""
    found = np.full(values.shape, np.inf)
    for one in np.unique(role).tolist():
        inside = np.flatnonzero(role == one)
        if len(inside) > 1:
            second, most = np.maximum(np.sort(values[inside], axis=0)[-2:], 0.0)
            found[inside] = np.where(values[inside] < most, most, second)
    return found
