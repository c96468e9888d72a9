"""Five numbers of each group of values: the body of most tables here."""

from __future__ import annotations

import numpy as np

from cluster_analysis.numeric.arrays import FloatArray

#: Names of the columns, and which quantile each is.
QUARTILES = {"min_us": 0.0, "q1_us": 0.25, "median_us": 0.5, "q3_us": 0.75, "max_us": 1.0}


def quartiles(values: FloatArray) -> dict[str, float | None]:
    """Return minimum, quartiles and maximum (NumPy's linear interpolation); None where there is no value."""
    known = values[np.isfinite(values)]
    if not len(known):
        return dict.fromkeys(QUARTILES)
    ordered = np.sort(known) + 0.0  # no zero is negative
    return {name: _between(ordered, share * (len(ordered) - 1)) for name, share in QUARTILES.items()}


def _between(ordered: FloatArray, place: float) -> float:
    """Return the value at a place between two of `ordered` (N,): `np.quantile` takes longer to be called.

    From the nearer one, as NumPy does, so that the last digit is the same.
    """
    before = int(place)
    low, high = float(ordered[before]), float(ordered[min(before + 1, len(ordered) - 1)])
    share = place - before
    return low + (high - low) * share if share < 0.5 else high - (high - low) * (1.0 - share)
