"""The pipeline schedule: what each stage does in which order, and one global order that respects it.

1F1B and its interleaved form, as Megatron runs them: warm-up forwards, then one forward and one backward
in turn, then the remaining backwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cluster_simulate.job.spec import JobSpec

Verb = Literal["receive", "compute", "send"]
#: Sending stage, receiving stage, is_forward, microbatch, virtual stage that receives.
Message = tuple[int, int, bool, int, int]


@dataclass(frozen=True)
class Action:
    """One thing that all ranks of a stage do. `peer` is the other stage of a send or receive."""

    stage: int
    verb: Verb
    is_forward: bool
    microbatch: int
    chunk: int
    peer: int = -1
    is_last_backward: bool = False


def ordered_actions(spec: JobSpec) -> tuple[Action, ...]:
    """Return all actions of a step so that every receive comes after its send.

    Raises:
        AssertionError: the stages wait for each other in a circle; no valid spec does that.
    """
    queues = [_stage_actions(spec, stage) for stage in range(spec.pp)]
    done = [0] * spec.pp
    sent: set[Message] = set()
    ordered: list[Action] = []
    n_actions = sum(map(len, queues))
    while len(ordered) < n_actions:
        before = len(ordered)
        for stage, queue in enumerate(queues):
            while done[stage] < len(queue):
                action = queue[done[stage]]
                if action.verb == "receive" and message_of(spec, action) not in sent:
                    break
                if action.verb == "send":
                    sent.add(message_of(spec, action))
                ordered.append(action)
                done[stage] += 1
        if len(ordered) == before:
            raise AssertionError("the schedule waits for itself")
    return tuple(ordered)


def message_of(spec: JobSpec, action: Action) -> Message:
    """Return which message a send or receive is about."""
    virtual = action.chunk * spec.pp + action.stage
    if action.verb == "receive":
        return action.peer, action.stage, action.is_forward, action.microbatch, virtual
    arrives_at = virtual + (1 if action.is_forward else -1)
    return action.stage, action.peer, action.is_forward, action.microbatch, arrives_at


def _stage_actions(spec: JobSpec, stage: int) -> list[Action]:
    """Return the actions of one stage in its own order."""
    passes = _passes(spec, stage)
    last = max(index for index, (is_forward, _, _) in enumerate(passes) if not is_forward)
    last_virtual = spec.pp * spec.vpp - 1
    actions: list[Action] = []
    for index, (is_forward, microbatch, chunk) in enumerate(passes):
        virtual = chunk * spec.pp + stage
        before, after = (virtual - 1, virtual + 1) if is_forward else (virtual + 1, virtual - 1)
        if 0 <= before <= last_virtual and spec.pp > 1:
            actions.append(Action(stage, "receive", is_forward, microbatch, chunk, before % spec.pp))
        actions.append(
            Action(stage, "compute", is_forward, microbatch, chunk, is_last_backward=index == last)
        )
        if 0 <= after <= last_virtual and spec.pp > 1:
            actions.append(Action(stage, "send", is_forward, microbatch, chunk, after % spec.pp))
    return actions


def _passes(spec: JobSpec, stage: int) -> list[tuple[bool, int, int]]:
    """Return (is_forward, microbatch, chunk) in the order a stage runs them."""
    total = spec.microbatches * spec.vpp
    if spec.vpp == 1:
        n_warmup = min(total, spec.pp - stage - 1)
    else:
        n_warmup = min(total, (spec.pp - stage - 1) * 2 + (spec.vpp - 1) * spec.pp)
    forwards = [_place(spec, k) for k in range(total)]
    backwards = [(microbatch, spec.vpp - 1 - chunk) for microbatch, chunk in forwards]
    passes = [(True, *one) for one in forwards[:n_warmup]]
    for forward, backward in zip(forwards[n_warmup:], backwards, strict=False):
        passes += [(True, *forward), (False, *backward)]
    return passes + [(False, *one) for one in backwards[total - n_warmup :]]


def _place(spec: JobSpec, k: int) -> tuple[int, int]:
    """Return (microbatch, chunk) of the k-th forward of a stage."""
    if spec.vpp == 1:
        return k, 0
    turn, within = divmod(k, spec.pp * spec.vpp)
    return turn * spec.pp + within % spec.pp, within // spec.pp
