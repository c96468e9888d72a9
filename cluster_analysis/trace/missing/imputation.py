"""Fill in communication calls that a rank's files lack, from the other ranks that made the same call.

Without its call a rank would seem to have worked through it, and the replay would take the waiting in it
for work.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.tables.model import Topology
from cluster_analysis.trace.calls import Calls, with_more
from cluster_analysis.trace.missing.collectives import missing_collectives, purposes
from cluster_analysis.trace.missing.durations import Exposed, as_totals_say
from cluster_analysis.trace.missing.messages import missing_messages
from cluster_analysis.trace.missing.record import MissingCall
from cluster_analysis.trace.pairing.ends import Program
from cluster_analysis.trace.streams.streams import Streams, among_others
from cluster_analysis.trace.streams.waits import most_waited_us


def with_missing_calls(
    calls: Calls,
    operator: IntArray,
    offset_us: FloatArray,
    topology: Topology,
    programs: Sequence[Program] = (),
    *,
    exposed: Exposed | None = None,
    local: Streams | None = None,
) -> tuple[Calls, Sequence[Program]]:
    """Return the calls with the missing ones filled in, and the programs with them in their places.

    The same objects when none is missing.

    Args:
        calls: the step's calls.
        operator: the operator of each call (V,).
        offset_us: what to add to each rank's clock to compare it with others (ranks,).
        topology: the members of each group, stages and replicas.
        programs: what groups that send messages run.
        exposed: what the ranks' communication must add up to, if that is known.
        local: the streams of the calls; those of a second one do not count in it.
    """
    if not calls.has_clock:
        return calls, programs
    purpose = purposes(calls, topology)
    is_side = None if local is None else local.is_side
    messages = missing_messages(calls, operator, offset_us, programs, purpose, is_side)
    # A lost collective lies among all of its rank's calls, with the messages that are filled in.
    among, order = _filled_in(calls, messages)
    source = _sources(messages)
    together = missing_collectives(
        among, np.concatenate([operator, operator[source]])[order], offset_us, topology, purpose,
        local if local is None or not messages else among_others(local, source, order),
    )  # fmt: skip
    together = [replace(one, source=int(order[one.source])) for one in together]
    if messages and together:
        # And a lost message behind the lost collective that its replicas had ended before.
        among, order = _filled_in(calls, together)
        operators = np.concatenate([operator, operator[_sources(together)]])[order]
        if is_side is not None:
            is_side = np.concatenate([is_side, is_side[_sources(together)]])[order]
        messages = missing_messages(
            among, operators, offset_us, moved_to(programs, order, ()), purpose, is_side
        )
        messages = [replace(one, source=int(order[one.source])) for one in messages]
    found = [*messages, *together]
    if not found:
        return calls, programs
    if exposed is not None and local is not None:
        found = as_totals_say(found, exposed, local.is_side, np.isfinite(most_waited_us(calls, local)))
    whole, order = _filled_in(calls, found)
    return whole, moved_to(programs, order, found)


def _sources(found: Sequence[MissingCall]) -> IntArray:
    return np.array([one.source for one in found], np.int64)


def _filled_in(calls: Calls, found: Sequence[MissingCall]) -> tuple[Calls, IntArray]:
    """Return the calls with some more, and of each which it was: its place before, or behind those (V,)."""
    if not found:
        return calls, np.arange(len(calls))
    own = {
        name: np.array([getattr(one, name) for one in found])
        for name in ("rank", "group", "start_us", "end_us")
    }
    return with_more(calls, _sources(found), **own)


def moved_to(programs: Sequence[Program], order: IntArray, found: Sequence[MissingCall]) -> list[Program]:
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
