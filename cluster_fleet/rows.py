"""Arrays of a run as bytes of the database, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cluster_fleet.records import History, RunLine, Series, Unit

#: How arrays lie in the database: little-endian, whatever the machine is.
NUMBERS, FLOATS = np.dtype("<i4"), np.dtype("<f4")


def series_row(run: int, one: Series, numbers: dict[str, int]) -> dict[str, Any]:
    """Return the row of one metric of a run; `numbers` are those of the units by key."""
    units = np.array([numbers[key] for key in one.keys], NUMBERS)
    return {
        "run": run,
        "metric": one.metric,
        "units": units.tobytes(),
        "amounts": np.asarray(one.values, FLOATS).tobytes(),
        "errors": np.asarray(one.errors, FLOATS).tobytes(),
    }


def series_of(row: Any, units: dict[int, Unit]) -> Series:
    """Return what `series_row` made a row of, without units that are no more."""
    numbers = np.frombuffer(row.units, NUMBERS).tolist()
    keep = [at for at, one in enumerate(numbers) if one in units]
    keys = [units[numbers[at]].known.key for at in keep]
    return Series(
        row.metric, keys, np.frombuffer(row.amounts, FLOATS)[keep], np.frombuffer(row.errors, FLOATS)[keep]
    )


def history_of(metric: str, runs: Sequence[RunLine], rows: Mapping[int, Sequence[bytes]]) -> History:
    """Lay one metric of all runs side by side; `rows` are units, values and errors by the run's number."""
    numbers = {run.number: np.frombuffer(rows[run.number][0], NUMBERS) for run in runs}
    seen = np.zeros(max((int(one.max(initial=-1)) for one in numbers.values()), default=-1) + 1, bool)
    for one in numbers.values():
        seen[one] = True
    units, at = np.flatnonzero(seen), np.cumsum(seen) - 1
    values, errors = (np.full((len(runs), len(units)), np.nan, np.float32) for _ in range(2))
    for position, run in enumerate(runs):
        columns = at[numbers[run.number]]
        values[position, columns] = np.frombuffer(rows[run.number][1], FLOATS)
        errors[position, columns] = np.frombuffer(rows[run.number][2], FLOATS)
    return History(metric, runs, units, values, errors)
