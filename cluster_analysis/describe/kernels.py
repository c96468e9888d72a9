"""Kernels between ranks: each kind's time on the slowest rank against the typical rank of the same stage."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.describe.quartiles import quartiles
from cluster_analysis.numeric.sorting import combined
from cluster_analysis.tables.columns_described import Flops, KernelSpread
from cluster_analysis.tables.model import Topology
from cluster_analysis.trace.calls import codes, numbers
from cluster_run.ids import Rank

#: Kinds that are shown; the rest is in the table of all kernels.
_MAX_KINDS = 300


def between_ranks(kernels: pa.Table, topology: Topology) -> pa.Table:
    """Return `KernelSpread`: by stage, type, core and shapes the time that its ranks spend in it.

    Kinds that take most time come first. A rank that never runs a kind counts with 0.
    """
    keys = ("op_type", "core_type", "name", "input_shapes")
    ranks, row = np.unique(kernels["rank"].to_numpy(), return_inverse=True)
    stage_of = np.array([topology.stages.get(Rank(int(rank)), -1) for rank in ranks], np.int64)
    coded = [codes(kernels[key]) for key in keys]
    _, kind = combined(stage_of[row] + 1, *(code for _, code in coded))
    n_kinds = int(kind.max(initial=-1)) + 1
    time = numbers(kernels["total_us"])
    total = np.bincount(kind, time, n_kinds)
    rows: list[dict[str, object]] = []
    kept = np.argsort(-total, kind="stable")[:_MAX_KINDS]
    place = np.full(n_kinds, -1)
    place[kept] = np.arange(len(kept))
    inside = place[kind] >= 0
    spent, n_calls = np.zeros((2, len(kept), len(ranks)))
    np.add.at(spent, (place[kind[inside]], row[inside]), time[inside])
    np.add.at(n_calls, (place[kind[inside]], row[inside]), numbers(kernels["n_calls"])[inside])
    first = np.full(len(kept), len(kind))
    np.minimum.at(first, place[kind[inside]], np.flatnonzero(inside))
    for at, here in enumerate(first.tolist()):
        stage = int(stage_of[row[here]])
        together = np.flatnonzero(stage_of == stage)
        values = spent[at, together]
        slowest = int(together[np.argmax(values)])
        rows.append(
            {
                "stage": None if stage < 0 else stage,
                **{key: texts[code[here]] for key, (texts, code) in zip(keys, coded, strict=True)},
                "n_ranks": len(together),
                "n_calls": int(n_calls[at, together].max()),
                **quartiles(values),
                "slowest_rank": int(ranks[slowest]),
                "slowest_excess_us": float(values.max() - np.median(values)),
            }
        )
    rows.sort(key=lambda row: (-float(row["max_us"]), str(row)))  # type: ignore[arg-type]
    return KernelSpread.of_rows(rows)


def flops_of_ranks(kernels: pa.Table, counters: pa.Table) -> pa.Table:
    """Return `Flops` by rank: what r1.x states, else that of matrix products over the time they took.

    The share is of the fastest rank's, as the r1.x page has it (FLOPs / max FLOPs).
    """
    rows: dict[int, dict[str, object]] = {}
    stated = {
        "flops_count": "flops_count",
        "flops_per_s": "flops_per_s",
        "flops_utilization_share": "peak_share",
    }
    for row in counters.to_pylist():
        if row["metric"] in stated:
            of_rank = rows.setdefault(row["rank"], {"rank": row["rank"], "of": "step"})
            of_rank[stated[row["metric"]]] = row["value"]
    products = kernels.filter(pc.is_valid(kernels["flops_count"]))
    summed = products.group_by(["rank"], use_threads=False).aggregate(
        [("flops_count", "sum"), ("total_us", "sum")]
    )
    for row in summed.to_pylist():
        if row["rank"] not in rows and row["total_us_sum"] > 0:
            per_s = row["flops_count_sum"] / (row["total_us_sum"] / 1e6)
            rows[row["rank"]] = {
                "rank": row["rank"],
                "of": "matrix products",
                "flops_count": row["flops_count_sum"],
                "flops_per_s": per_s,
            }
    most = max((float(row.get("flops_count") or 0.0) for row in rows.values()), default=0.0)  # type: ignore[arg-type]
    for row in rows.values():
        row["share_of_largest"] = float(row.get("flops_count") or 0.0) / most if most else None  # type: ignore[arg-type]
    return Flops.of_rows([rows[rank] for rank in sorted(rows)])
