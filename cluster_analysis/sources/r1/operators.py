"""aicore_intermediate_{id}_type.csv and gpu_op_type_info_{id}.csv of MindSpore r1.x to 2.3, as OPERATORS.

Four headers of the first exist, in ms; its `percent` is of 100 in one version and of 1 in another, and is
not read. The GPU file is in µs.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.sources import numbers
from cluster_analysis.sources.errors import BadFileError, Remark, left_out
from cluster_analysis.sources.text.csv_text import read_columns
from cluster_analysis.tables import schema
from cluster_run.facts import fact

_KINDS = ("op_type", "kernel_type")
_TIMES_MS = ("execution_time", "total_time", "task_time")
_COUNTS = ("execution_frequency", "type_occurrences")
_GPU_TIME_US = "total_time(us)"


def read_r1_operators(path: Path, rank: int, remark: Remark) -> pa.Table:
    """Return calls and times of each kind of kernel (OPERATORS).

    Raises:
        BadFileError: nothing of the file can be used.
    """
    text = read_columns(path, (*_KINDS, *_TIMES_MS, *_COUNTS, _GPU_TIME_US), remark)
    kind, count = _one_of(text, _KINDS), _one_of(text, _COUNTS)
    time = _GPU_TIME_US if _GPU_TIME_US in text.column_names else _one_of(text, _TIMES_MS)
    times, n_bad = numbers.to_float64(text[time])
    counts, n_bad_counts = numbers.to_int64(text[count])
    if n_bad + n_bad_counts:
        remark(left_out(n_bad + n_bad_counts, "cell", "no_number"))
    totals = times if time == _GPU_TIME_US else pc.multiply(times, numbers.US_PER_MS)
    asked = pc.if_else(pc.greater(counts, 0), counts, None)
    return schema.rows(
        schema.OPERATORS,
        rank,
        op_type=text[kind].to_pylist(),
        n_calls=counts,
        total_us=totals,
        avg_us=pc.divide(totals, pc.cast(asked, pa.float64())),
    )


def _one_of(text: pa.Table, names: tuple[str, ...]) -> str:
    for name in names:
        if name in text.column_names:
            return name
    raise BadFileError(fact("none_of_columns", columns=tuple(names)))
