"""Costs of communication by step, as hccl_raw_{id}.csv states them: what the r1.x rank page showed.

Communication and waiting are the file's own sums, in ms, over operators that overlap: they say
nothing of a share of the step. (MindSpore 2.0 and later wrote µs there without another header; its link
times stayed ms, so that a stated cost far above the sum of link times shows it.) SDMA and RDMA are summed
over links; bandwidth is size over time, never a sum of bandwidths. Source: MindSpore's profiling tutorial.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from cluster_analysis.sources import numbers
from cluster_analysis.sources.errors import Remark
from cluster_analysis.sources.r1.hccl import LINK_COLUMN, lines_of, links_of, literal
from cluster_analysis.sources.r1.step_trace import AVERAGE_ROW
from cluster_analysis.tables import schema

#: Communication is the time on links (of the main plane): it cannot be this many times as long as all.
_OTHER_UNIT = 50.0


def read_r1_costs(path: Path, rank: int, remark: Remark) -> pa.Table | None:
    """Return COMMUNICATION_COSTS, a row a step; None where the file has no step.

    Raises:
        BadFileError: nothing of the file can be used.
    """
    rows = []
    for line in lines_of(path, remark):
        step = numbers.parse_step(line.get("step_num") or "")
        links = literal(line.get(LINK_COLUMN))
        if step is None or (line.get("step_num") or "").strip() == AVERAGE_ROW or not isinstance(links, dict):
            continue
        row: dict[str, Any] = {"rank": rank, "step": step}
        for _, transport, time_ms, size_kb in links_of(links):
            for name, value in (
                ("us", time_ms * numbers.US_PER_MS),
                ("bytes", size_kb * numbers.BYTES_PER_KB),
            ):
                key = f"{transport.lower()}_{name}"
                row[key] = row.get(key, 0.0) + value
        moved_us = row.get("sdma_us", 0.0) + row.get("rdma_us", 0.0)
        costs = [_number(line.get(f"{name}_cost")) for name in ("communication", "wait")]
        is_us = (
            costs[0] is not None and moved_us > 0 and costs[0] > _OTHER_UNIT * moved_us / numbers.US_PER_MS
        )
        factor = 1.0 if is_us else numbers.US_PER_MS
        row["communication_us"], row["wait_us"] = (None if cost is None else cost * factor for cost in costs)
        rows.append({name: row.get(name) for name in schema.COMMUNICATION_COSTS.names})
    return pa.Table.from_pylist(rows, schema=schema.COMMUNICATION_COSTS) if rows else None


def _number(text: str | None) -> float | None:
    values, n_bad = numbers.to_float64(pa.array([text], pa.string()))
    return None if n_bad else values[0].as_py()
