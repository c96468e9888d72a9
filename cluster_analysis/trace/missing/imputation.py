"""Fill in communication calls that a rank's files lack, from the other ranks that made the same call.

Without its call a rank would seem to have worked through it, and the replay would take the waiting in it
for work.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.tables.model import Topology
from cluster_analysis.trace.calls import Calls
from cluster_analysis.trace.missing.collectives import missing_collectives
from cluster_analysis.trace.missing.durations import Exposed, as_totals_say
from cluster_analysis.trace.missing.messages import missing_messages
from cluster_analysis.trace.streams.streams import Sequence


def with_missing_calls(
    calls: Calls,
    operator: IntArray,
    offset_us: FloatArray,
    topology: Topology,
    *,
    exposed: Exposed | None = None,
    local: Sequence | None = None,
) -> Calls:
    """Return the calls with the missing ones filled in; the same object when none is missing.

    Args:
        calls: the step's calls.
        operator: the operator of each call (V,).
        offset_us: what to add to each rank's clock to compare it with others (ranks,).
        topology: the members of each group, stages and replicas.
        exposed: what the ranks' communication must add up to, if that is known.
        local: the streams of the calls; those of a second one do not count in it.
    """
    if not calls.has_clock:
        return calls
    found = missing_collectives(calls, operator, offset_us, topology, local)
    found += missing_messages(calls, operator, found, topology)
    if not found:
        return calls
    if exposed is not None and local is not None:
        found = as_totals_say(found, exposed, local.is_side)
    source = np.array([one.source for one in found])
    rank = np.concatenate([calls.rank, [one.rank for one in found]])
    start = np.concatenate([calls.start_us, [one.start_us for one in found]])
    end = np.concatenate([calls.end_us, [one.end_us for one in found]])
    group = np.concatenate([calls.group, [one.group for one in found]])
    order = np.lexsort((end, start, rank))
    others = {
        name: np.concatenate([getattr(calls, name), getattr(calls, name)[source]])[order]
        for name in ("kind", "number", "size_bytes", "busy_us", "rows")
    }
    return replace(
        calls,
        rank=rank[order],
        group=group[order],
        start_us=start[order],
        end_us=end[order],
        elapse_us=(end - start)[order],
        kind=others["kind"],
        number=others["number"],
        size_bytes=others["size_bytes"],
        busy_us=others["busy_us"],
        rows=others["rows"],
    )
