"""Fills in calls that a rank's files lack, from the other ranks that made the same call.

Without the call the rank would seem to have worked meanwhile, and the replay would take its waiting for work.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.tables.model import Topology
from cluster_analysis.trace.calls import Calls, with_more
from cluster_analysis.trace.missing.collectives import incomplete_collectives, purposes
from cluster_analysis.trace.missing.messages import incomplete_messages
from cluster_analysis.trace.missing.placing import MissingCall, UsualGaps, placed
from cluster_analysis.trace.pairing.ends import Program
from cluster_analysis.trace.streams.streams import Streams
from cluster_run.ids import Rank


def with_missing_calls(
    calls: Calls, operator: IntArray, offset_us: FloatArray, topology: Topology,
    programs: Sequence[Program], local: Streams, began_us: FloatArray,
) -> tuple[Calls, Sequence[Program]]:  # fmt: skip
    """Return the calls with the missing ones filled in, and the programs with them in their places.

    The same objects when none is missing.

    Args:
        operator: the operator of each call (V,).
        offset_us: what to add to each rank's clock to compare it with others (ranks,).
        topology: the members of each group, stages and replicas.
        programs: what groups that send messages run.
        local: the streams of the calls.
        began_us: when each rank's device began to work, and when its step began (2, ranks), on its clock;
            NaN for unknown.
    """
    if not calls.has_clock:
        return calls, programs
    purpose = purposes(calls, topology)
    incomplete = [
        *incomplete_collectives(calls, operator, offset_us, topology, purpose),
        *incomplete_messages(calls, offset_us, programs),
    ]
    if not incomplete:
        return calls, programs
    stage = np.array([topology.stages.get(Rank(int(rank)), -1) for rank in calls.ranks])
    gaps = UsualGaps.of(calls, operator, stage, purpose, began_us, [one.family.table for one in programs])
    found = placed(calls, incomplete, gaps, offset_us, stage, local)
    if not found:
        return calls, programs
    names = ("rank", "group", "start_us", "end_us")
    own = {name: np.array([getattr(one, name) for one in found]) for name in names}
    whole, order = with_more(calls, np.array([one.source for one in found], np.int64), **own)
    return whole, _moved_to(programs, order, found)


def _moved_to(programs: Sequence[Program], order: IntArray, found: Sequence[MissingCall]) -> list[Program]:
    """Return the programs with calls where they now lie, and with the messages that are filled in."""
    moved = np.empty(len(order), np.int64)
    moved[order] = np.arange(len(order))
    n_before = len(order) - len(found)
    tables = [np.where(one.family.table < 0, -1, moved[one.family.table]) for one in programs]
    for number, one in enumerate(found):
        if one.place is not None:
            program, row, slot = one.place
            tables[program][row, slot] = moved[n_before + number]
    return [
        replace(one, family=replace(one.family, table=table))
        for one, table in zip(programs, tables, strict=True)
    ]
