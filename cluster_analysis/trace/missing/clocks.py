"""How far clocks of a pipeline's stages stand apart, by the messages between them.

Collectives connect the clocks of ranks that share one. Stages share hardly any, and a wait that no record
shows makes those leave it apart: many messages tell more than a few collectives.
"""

from __future__ import annotations

import numpy as np

from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.numeric.stats import median, sigma
from cluster_analysis.thresholds.common import HALFWAY
from cluster_analysis.thresholds.messages import TOGETHER_US
from cluster_analysis.trace.calls import Calls
from cluster_analysis.trace.pairing.ends import Program


def offsets_by_messages(calls: Calls, program: Program, offset_us: FloatArray) -> FloatArray:
    """Return what to add to each rank's clock (ranks,) so that both ends of a message are over together.

    Args:
        calls: the step's calls.
        program: groups of ranks, and their messages.
        offset_us: the same by collectives, which is kept where no messages tell, or they disagree.
    """
    family, (source, target) = program.family, program.edges
    if not len(source):
        return offset_us
    is_lost, rank = family.table < 0, calls.rank[family.table]
    end = np.where(is_lost, np.nan, calls.end_us[family.table] + offset_us[rank])
    elapse = np.where(is_lost, np.nan, calls.elapse_us[family.table])
    # Messages that were there before their receive began ended before it.
    met = elapse[:, target] >= HALFWAY * np.nanmin(elapse[:, source], initial=np.inf)
    apart = np.where(met, end[:, source] - end[:, target], np.nan)
    moved = np.zeros(family.ranks.shape)
    settled, waiting = [int(family.stage[source[0]])], []
    waiting += settled
    while waiting:
        one = waiting.pop()
        for other in set(range(family.n_stages)) - set(settled):
            sent, received = (
                (family.stage[source] == first) & (family.stage[target] == last)
                for first, last in ((one, other), (other, one))
            )
            if (sent | received).any():
                ends = np.concatenate([apart[:, sent], -apart[:, received]], axis=1)
                # A batch is over when the last of its messages is: those of two may agree on nothing.
                agree = sigma(ends, 1) <= TOGETHER_US
                moved[:, other] = moved[:, one] + np.where(agree, median(ends, 1), 0.0)
                settled.append(other)
                waiting.append(other)
    shifted_us: FloatArray = offset_us.copy()
    known = family.ranks >= 0
    shifted_us[family.ranks[known]] += moved[known]
    return shifted_us
