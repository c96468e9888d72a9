"""Communication by group and kind of operator: how often, how long, and how far apart the ranks came."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cluster_analysis.describe.quartiles import quartiles
from cluster_analysis.numeric.sorting import stable_order
from cluster_analysis.tables.columns_described import Communication
from cluster_analysis.trace.calls import codes, numbers


def by_group_and_type(matched: pa.Table) -> pa.Table:
    """Return `Communication` of MATCHED, what waited longest first. Quartiles are those of waits."""
    groups, group = codes(matched["group"])
    kinds, kind = codes(matched["op_type"])
    roles, role = codes(matched["role"])
    transfer, spread, wait, size = (
        numbers(matched[name]) for name in ("transfer_us", "max_wait_us", "total_wait_us", "size_bytes")
    )
    names = matched["op_name"]
    rows: list[dict[str, object]] = []
    both = group.astype(np.int64) * max(len(kinds), 1) + kind
    order = stable_order(both)
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
    rows.sort(key=lambda row: (-float(row["wait_us"]), str(row["group"]), str(row["op_type"])))  # type: ignore[arg-type]
    return Communication.of_rows(rows)
