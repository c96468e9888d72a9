"""Entries of single links that last many times as long as the like of them: what was sent again, seen itself.

A matrix holds what a link itself took, whoever waited for whom. It shows the event also where the operator
does not, as a record of it is lost, and tells it from those that only waited.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cluster_analysis.numeric.arrays import BoolArray, FloatArray
from cluster_analysis.numeric.sorting import combined, half_octaves
from cluster_analysis.numeric.stats import medians_by, sigma
from cluster_analysis.thresholds.common import FEWEST_PEERS, TWICE
from cluster_analysis.thresholds.limits import Thresholds
from cluster_analysis.trace.calls import codes, is_sum, numbers
from cluster_run.findings import Link
from cluster_run.ids import Rank

_READ = [
    "step",
    "group",
    "is_p2p",
    "op_type",
    "variant",
    "src_rank",
    "dst_rank",
    "transport",
    "size_bytes",
    "time_us",
]


@dataclass(frozen=True)
class LinkEvent:
    """One group's links in one step that lasted far too long, the longest first; times in µs are its."""

    group: str
    step: int
    links: tuple[Link, ...]
    op_type: str
    time_us: float
    usual_us: float
    spread_us: float
    n_others: int


def lasted_far_too_long(time_us: FloatArray, usual_us: FloatArray | float, limits: Thresholds) -> BoolArray:
    """Whether times are beyond what contention makes of the usual ones, and by so much longer: an event."""
    return np.asarray((time_us > TWICE * usual_us) & (time_us - usual_us > limits.retransmission_us))


def link_events(links: pa.Table, limits: Thresholds) -> dict[tuple[str, int], LinkEvent]:
    """Return the events of collectives by group and step; messages' entries may hold waits for receivers.

    Args:
        links: rows of LINKS.
        limits: how long, and how many times as long as usual, an event is.
    """
    if not (numbers(links["time_us"]) > limits.retransmission_us).any():
        return {}
    table = links.select(_READ)
    table = table.filter(pc.invert(table["is_p2p"]))
    time = numbers(table["time_us"])
    is_total = is_sum(table["variant"])
    known = np.flatnonzero(is_total if is_total.all() else ~is_total)
    types, kind = codes(table["op_type"])
    transports, transport = codes(table["transport"])
    octave = half_octaves(numbers(table["size_bytes"])[known])
    _, like = combined(kind[known], transport[known], octave)
    groups, group = codes(table["group"])
    step = np.asarray(table["step"].to_numpy(), np.int64)
    src, dst = table["src_rank"].to_numpy(), table["dst_rank"].to_numpy()
    usual, count = medians_by(time[known], like), np.bincount(like)
    _, of_link = combined(like, src[known], dst[known])
    # Far longer than the middle of those of its kind, of which there are enough, and of the link itself:
    # one that is always slow has no event.
    own = np.where(np.bincount(of_link) >= FEWEST_PEERS, medians_by(time[known], of_link), 0.0)
    like_it = np.maximum(usual[like], own[of_link])
    is_far = lasted_far_too_long(time[known], like_it, limits)
    far = np.flatnonzero(is_far & (count[like] >= FEWEST_PEERS))
    spread = cache(lambda one: float(np.nan_to_num(sigma(time[known][like == one]))))
    events: dict[tuple[str, int], LinkEvent] = {}
    for row in sorted(far.tolist(), key=lambda at: -time[known[at]]):
        here = int(known[row])
        link = Link(Rank(int(src[here])), Rank(int(dst[here])), transports[transport[here]])
        key = groups[group[here]], int(step[here])
        first = events.get(key)
        if first is None:
            one = int(like[row])
            events[key] = LinkEvent(
                *key, (link,), types[kind[here]], float(time[here]), float(usual[one]), spread(one),
                int(count[one]) - 1,
            )  # fmt: skip
        elif link not in first.links:
            events[key] = replace(first, links=(*first.links, link))
    return events
