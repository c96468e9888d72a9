"""One step of all ranks: operators matched, local time between them, links with global ranks.

Everything is derived from elapsed times and from gaps on a rank's own clock. The profiler's wait,
synchronisation and idle fields are zero on part of real files, and are not looked at. Clocks of two hosts
differ by milliseconds: calls are paired across them by their order, and by offsets that shared calls give.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from cluster_analysis.numeric.arrays import FloatArray, IntArray, numbers
from cluster_analysis.numeric.sorting import begins
from cluster_analysis.tables.model import Topology
from cluster_analysis.tables.schema import COLLECTIVES, MATCHED, RANK_TIMES
from cluster_analysis.thresholds.calls import TOGETHER_US
from cluster_analysis.trace.absent_members import without_absent
from cluster_analysis.trace.alignment import clock_offsets
from cluster_analysis.trace.calls import COLUMNS, Calls, calls_of, on_device_us
from cluster_analysis.trace.evidence import Queue, StepEvidence, StepOperators
from cluster_analysis.trace.links import sent_by_ranks, usable_links
from cluster_analysis.trace.matching import match_calls
from cluster_analysis.trace.missing.imputation import with_missing_calls
from cluster_analysis.trace.pairing.ends import Ends, Program, ends_of, last_to_arrive, programs_of
from cluster_analysis.trace.pairing.hints import Stated
from cluster_analysis.trace.streams.free import is_one_queue, likely_streams, outside_us
from cluster_analysis.trace.streams.points import points_alone
from cluster_analysis.trace.streams.streams import Streams
from cluster_analysis.trace.streams.waits import most_waited_us, waited_first_us, waited_us, with_issues
from cluster_run.facts import fact
from cluster_run.ids import Rank, Step

#: The part of COLLECTIVES that a step's reduction reads.
CALLS = pa.schema([COLLECTIVES.field(name) for name in ("step", "op_name", *COLUMNS)])


def reduce_step(
    step: Step, steps: pa.Table, collectives: pa.Table, links: pa.Table, topology: Topology
) -> StepEvidence:
    """Reduce one step.

    Args:
        steps: STEPS rows; rows of other steps are passed over.
        collectives: CALLS rows, likewise; other columns are not looked at.
        links: LINKS rows, likewise; `src_rank` and `dst_rank` global, null where unknown.
        topology: groups with their global members.
    """
    own_steps, all_links = _of_step(steps, step), _of_step(links, step)
    own_links = usable_links(all_links, topology)
    own_collectives = _of_step(collectives, step)
    calls = calls_of(own_collectives, starts_agree=topology.starts_agree)
    if not len(calls):
        ranks = np.sort(own_steps["rank"].to_numpy())
        is_known = len(ranks) and (numbers(own_steps["communication_us"]) == 0.0).all()
        alone = points_alone(ranks, _step_time(own_steps, ranks)) if is_known else None
        empty = MATCHED.empty_table(), RANK_TIMES.empty_table()
        return StepEvidence(step, own_steps, *empty, own_links, alone)
    operator, place = match_calls(calls)
    offset_us = clock_offsets(calls, operator)
    names = own_collectives["op_name"]
    programs = programs_of(calls, offset_us, topology, Stated(names, all_links))
    seen = _matched(calls, (operator, place), programs, own_steps, own_links, topology)
    whole = seen
    on_device = _by_rank(own_steps, calls.ranks, on_device_us(own_steps))
    began_us = _last_end_us(calls) - np.stack((on_device, _step_time(own_steps, calls.ranks)))
    filled, moved = with_missing_calls(calls, operator, offset_us, topology, programs, seen.local, began_us)
    if filled is not calls:
        whole = _matched(filled, match_calls(filled), moved, own_steps, own_links, topology)
    operators = _operators(whole, own_steps, offset_us) if calls.has_clock else None
    notes = [] if calls.has_clock else [fact("no_start_times")]
    if whole.ends.n_unpaired:
        notes.append(fact("unpaired_messages"))
    return StepEvidence(
        step, own_steps, _matched_table(step, seen, topology, names), _rank_times(step, seen), own_links,
        operators, tuple(notes), sent_by_ranks(own_collectives, own_links),
    )  # fmt: skip


class _Matched(Struct, frozen=True, dict=True):
    """Everything known about the calls of a step, by call (V,) or by operator (O,).

    `members` (V,) are the calls of each operator side by side, by rank, from `begin` (O,) on. `waited_us`
    (V,) is the part of the gap before a call in which its main stream waited for another one. `moved_us` (O,)
    is the part of a transfer that moved data; the rest is a wait for absent ranks.
    """

    calls: Calls
    operator: IntArray
    place: IntArray
    members: IntArray
    begin: IntArray
    transfer_us: FloatArray
    moved_us: FloatArray
    wait_us: FloatArray
    ends: Ends
    local: Streams
    waited_us: FloatArray
    stage: IntArray
    unrecorded_us: FloatArray

    @property
    def first(self) -> IntArray:
        """The call of each operator's first rank (O,)."""
        return self.members[self.begin]

    @cached_property
    def size_bytes(self) -> FloatArray:
        """The size of each operator (O,): the largest of its calls'; NaN where none is known."""
        return np.asarray(np.fmax.reduceat(self.calls.size_bytes[self.members], self.begin))


def _of_step(table: pa.Table, step: Step) -> pa.Table:
    if not table.num_rows:
        return table
    inside = table["step"].to_numpy() == step
    return table if inside.all() else table.take(pa.array(np.flatnonzero(inside)))


def _matched(
    calls: Calls, matches: tuple[IntArray, IntArray], programs: Sequence[Program], steps: pa.Table,
    links: pa.Table, topology: Topology,
) -> _Matched:  # fmt: skip
    operator, place = matches
    ends = ends_of(programs, calls, topology)
    stage = np.array([topology.stages.get(Rank(int(rank)), 0) for rank in calls.ranks])
    data = frozenset(name for name, group in topology.groups.items() if group.role == "dp")
    members = np.argsort(operator, kind="stable")
    begin = np.flatnonzero(begins(operator[members]))
    shortest = np.minimum.reduceat(calls.elapse_us[members], begin)
    uncovered = _totals_us(steps, calls, "communication_not_overlapped_us")
    local = likely_streams(calls, stage, data, shortest[operator], steps, uncovered)
    transfer, moved = without_absent(
        calls, (members, begin), _transfer(calls, operator, shortest, ends), topology, links
    )
    wait = calls.elapse_us - moved[operator]
    most, first = most_waited_us(calls, local), waited_first_us(calls, local)
    unrecorded = _unrecorded_us(calls, local, steps)
    missing = unrecorded - first
    if local.fetches:
        missing = np.full_like(missing, np.nan)  # after the last sum all time is waiting
    waited = waited_us(calls, most, missing)
    return _Matched(
        calls, operator, place, members, begin, transfer, moved, wait, ends, local, waited, stage, unrecorded
    )


def _transfer(calls: Calls, operator: IntArray, shortest_us: FloatArray, ends: Ends) -> FloatArray:
    """Transfer times (O,): the shortest elapse of an operator's members, or of a message's two ends."""
    transfer = shortest_us.copy()
    for other in (ends.sender, ends.receiver):
        paired = np.flatnonzero(other >= 0)
        message = operator[paired]  # each an operator of its own
        transfer[message] = np.minimum(transfer[message], calls.elapse_us[other[paired]])
    return transfer


def _matched_table(step: Step, seen: _Matched, topology: Topology, names: pa.ChunkedArray) -> pa.Table:
    calls, first = seen.calls, seen.first
    n = len(first)
    longest = np.maximum.reduceat(seen.wait_us[seen.members], seen.begin)
    n_ranks = np.diff(np.r_[seen.begin, len(seen.members)])
    is_message = calls.is_point_to_point[first]
    last = last_to_arrive(calls, (seen.members, seen.begin), seen.ends)
    groups = [topology.groups.get(name) for name in calls.groups]
    expected = np.array([len(group.ranks) if group else 0 for group in groups])
    group_of, kind_of = calls.group[first], calls.kind[first]
    # Groups share roles. Each stands once: Parquet files of a dictionary with doubles differ at every call.
    roles, role_of = np.unique([group.role if group else "unknown" for group in groups], return_inverse=True)
    return pa.table(
        {
            "step": pa.array(np.full(n, step), pa.int64()),
            "group": pa.DictionaryArray.from_arrays(pa.array(group_of), pa.array(calls.groups, pa.string())),
            "role": pa.DictionaryArray.from_arrays(
                pa.array(role_of.astype(np.int32)[group_of]), pa.array(roles.tolist(), pa.string())
            ),
            "op_type": pa.DictionaryArray.from_arrays(pa.array(kind_of), pa.array(calls.types, pa.string())),
            "op_name": names.take(pa.array(calls.rows[first])),
            "ordinal": pa.array(seen.place[first].astype(np.int32)),
            "n_ranks": pa.array(n_ranks.astype(np.int32)),
            "n_expected": pa.array(np.maximum(expected[group_of], n_ranks).astype(np.int32)),
            "size_bytes": pa.array(seen.size_bytes, from_pandas=True),
            "transfer_us": pa.array(seen.moved_us),
            "max_wait_us": pa.array(np.maximum(longest, 0.0)),
            "total_wait_us": pa.array(np.bincount(seen.operator, seen.wait_us, n)),
            "rank": pa.array(calls.ranks[calls.rank[first]], mask=~is_message),
            "last_rank": pa.array(calls.ranks[np.maximum(last, 0)], mask=last < 0),
        },
        schema=MATCHED,
    )


def _rank_times(step: Step, seen: _Matched) -> pa.Table:
    n = len(seen.calls.ranks)
    rank = seen.calls.rank.astype(np.intp)
    gap = np.where(seen.local.is_side, 0.0, np.maximum(seen.local.gap_us - seen.waited_us, 0.0))
    return pa.table(
        {
            "rank": pa.array(seen.calls.ranks),
            "step": pa.array(np.full(n, step), pa.int64()),
            "wait_us": pa.array(np.bincount(rank, seen.wait_us, n)),
            "transfer_us": pa.array(np.bincount(rank, seen.moved_us[seen.operator], n)),
            "gap_us": pa.array(np.bincount(rank, gap, n), pa.float64(), from_pandas=True),
        },
        schema=RANK_TIMES,
    )


def _operators(seen: _Matched, steps: pa.Table, offset_us: FloatArray) -> StepOperators:
    """The replay's input. The time before the first call is what the rank's step has left over.

    Members leave an operator one after the other. It is over when the first one leaves; what the others take
    longer is a local time of theirs, before what counts from there.
    """
    calls, local, first = seen.calls, seen.local, seen.first
    late, transfer = _left_late_us(seen, offset_us)
    total, last_end = _step_time(steps, calls.ranks), _last_end_us(calls)
    head = np.maximum(np.where(np.isfinite(total), total - last_end, 0.0), 0.0)
    gap = local.gap_us.copy()
    leads = (local.after < 0) & ~local.is_queued
    gap[leads] = head[calls.rank[leads]] + calls.start_us[leads]
    room = np.maximum(waited_first_us(calls, local) - seen.unrecorded_us, 0.0)
    gap = np.maximum(gap - seen.waited_us, 0.0)
    after, gap = with_issues(calls, local, gap, seen.stage, room)
    late_before = np.where(after >= 0, late[after], 0.0)
    operators = StepOperators(
        ranks=calls.ranks,
        step_us=np.where(np.isfinite(total), total, last_end),
        left_late_us=np.bincount(
            calls.rank, np.where(local.is_side, 0.0, late_before), len(calls.ranks)
        ).astype(np.float64),
        instance_rank=calls.rank, instance_operator=seen.operator,
        instance_by_operator=seen.members.astype(np.int32),
        instance_after=after, instance_join=local.join, instance_gap_us=gap + late_before,
        instance_elapse_us=calls.elapse_us, instance_sender=seen.ends.sender,
        instance_receiver=seen.ends.receiver, instance_is_send=calls.is_send,
        instance_is_receive=calls.is_receive, instance_is_p2p=calls.is_point_to_point,
        instance_is_side=local.is_side, instance_waits_last=local.waits_last,
        operator_group=calls.group[first], operator_type=calls.kind[first],
        operator_place=seen.place[first], operator_bytes=seen.size_bytes, operator_transfer_us=transfer,
        groups=calls.groups, types=calls.types,
    )  # fmt: skip
    if not steps.num_rows or not is_one_queue(calls, local):
        return operators
    covered, computing, idle = (
        _by_rank(steps, calls.ranks, numbers(steps[name]))
        for name in ("overlapped_us", "computing_us", "free_us")
    )
    if local.is_side.any():  # during sums on the second stream the gaps of the main one are computing
        waited = np.bincount(calls.rank, seen.waited_us, len(calls.ranks))
        covered = np.maximum(covered - np.maximum(outside_us(calls, local.is_side) - waited, 0.0), 0.0)
    queue = Queue(calls.start_us, calls.rows >= 0, late_before, seen.stage, covered, computing, idle)
    return replace(operators, queue=queue)


def _left_late_us(seen: _Matched, offset_us: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How much later than its first member each call leaves its operator (V,), and transfers until then (O,).

    A member that leaves far later than the first did not leave together with it: that is not counted. A call
    of a second stream queues behind the operator as a whole.
    """
    calls, members, begin = seen.calls, seen.members, seen.begin
    end = calls.end_us + offset_us[calls.rank]
    late = end - np.minimum.reduceat(end[members], begin)[seen.operator]
    late = np.where(seen.local.is_side, 0.0, np.minimum(np.minimum(late, TOGETHER_US), calls.elapse_us))
    shortest, until_first = (
        np.minimum.reduceat(lasts[members], begin) for lasts in (calls.elapse_us, calls.elapse_us - late)
    )
    return late, np.maximum(seen.transfer_us - (shortest - until_first), 0.0)


def _last_end_us(calls: Calls) -> FloatArray:
    """When each rank's last call ended, counted from its first one (ranks,)."""
    ends: FloatArray = np.maximum.reduceat(calls.end_us, np.flatnonzero(begins(calls.rank)))
    return np.maximum(ends, 0.0)


def _unrecorded_us(calls: Calls, local: Streams, steps: pa.Table) -> FloatArray:
    """Communication of the totals that computing does not cover, beyond records of main streams (ranks,).

    With one stream, the records do not tell what computing covers: there it is all communication.
    """
    all_count = not local.is_side.any() or local.fetches
    elapse = np.where(local.is_side, 0.0, calls.elapse_us)
    total = _totals_us(steps, calls, "communication_not_overlapped_us")
    if all_count:
        total = total + np.nan_to_num(_totals_us(steps, calls, "overlapped_us"))
    recorded = np.bincount(calls.rank, elapse, len(calls.ranks)).astype(np.float64)
    if all_count and local.is_side.any():
        recorded += outside_us(calls, local.is_side)
    return np.asarray(total - recorded)


def _step_time(steps: pa.Table, ranks: IntArray) -> FloatArray:
    """Measured time of a rank's step: from its begin to the last device activity; NaN where unknown."""
    if not steps.num_rows:
        return np.full(len(ranks), np.nan)
    value = on_device_us(steps) + np.nan_to_num(np.maximum(numbers(steps["preparing_us"]), 0.0))
    return _by_rank(steps, ranks, value)


def _totals_us(steps: pa.Table, calls: Calls, name: str) -> FloatArray:
    """One of the totals of each rank (ranks,), NaN where it is not known."""
    return _by_rank(steps, calls.ranks, numbers(steps[name]) if steps.num_rows else np.empty(0))


def _by_rank(steps: pa.Table, ranks: IntArray, values: FloatArray) -> FloatArray:
    """Values of the rows of a step's totals for each of `ranks`; NaN for a rank without one."""
    found = np.full(len(ranks), np.nan)
    rank = steps["rank"].to_numpy()
    where = np.searchsorted(ranks, rank)
    known = (where < len(ranks)) & (ranks[np.minimum(where, len(ranks) - 1)] == rank)
    found[where[known]] = values[known]
    return found
