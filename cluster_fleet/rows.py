"""Arrays of a run as bytes of the database, and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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


def history_of(
    metric: str, runs: Sequence[RunLine], units: Iterable[bytes], rows: Iterable[Sequence[Any]]
) -> History:
    """Lay one metric of the runs side by side.

    `units` are those of all runs, often the same; `rows` are run, units, values and errors, held one by one.
    """
    several = [np.frombuffer(one, NUMBERS) for one in set(units)]
    seen = np.zeros(max((int(one.max(initial=-1)) for one in several), default=-1) + 1, bool)
    for numbers in several:
        seen[numbers] = True
    column, position = np.cumsum(seen) - 1, {run.number: at for at, run in enumerate(runs)}
    values, errors = (np.full((len(runs), int(seen.sum())), np.nan, np.float32) for _ in range(2))
    for run, own, amounts, scatter in rows:
        if run not in position:  # it was added meanwhile
            continue
        columns = column[np.frombuffer(own, NUMBERS)]
        values[position[run], columns] = np.frombuffer(amounts, FLOATS)
        errors[position[run], columns] = np.frombuffer(scatter, FLOATS)
    return History(metric, runs, np.flatnonzero(seen), values, errors)
