"""kernel_details.csv: one row a kernel, in µs. Read where op_statistic.csv is missing, and summed like it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.sources import numbers
from cluster_analysis.sources.errors import BadFileError, Remark, left_out
from cluster_analysis.sources.text.csv_text import read_columns
from cluster_analysis.tables import schema
from cluster_run.facts import fact

#: Rows of these are communication operators, which communication.json holds.
_COMMUNICATION = pa.array(["HCCL", "COMMUNICATION"])
_DECIMALS = 3


def read_kernel_details(path: Path, rank: int, remark: Remark) -> pa.Table:
    """Return calls and times of each kind of kernel (OPERATORS), longest first.

    Raises:
        BadFileError: nothing of the file can be used.
    """
    text = read_columns(path, ("Type", "Accelerator Core", "Duration(us)"), remark)
    if text.num_columns < 3:
        raise BadFileError(fact("lacks_one_column", columns=("Type", "Accelerator Core", "Duration(us)")))
    durations, n_bad = numbers.to_float64(text["Duration(us)"])
    if n_bad:
        remark(left_out(n_bad, "duration", "no_number"))
    kernels = pa.table({"type": text["Type"], "core": text["Accelerator Core"], "us": durations})
    is_kernel = pc.invert(pc.is_in(kernels["core"], value_set=_COMMUNICATION))
    kernels = kernels.filter(pc.and_(is_kernel, pc.is_valid(kernels["us"])))
    summed = kernels.group_by(["type", "core"], use_threads=False).aggregate(
        [("us", "count"), ("us", "sum"), ("us", "min"), ("us", "max")]
    )
    summed = summed.sort_by([("us_sum", "descending"), ("type", "ascending"), ("core", "ascending")])
    means = pc.round(pc.divide(summed["us_sum"], pc.cast(summed["us_count"], pa.float64())), _DECIMALS)
    columns = {
        "rank": numbers.constant(rank, summed.num_rows, pa.int32()),
        "op_type": numbers.encoded(summed["type"].to_pylist()),
        "core_type": numbers.encoded(summed["core"].to_pylist()),
        "n_calls": summed["us_count"],
        "total_us": pc.round(summed["us_sum"], _DECIMALS),
        "min_us": summed["us_min"],
        "avg_us": means,
        "max_us": summed["us_max"],
    }
    return pa.table(columns, schema=schema.OPERATORS)
