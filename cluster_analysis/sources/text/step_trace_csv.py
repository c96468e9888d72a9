"""step_trace_time.csv: one row a step (and device), in µs.

Columns are found by name, so a file with `Device_id` in front or without `Preparing` gives the same table.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.sources import numbers
from cluster_analysis.sources.errors import BadFileError, FileOfRank, Remark, tell_left_out, unheard
from cluster_analysis.sources.measured import (
    OF_STEPS,
    Identity,
    of_own_device,
    sound_steps,
    tell_no_columns,
    without_unknown_begin,
)
from cluster_analysis.sources.text.csv_text import read_columns, read_files
from cluster_analysis.tables import schema
from cluster_reduce.levels import parse_step
from cluster_run.facts import fact

#: Column of the file for each column of STEPS. Databases have it in lower case, with `_` for all other signs.
COLUMNS = {
    "computing_us": "Computing",
    "communication_not_overlapped_us": "Communication(Not Overlapped)",
    "overlapped_us": "Overlapped",
    "communication_us": "Communication",
    "free_us": "Free",
    "stage_us": "Stage",
    "bubble_us": "Bubble",
    "communication_not_overlapped_exclude_receive_us": "Communication(Not Overlapped and Exclude Receive)",
    "preparing_us": "Preparing",
}
DATABASE_COLUMNS = {column: re.sub(r"\W+", "_", name).strip("_").lower() for column, name in COLUMNS.items()}
_WANTED = ("Step", *COLUMNS.values())
DEVICE = "Device_id"


def read_step_trace(
    files: Sequence[FileOfRank], remark: Remark, identities: Sequence[Identity] = OF_STEPS
) -> pa.Table:
    """Return the steps (STEPS) of the files of one or more ranks; a cell that is no number is null.

    So is a column that is missing; where it is judged, that is remarked.

    Raises:
        BadFileError: nothing of a file can be used: steps or computing time are missing, or there is no row.
        NotTogetherError: several files are not alike.
    """
    text, ranks = read_files(files, _WANTED, ("Step", "Computing"), remark)
    if text.num_rows == 0:
        raise BadFileError(fact("no_step_in_it"))
    measured = sound_steps(_steps_from_text(text, ranks, remark), remark, identities)
    if measured.num_rows == 0:
        raise BadFileError(fact("no_step_in_it"))
    return of_own_device(without_unknown_begin(measured), remark)


def read_device_of_steps(path: Path) -> int | None:
    """Return the one device that the file says it is of, None where it names none or several."""
    text = read_columns(path, ("Step", DEVICE), unheard)
    cells = set(text[DEVICE].to_pylist()) if DEVICE in text.column_names else ()
    cell = next(iter(cells)) if len(cells) == 1 else ""
    return int(cell) if cell.strip().isdecimal() else None


def _steps_from_text(text: pa.Table, ranks: npt.NDArray[np.int32], remark: Remark) -> pa.Table:
    columns = {"step": _steps(text, remark)}
    found, bad = numbers.floats_of(text, list(COLUMNS.values()))
    tell_no_columns({COLUMNS[name] for name in schema.NEEDED_STEPS} - set(found), remark)
    for name, column in COLUMNS.items():
        if column not in found:
            continue
        columns[name] = found[column]
        n_bad = columns[name].null_count if name in schema.NEEDED_STEPS else bad.get(column, 0)
        tell_left_out(remark, n_bad, "cell", "no_number_in_column", column=column)
    table = schema.rows(schema.STEPS, ranks, **columns)
    return table.filter(pc.is_valid(table["step"])) if table["step"].null_count else table


def _steps(text: pa.Table, remark: Remark) -> pa.Array:
    cells = text["Step"].to_pylist()
    steps = [parse_step(cell) for cell in cells]
    bad = [cell for cell, step in zip(cells, steps, strict=True) if step is None]
    tell_left_out(remark, len(bad), "row", "no_step_number_but", text=repr("".join(bad[:1])[:40]))
    return pa.array(steps, pa.int64())
