"""How long collectives take if files of a member are missing.

If the last member to come has no files, even the shortest elapse holds waiting. So a transfer is assumed to
last no longer than complete ones of its kind, or than the slowest of its own links, if that is longer.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa

from cluster_analysis.numeric.arrays import FloatArray, IntArray, codes, has_text, numbers
from cluster_analysis.numeric.sorting import combined, half_octaves
from cluster_analysis.numeric.stats import sigma
from cluster_analysis.tables.model import Topology
from cluster_analysis.thresholds.calls import ENOUGH_COMPLETE, ENOUGH_STEADY, STEADY_SHARE
from cluster_analysis.trace.calls import Calls


def without_absent(
    calls: Calls, operators: tuple[IntArray, IntArray], transfer_us: FloatArray, topology: Topology,
    links: pa.Table,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Return transfers (O,) without waiting for members without files, and the part of each that moved data.

    Nothing moves for longer than all links of a member were busy together: where members have no files, all
    others may have waited for them.

    Args:
        operators: the calls of each operator side by side, by rank (V,), and where those of each begin (O,).
        transfer_us: the shortest elapse of each (O,).
        topology: the groups with all their members.
        links: the step's LINKS rows.
    """
    members, begin = operators
    first, n_present = members[begin], np.diff(np.r_[begin, len(members)])
    sizes = [len(topology.groups[name].ranks) if name in topology.groups else 0 for name in calls.groups]
    group_of = calls.group[first]
    n_expected = np.array(sizes)[group_of]
    collective = ~calls.is_point_to_point[first] & (n_expected > 1)
    short = collective & (n_present < n_expected)
    if not short.any():
        return transfer_us, transfer_us
    _, code = combined(calls.kind[first], half_octaves(calls.size_bytes[first]), n_expected)
    slowest, result = _slowest_link(links), transfer_us.copy()
    for one in np.unique(code[short]):
        complete = transfer_us[(code == one) & collective & ~short]
        if len(complete) < ENOUGH_COMPLETE:
            continue
        for group in np.unique(group_of[short & (code == one)]):
            here = short & (code == one) & (group_of == group)
            # Waiting scatters; if it lasts equally long each time, it is a slow link's transfer.
            own = transfer_us[here]
            if len(own) < ENOUGH_STEADY or sigma(own) > STEADY_SHARE * np.median(own):
                kind = calls.types[calls.kind[first[here][0]]]
                link_us = slowest.get((calls.groups[group], kind), 0.0)
                result[here] = np.minimum(transfer_us[here], max(float(np.median(complete)), link_us))
    busy_us = np.fmax.reduceat(calls.busy_us[members], begin)
    return result, np.where(short, np.fmin(result, busy_us), result)


def _slowest_link(links: pa.Table) -> dict[tuple[str, str], float]:
    """µs of the longest entry by group and kind of operator; sums over operators are left out."""
    groups, group = codes(links["group"])
    kinds, kind = codes(links["op_type"])
    single = ~has_text(links["variant"], "total")
    longest = np.zeros(len(groups) * len(kinds))
    time = numbers(links["time_us"])
    np.maximum.at(longest, (group.astype(np.int64) * len(kinds) + kind)[single], time[single])
    return dict(zip(product(groups, kinds), longest.tolist(), strict=True))
