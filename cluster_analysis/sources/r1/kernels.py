"""Kernels of MindSpore r1.x to 2.3: by name in aicore_intermediate_{id}_detail.csv, by kind in the others.

Those are aicore_intermediate_{id}_type.csv (four headers exist; its `percent` is of 100 in one version and of
1 in another, and is not read) and gpu_op_type_info_{id}.csv, in µs; all other times are ms.

`execution_time` of a name is the mean of one execution; a file without `execution_frequency` ran each once a
step. Kinds and shapes are in framework_raw_{id}.csv, under the same full name.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.sources import numbers
from cluster_analysis.sources.errors import BadFileError, Remark, tell_left_out, unheard
from cluster_analysis.sources.kernel_groups import KEYS, KernelSums
from cluster_analysis.sources.text.csv_text import read_columns
from cluster_analysis.tables import schema
from cluster_run.facts import fact
from cluster_run.files import json_of

_NAMES = ("full_op_name", "full_kernel_name", "full_kernel_time")
_TIMES_MS = ("execution_time", "task_duration")
_COUNT, _CORE = "execution_frequency", "task_type"
_KINDS = ("kernel_type", "op_type")
_SUMS_MS, _COUNTS = ("execution_time", "total_time", "task_time"), ("execution_frequency", "type_occurrences")
_KINDS_OF_SUMS, _GPU_TIME_US = ("op_type", "kernel_type"), "total_time(us)"


def read_r1_kernels(path: Path, rank: int, framework: Path | None, remark: Remark) -> pa.Table | None:
    """Return KERNELS; None where the file has no row.

    Args:
        path: the file.
        rank: whose it is.
        framework: framework_raw_{id}.csv, where there is one.
        remark: called for rows without a time.
    """
    text = read_columns(path, (*_NAMES, *_TIMES_MS, _COUNT, _CORE), remark)
    name, time = _one_of(text, _NAMES), _one_of(text, _TIMES_MS)
    times, n_bad = numbers.to_float64(text[time])
    tell_left_out(remark, n_bad, "duration", "no_number")
    counts = numbers.to_int64(text[_COUNT])[0].to_pylist() if _COUNT in text.column_names else [1] * len(text)
    cores = text[_CORE].to_pylist() if _CORE in text.column_names else ["AI_CORE"] * len(text)
    known = _framework(framework) if framework else {}
    rows: list[dict[str, Any]] = []
    for full, mean_ms, count, core in zip(
        text[name].to_pylist(), times.to_pylist(), counts, cores, strict=True
    ):
        if mean_ms is None or not count:
            continue
        all_ps = round(mean_ms * numbers.US_PER_MS * numbers.PS_PER_US * count)
        kind, inputs, outputs = known.get(full, (full.rpartition("/")[2].partition("-op")[0], "", ""))
        keys = dict(zip(KEYS, (kind, core, full, inputs, outputs, ""), strict=True))
        sums = {"n": count, "ps": all_ps, "ps_min": None, "ps_max": None, "wait_ps": None}
        rows.append({**keys, **sums})
    if not rows:
        return None
    texts = [(key, pa.string()) for key in KEYS]
    times_of = [(key, pa.int64()) for key in ("ps", "ps_min", "ps_max", "wait_ps")]
    kernels = KernelSums()
    kernels.add_sums(pa.Table.from_pylist(rows, schema=pa.schema([*texts, ("n", pa.int64()), *times_of])))
    return kernels.table(rank)


def read_r1_operators(path: Path, rank: int, remark: Remark) -> pa.Table:
    """Return calls and times of each kind of kernel (OPERATORS)."""
    text = read_columns(path, (*_KINDS_OF_SUMS, *_SUMS_MS, *_COUNTS, _GPU_TIME_US), remark)
    kind, count = _one_of(text, _KINDS_OF_SUMS), _one_of(text, _COUNTS)
    time = _GPU_TIME_US if _GPU_TIME_US in text.column_names else _one_of(text, _SUMS_MS)
    times, n_bad = numbers.to_float64(text[time])
    counts, n_bad_counts = numbers.to_int64(text[count])
    tell_left_out(remark, n_bad + n_bad_counts, "cell", "no_number")
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
    found = next((name for name in names if name in text.column_names), None)
    if found is None:
        raise BadFileError(fact("none_of_columns", columns=names))
    return found


def _framework(path: Path) -> Mapping[str, tuple[str, str, str]]:
    """Return kind, input shapes and output shapes by full name; nothing of a file that cannot be read."""
    try:
        text = read_columns(path, (*_NAMES[:2], *_KINDS, "op_info"), unheard)
        name, kind = _one_of(text, _NAMES[:2]), _one_of(text, _KINDS)
    except BadFileError:
        return {}
    infos = text["op_info"].to_pylist() if "op_info" in text.column_names else [""] * len(text)
    return {
        full: (own, *_shapes(info))
        for full, own, info in zip(text[name].to_pylist(), text[kind].to_pylist(), infos, strict=True)
    }


def _shapes(info: str) -> tuple[str, str]:
    """Return shapes as kernel_details.csv writes them: `2,3;3,4`."""
    try:
        described = json_of(info.replace("'", '"'))
    except ValueError:
        return "", ""
    if not isinstance(described, dict):
        return "", ""
    found = []
    for side in ("input", "output"):
        shapes = [
            one.get("shape")
            for name, one in sorted(described.items())
            if name.startswith(side) and isinstance(one, dict)
        ]
        found.append(";".join(_shape(shape) for shape in shapes))
    return found[0], found[1]


def _shape(shape: object) -> str:
    sizes = shape if isinstance(shape, list) else str(shape or "").strip("[]()").split(",")
    return ",".join(str(size).strip() for size in sizes)
