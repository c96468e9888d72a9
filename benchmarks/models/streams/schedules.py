"""In which order a stage does its work: the published schedules, as lists of turns."""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.models.streams.job import Job


class Turn(NamedTuple):
    """A piece of a stage's work: forward F, backward B, or its halves for inputs (b) and weights (W)."""

    what: str
    microbatch: int
    chunk: int = 0


def turns(job: Job, stage: int) -> list[Turn]:
    """Return the work of one stage in one step, in order."""
    if job.pp == 1 or job.schedule == "gpipe":
        forward = [Turn("F", m) for m in range(job.microbatches)]
        if job.pp == 1:
            return [one for turn in forward for one in (turn, Turn("B", turn.microbatch))]
        return forward + [Turn("B", m) for m in range(job.microbatches)]
    if job.schedule == "interleaved":
        return _interleaved(job, stage)
    if job.schedule == "zero_bubble":
        return _zero_bubble(job, stage)
    ahead = min(job.microbatches, job.pp - 1 - stage)
    return _alternating(
        [Turn("F", m) for m in range(job.microbatches)],
        [Turn("B", m) for m in range(job.microbatches)],
        ahead,
    )


def _alternating(forward: list[Turn], backward: list[Turn], ahead: int) -> list[Turn]:
    """One forward, one backward (PipeDream-flush), after `ahead` forwards."""
    found = forward[:ahead]
    for number, turn in enumerate(backward):
        found += forward[ahead + number : ahead + number + 1]
        found.append(turn)
    return found


def _interleaved(job: Job, stage: int) -> list[Turn]:
    """Interleaved 1F1B of Megatron-LM (SC'21): chunks take turns every `pp` microbatches."""
    if job.microbatches % job.pp:
        raise ValueError("interleaved schedules need a multiple of pp microbatches")
    count = job.microbatches * job.chunks
    forward, backward = [], []
    for k in range(count):
        chunk = k // job.pp % job.chunks
        microbatch = k // (job.pp * job.chunks) * job.pp + k % job.pp
        forward.append(Turn("F", microbatch, chunk))
        backward.append(Turn("B", microbatch, job.chunks - 1 - chunk))
    ahead = min(count, (job.pp - stage - 1) * 2 + (job.chunks - 1) * job.pp)
    return _alternating(forward, backward, ahead)


def _zero_bubble(job: Job, stage: int) -> list[Turn]:
    """Like ZB-H1 (ICLR'24): backward without the weights' part, which fills what would be idle at the end."""
    ahead = min(job.microbatches, job.pp - 1 - stage)
    found: list[Turn] = []
    weights = [Turn("W", m) for m in range(job.microbatches)]
    n_backward = 0
    for turn in _alternating(
        [Turn("F", m) for m in range(job.microbatches)],
        [Turn("b", m) for m in range(job.microbatches)],
        ahead,
    ):
        found.append(turn)
        n_backward += turn.what == "b"
        n_done = sum(one.what == "W" for one in found)
        if turn.what == "b" and n_backward - n_done > stage and n_backward > job.pp - 1 - stage:
            found.append(weights[n_done])
    return found + weights[sum(one.what == "W" for one in found) :]
