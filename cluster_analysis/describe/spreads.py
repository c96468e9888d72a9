"""Spreads of values: by group and kind of operator, and of kernels between the ranks of a stage."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from cluster_analysis.numeric.arrays import FloatArray, codes, numbers
from cluster_analysis.numeric.sorting import combined
from cluster_analysis.tables.columns_described import Communication, KernelSpread
from cluster_analysis.tables.model import Topology
from cluster_run.ids import Rank

#: Names of the columns, and which quantile each is.
QUARTILES = {"min_us": 0.0, "q1_us": 0.25, "median_us": 0.5, "q3_us": 0.75, "max_us": 1.0}
#: Kinds that are shown; the rest is in the table of all kernels.
_MAX_KINDS = 300


def quartiles(values: FloatArray) -> dict[str, float | None]:
    """Return minimum, quartiles and maximum (NumPy's linear interpolation); None where there is no value."""
    known = values[np.isfinite(values)]
    if not len(known):
        return dict.fromkeys(QUARTILES)
    found = np.quantile(known, list(QUARTILES.values())) + 0.0  # no zero is negative
    return dict(zip(QUARTILES, found.tolist(), strict=True))


def by_group_and_type(matched: pa.Table) -> pa.Table:
    """Return `Communication` of MATCHED, what waited longest first. Quartiles are those of waits."""
    groups, group = codes(matched["group"])
    kinds, kind = codes(matched["op_type"])
    roles, role = codes(matched["role"])
    transfer, spread, wait, size = (
        numbers(matched[name]) for name in ("transfer_us", "max_wait_us", "total_wait_us", "size_bytes")
    )
    names = matched["op_name"]
    rows: list[dict[str, Any]] = []
    both = group.astype(np.int64) * max(len(kinds), 1) + kind
    order = np.argsort(both, kind="stable")
    for here in np.split(order, np.flatnonzero(np.diff(both[order])) + 1) if len(order) else ():
        code = int(both[here[0]])
        slowest = int(here[np.argmax(transfer[here] + spread[here])])
        known = size[here][np.isfinite(size[here])]
        rows.append(
            {
                "group": groups[code // len(kinds)],
                "role": roles[role[here[0]]],
                "op_type": kinds[code % len(kinds)],
                "n_operators": len(here),
                "size_bytes": float(known.sum()) if len(known) else None,
                "transfer_us": float(transfer[here].sum()),
                "wait_us": float(wait[here].sum()),
                **quartiles(spread[here]),
                "slowest_operator": names[slowest].as_py(),
                "slowest_us": float(transfer[slowest] + spread[slowest]),
            }
        )
    rows.sort(key=lambda row: (-float(row["wait_us"]), str(row["group"]), str(row["op_type"])))
    return Communication.of_rows(rows)


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
    rows: list[dict[str, Any]] = []
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
    rows.sort(key=lambda row: (-float(row["max_us"]), str(row)))
    return KernelSpread.of_rows(rows)
