"""ascend_cluster_analyse_{mode}_{stages}_{size}_{rank}.csv of MindSpore r1.5 to 2.3, in ms.

Two columns (computation, exposed communication), for pipelines three more (stage, exposed receive,
exposed collectives). Their names vary between versions, so the position counts. There is no step
column: row k is step k of the step trace, and the last of several rows is a mean, not a step.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.sources import numbers
from cluster_analysis.sources.errors import BadFileError, Remark, tell_left_out
from cluster_analysis.sources.text.csv_text import read_all_columns
from cluster_analysis.tables import schema
from cluster_run.facts import fact

#: Columns of STEPS in the order of the file's columns.
_COLUMNS = (
    "computing_us",
    "communication_not_overlapped_us",
    "stage_us",
    "bubble_us",
    "communication_not_overlapped_exclude_receive_us",
)


def read_r1_cluster_analyse(path: Path, remark: Remark) -> dict[str, pa.Array]:
    """Return the file's columns by their name in STEPS, in µs, one value a step in the order of the steps."""
    text = read_all_columns(path, remark)
    if text.num_columns not in (2, 5):
        raise BadFileError(fact("other_number_of_columns", n_columns=text.num_columns, wanted=(2, 5)))
    n_steps = text.num_rows - 1 if text.num_rows > 1 else text.num_rows
    if n_steps == 0:
        raise BadFileError(fact("no_step_in_it"))
    columns = {}
    for name, column in zip(_COLUMNS, text.column_names, strict=False):
        milliseconds, n_bad = numbers.to_float64(text[column])
        columns[name] = pc.multiply(milliseconds, numbers.US_PER_MS).slice(0, n_steps)
        tell_left_out(remark, n_bad, "cell", "no_number_in_column", column=column)
    return columns


def steps_alone(rank: int, analysed: dict[str, pa.Array]) -> pa.Table:
    """Return STEPS where there is no step trace: row k is step k, and what lay before it is not known."""
    n_rows = len(next(iter(analysed.values())))
    return schema.rows(schema.STEPS, rank, step=range(1, n_rows + 1), **analysed, free_us=np.zeros(n_rows))


def steps_of_iterations(iterations: pa.Table, analysed: dict[str, pa.Array]) -> pa.Table:
    """Return STEPS of an r1.x rank: its iterations with the columns of the cluster analysis added.

    `preparing_us` is the interval before the forward pass, `stage_us` what follows (or the stage time of
    the cluster analysis, with `bubble_us` its exposed receive time).

    Raises:
        BadFileError: the cluster analysis has another number of steps.
    """
    steps = iterations.filter(pc.is_valid(iterations["step"])).combine_chunks()
    if not steps.num_rows and not analysed:
        steps = _stated_mean(iterations)
    n_rows = steps.num_rows
    columns: dict[str, pa.Array] = {
        "step": steps["step"],
        "stage_us": pc.add(steps["forward_backward_us"], steps["tail_us"]),
        "preparing_us": steps["interval_us"],
    }
    lengths = {len(values) for values in analysed.values()}
    if lengths and lengths != {n_rows}:
        raise BadFileError(fact("other_number_of_steps", n_steps=lengths.pop(), n_traced=n_rows))
    columns.update(analysed)
    if analysed:
        # Its computing time is the span without exposed communication: what is idle is in there.
        columns["free_us"] = pa.array(np.zeros(n_rows))
    return schema.rows(schema.STEPS, steps["rank"].to_numpy(), **columns)


def _stated_mean(iterations: pa.Table) -> pa.Table:
    """Return the mean step that a file states without the steps themselves, as step 0; no row without one."""
    stated = iterations.filter(pc.greater(iterations["total_us"], 0)).slice(0, 1).combine_chunks()
    return schema.with_columns(stated, step=pa.repeat(pa.scalar(0, pa.int64()), stated.num_rows))
