"""Which schedule the calls of a pipeline follow, and so which send ends in which receive.

Schedules are tried until one has as many calls at every stage as there are, and no message that arrives
before it was sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.thresholds.messages import CLOCK_TOLERANCE_US, GROUPS_TRIED, MAX_CONTRADICTED
from cluster_analysis.trace.alignment import connected
from cluster_analysis.trace.calls import Calls
from cluster_analysis.trace.messages.schedules import (
    BatchCall,
    Message,
    StageCalls,
    batched,
    candidates,
    single,
)

#: Number of sends, receives and batches of each stage.
Signature = tuple[tuple[int, int, int], ...]
#: What each call carries, by kind of call and stage.
_Contents = Mapping[str, tuple[tuple[BatchCall, ...], ...]]


@dataclass(frozen=True)
class Pipeline:
    """The calls of one group: by stage, in order; sends, receives and batches apart."""

    sends: tuple[IntArray, ...]
    receives: tuple[IntArray, ...]
    batches: tuple[IntArray, ...]

    @property
    def signature(self) -> Signature:
        """What pipelines that follow one schedule have in common."""
        return tuple(
            (len(a), len(b), len(c)) for a, b, c in zip(self.sends, self.receives, self.batches, strict=True)
        )


@dataclass(frozen=True)
class Plan:
    """A schedule for pipelines of one signature.

    `send_at` and `receive_at` (messages,) are the two ends of each message: positions among a pipeline's
    calls, those of `contents` one after the other, by kind and stage.
    """

    contents: _Contents
    send_at: IntArray
    receive_at: IntArray

    def pairs(self, pipelines: Sequence[Pipeline]) -> tuple[IntArray, IntArray]:
        """Return (sends, receives) of pipelines that have the plan's signature."""
        calls = np.stack(
            [
                np.concatenate([own for name in self.contents for own in getattr(one, name)])
                for one in pipelines
            ]
        )
        return calls[:, self.send_at].ravel(), calls[:, self.receive_at].ravel()


def plan_of(calls: Calls, pipelines: Sequence[Pipeline], offset_us: FloatArray) -> Plan | None:
    """Return the schedule that these pipelines (of one signature) follow; None when no known one fits.

    Args:
        calls: the step's calls.
        pipelines: at least one.
        offset_us: what to add to each rank's clock to compare it with others (ranks,).
    """
    best: Plan | None = None
    least = MAX_CONTRADICTED
    part = connected(calls)
    for contents in _schedules(pipelines[0]):
        if not _has_as_many(pipelines[0], contents):
            continue
        plan = _plan(contents)
        if not len(plan.send_at):
            continue
        contradicted = _contradicted(calls, *plan.pairs(pipelines[:GROUPS_TRIED]), offset_us, part)
        if contradicted < least:
            best, least = plan, contradicted
    return best


def pairs_by_number(
    calls: Calls, pipeline: Pipeline, plan: Plan, complete: Pipeline
) -> tuple[IntArray, IntArray]:
    """Return (sends, receives) of a pipeline with lost records: running numbers tell which calls are there.

    Args:
        calls: the step's calls.
        pipeline: the one with holes.
        plan: the schedule of the others.
        complete: one of them.
    """
    sent: dict[Message, int] = {}
    received: dict[Message, int] = {}
    for name, by_stage in plan.contents.items():
        for own, known, wanted in zip(
            getattr(pipeline, name), getattr(complete, name), by_stage, strict=False
        ):
            content = dict(zip(calls.number[known].tolist(), wanted, strict=True))
            for call in own.tolist():
                found = content.get(int(calls.number[call]))
                if found is not None and calls.number[call] >= 0:
                    sent.update(dict.fromkeys(found.sends, call))
                    received.update(dict.fromkeys(found.receives, call))
    return _joined(sent, received)


def _joined(sent: Mapping[Message, int], received: Mapping[Message, int]) -> tuple[IntArray, IntArray]:
    both = [message for message in sent if message in received]
    return (
        np.array([sent[message] for message in both], np.int64),
        np.array([received[message] for message in both], np.int64),
    )


def _plan(contents: _Contents) -> Plan:
    sent: dict[Message, int] = {}
    received: dict[Message, int] = {}
    position = 0
    for by_stage in contents.values():
        for stage in by_stage:
            for call in stage:
                sent.update(dict.fromkeys(call.sends, position))
                received.update(dict.fromkeys(call.receives, position))
                position += 1
    return Plan(contents, *_joined(sent, received))


def _has_as_many(pipeline: Pipeline, contents: _Contents) -> bool:
    return all(
        [len(own) for own in getattr(pipeline, name)] == [len(wanted) for wanted in by_stage]
        for name, by_stage in contents.items()
    )


def _schedules(pipeline: Pipeline) -> Iterator[_Contents]:
    """Schedules that may have as many calls as the pipeline: by kind of call, what each one carries."""
    n_stages = len(pipeline.sends)
    if any(len(one) for one in pipeline.sends):
        for schedule in candidates(n_stages, len(pipeline.sends[0])):
            yield {
                "sends": tuple(_only(stage.sends, True) for stage in schedule),
                "receives": tuple(_only(stage.receives, False) for stage in schedule),
            }
        return
    n_first = len(pipeline.batches[0])
    for microbatches in range(1, n_first + 1):
        for schedule in candidates(n_stages, microbatches):
            for merge in (_merge_any, _merge_peer, single):
                yield {"batches": tuple(merge(stage) for stage in schedule)}


def _merge_any(stage: StageCalls) -> tuple[BatchCall, ...]:
    return batched(stage, same_peer=False)


def _merge_peer(stage: StageCalls) -> tuple[BatchCall, ...]:
    return batched(stage, same_peer=True)


@cache
def _only(messages: tuple[Message, ...], is_send: bool) -> tuple[BatchCall, ...]:
    return tuple(BatchCall((m,), ()) if is_send else BatchCall((), (m,)) for m in messages)


def _contradicted(
    calls: Calls, send: IntArray, receive: IntArray, offset_us: FloatArray, part: IntArray
) -> float:
    """Share of messages that end before they begin, or whose receiver waited for something else."""
    if not calls.has_clock:
        return 0.0
    sent = calls.start_us[send] + offset_us[calls.rank[send]]
    ended = calls.end_us[receive] + offset_us[calls.rank[receive]]
    shortest = np.minimum(calls.elapse_us[send], calls.elapse_us[receive])
    transfer = float(np.median(shortest))
    ended = ended + _shift_between(part[calls.rank[send]], part[calls.rank[receive]], ended - sent, transfer)
    too_early = ended < sent - CLOCK_TOLERANCE_US
    waited = calls.elapse_us[receive] > 3.0 * transfer + CLOCK_TOLERANCE_US
    too_late = (
        waited
        & (ended > sent + transfer + 3.0 * CLOCK_TOLERANCE_US)
        & (calls.elapse_us[send] < 3.0 * transfer + CLOCK_TOLERANCE_US)
    )
    return float(np.mean(too_early | too_late))


def _shift_between(source: IntArray, target: IntArray, took_us: FloatArray, transfer_us: float) -> FloatArray:
    """What to add to each message's end (M,) where no collective connects the clocks of its two ends.

    `source` and `target` are the sets of connected ranks that the ends belong to. The quickest message either
    way is one that nobody was late for: the clocks lie between what the two directions allow.
    """
    shift = np.zeros(len(source))
    apart = source != target
    ends = zip(source[apart].tolist(), target[apart].tolist(), strict=True)
    for low, high in sorted({(min(pair), max(pair)) for pair in ends}):
        there, back = (source == low) & (target == high), (source == high) & (target == low)
        bounds = []
        if there.any():
            bounds.append(transfer_us - float(took_us[there].min()))
        if back.any():
            bounds.append(float(took_us[back].min()) - transfer_us)
        middle = sum(bounds) / len(bounds)
        shift[there], shift[back] = middle, -middle
    return shift
