"""op_statistic.csv: one row a kind of kernel; api_statistic.csv: one a call of the host into the runtime.

Both are over all steps of the capture, in µs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cluster_analysis.sources import numbers
from cluster_analysis.sources.errors import FileOfRank, Remark, tell_left_out
from cluster_analysis.sources.measured import without_repeated
from cluster_analysis.sources.text.csv_text import read_files
from cluster_analysis.tables import schema

_OP_TIMES = {
    "total_us": "Total Time(us)",
    "min_us": "Min Time(us)",
    "avg_us": "Avg Time(us)",
    "max_us": "Max Time(us)",
}
_OP_COLUMNS = ("OP Type", "Core Type", "Count", *_OP_TIMES.values())
_API_TIMES = {"total_us": "Time(us)", "avg_us": "Avg(us)", "min_us": "Min(us)", "max_us": "Max(us)"}
_API_COLUMNS = ("Level", "API Name", "Count", *_API_TIMES.values())


def read_op_statistic(files: Sequence[FileOfRank], remark: Remark) -> pa.Table:
    """Return the kinds of kernels (OPERATORS) of the files of one or more ranks.

    Raises:
        BadFileError: nothing of a file can be used.
        NotTogetherError: several files are not alike.
    """
    text, ranks = read_files(files, _OP_COLUMNS, ("OP Type", "Count", "Total Time(us)"), remark)
    names = {"op_type": "OP Type", "core_type": "Core Type"}
    kinds = _table(text, schema.OPERATORS, ranks, names, _OP_TIMES, remark)
    return without_repeated(kinds, remark, ("rank", "op_type", "core_type"), "kernel_repeated")


def read_api_statistic(files: Sequence[FileOfRank], remark: Remark) -> pa.Table:
    """Return the host's calls (APIS) of the files of one or more ranks; see `read_op_statistic`."""
    text, ranks = read_files(files, _API_COLUMNS, ("API Name", "Count", "Time(us)"), remark)
    names = {"level": "Level", "api": "API Name"}
    return _table(text, schema.APIS, ranks, names, _API_TIMES, remark)


def _table(
    text: pa.Table,
    kind: pa.Schema,
    ranks: npt.NDArray[np.int32],
    names: Mapping[str, str],
    times: Mapping[str, str],
    remark: Remark,
) -> pa.Table:
    known = {ours: text[theirs].to_pylist() for ours, theirs in names.items() if theirs in text.column_names}
    counts, n_bad = numbers.to_int64(text["Count"])
    found, bad = numbers.floats_of(text, list(times.values()))
    n_bad += sum(bad.values())
    tell_left_out(remark, n_bad, "cell", "no_number")
    measured = {ours: found[theirs] for ours, theirs in times.items() if theirs in found}
    return schema.rows(kind, ranks, **known, n_calls=counts, **measured)
