"""All tables of a result, and their columns: `run.steps[Steps.computing_us]`.

The class `RankTimes` is the table `rank_times` of `run.frame(…)` and of `tables/*.parquet`; its attributes
are the names of the columns, which editors complete and type checkers check. Times are microseconds (`_us`),
time stamps nanoseconds (`_ns`), sizes bytes (`_bytes`); ranks are global. A missing value is null, never 0.
"""

from __future__ import annotations

from typing import Literal

import pyarrow as pa

from cluster_analysis.tables.columns_described import *  # noqa: F403
from cluster_analysis.tables.columns_measured import *  # noqa: F403
from cluster_analysis.tables.table import Table

#: What `run.frame` takes.
TableName = Literal[
    "ranks", "steps", "matched", "rank_times", "links", "operators", "computing_apart",
    "iterations", "packets", "apis", "counters", "kernels", "memory", "frequency", "environment",
    "communication_costs", "lanes", "critical_path", "waits", "communication", "kernel_spread",
    "figures_between_ranks", "flops", "memory_peaks", "stages", "devices", "groups",
    "packet_sizes", "host_times", "relative_to_peers", "advice",
]  # fmt: skip


def declared(name: str) -> pa.Schema:
    """Return the columns of a table in this version; none of one that it does not know."""
    table: type[Table] = globals().get(name.title().replace("_", ""), Table)
    return table.schema
