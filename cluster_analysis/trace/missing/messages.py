"""Sends and receives that a rank's files lack, by the program that its pipeline runs.

Replicas run one program: a slot that most of them fill was lost in the one that does not. No rank leaves an
exchange before the ranks that it waits for have come, so the other end shows when it was over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from cluster_analysis.numeric.arrays import BoolArray, FloatArray
from cluster_analysis.thresholds.calls import TOGETHER_US
from cluster_analysis.thresholds.common import HALFWAY
from cluster_analysis.trace.calls import Calls
from cluster_analysis.trace.missing.collectives import Incomplete
from cluster_analysis.trace.pairing.ends import Program
from cluster_analysis.trace.pairing.program import Edges


def incomplete_messages(
    calls: Calls, offset_us: FloatArray, programs: Sequence[Program]
) -> Iterator[Incomplete]:
    """Yield the messages that half of the replicas have and some lack.

    Args:
        offset_us: what to add to each rank's clock to compare it with others (ranks,).
        programs: what the groups run.
    """
    for number, program in enumerate(programs):
        lost = _lost(program)
        if lost.any():
            yield from _incomplete(calls, offset_us, number, program, lost)


def _lost(program: Program) -> BoolArray:
    """Slots (groups, slots) that half of the groups fill, and a rank that has most of its others does not."""
    family = program.family
    is_there = family.table >= 0
    usual = 2 * is_there.sum(axis=0) >= len(is_there)
    lost = ~is_there & usual
    for stage in range(family.n_stages):
        own = family.stage == stage
        lost[np.ix_(lost[:, own].sum(axis=1) > HALFWAY * (usual & own).sum(), own)] = False
    return np.asarray(lost & (family.ranks[:, family.stage] >= 0))


def _incomplete(
    calls: Calls, offset_us: FloatArray, number: int, program: Program, lost: BoolArray
) -> Iterator[Incomplete]:
    family, table = program.family, program.family.table
    is_there = table >= 0
    elapse = np.where(is_there, calls.elapse_us[table], np.nan)
    end = np.where(is_there, calls.end_us[table] + offset_us[calls.rank[table]], np.nan)
    start = end - elapse
    quick_us = np.nanmin(elapse, axis=0, initial=np.inf)
    who, whom = _waits(program, start, end, quick_us)
    for row, slot in np.argwhere(lost).tolist():
        rank, own = int(family.ranks[row, family.stage[slot]]), whom[who == slot]
        others = np.unique(own[is_there[row, own]]).tolist()
        needed_us = min(quick_us[one] for one in (slot, *others))
        ended_us = np.nan if len(own) else -np.inf  # a rank that waits for nobody leaves when it has sent
        for other in others:
            theirs, met_us = whom[who == other], end[row, other]
            further = start[row, theirs[theirs != slot]]
            begun_us = np.max([start[row, other], *further])
            if len(further) and not met_us > begun_us + quick_us[other] + TOGETHER_US:
                met_us = min(start[row, other] + needed_us, met_us)  # it may have waited for those
            ended_us = np.fmax(ended_us, met_us)
        yield Incomplete(
            known=table[is_there[:, slot], slot],
            lacking=(rank,),
            group=int(calls.group[table[row, is_there[row]][0]]),
            ended_us=float(ended_us),
            needed_us=float(needed_us),
            waited=False,
            place=(number, row, slot),
        )


def _waits(program: Program, start_us: FloatArray, end_us: FloatArray, quick_us: FloatArray) -> Edges:
    """Which slots stay until which others have come: receivers, and senders if they stay for late ones.

    Late is a rank that came after a send could be over. If none did, the program's other messages show it.
    """
    source, target = program.edges
    over_us = start_us[:, source] + np.minimum(quick_us[source], quick_us[target])
    is_late = start_us[:, target] > over_us + TOGETHER_US
    stayed = is_late & (end_us[:, source] >= start_us[:, target])
    n_late, n_stayed = is_late.sum(axis=0), stayed.sum(axis=0)
    waits = np.where(n_late > 0, n_stayed > HALFWAY * n_late, n_stayed.sum() > HALFWAY * n_late.sum())
    return np.concatenate([target, source[waits]]), np.concatenate([source, target[waits]])
