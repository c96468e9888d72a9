"""What one rank does in one step, as a script: a generator of lines, one kind of script a kind of job.

The order in which the ranks of a pipeline take up their work is found by playing one step through. No formula
of a schedule is used: every rank takes, of what is ready, what its rule likes best. So the order can be
carried out by construction, also where two pipelines run against each other (as in Chimera, SC'21).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from benchmarks.models.paths.shape import Shape


class Work(NamedTuple):
    """Computing: which kind, how long on a typical chip, for which microbatch, and how its stage weighs."""

    kind: str
    typical_ms: float
    microbatch: int = 0
    weight: float = 1.0


class Meet(NamedTuple):
    """A collective of one of the rank's groups, in the main line or beside it."""

    group: str
    what: str
    size_mb: float
    is_beside: bool = False


class Hand(NamedTuple):
    """A call that gives and takes messages; each is (name, rank at the other end)."""

    gives: tuple[tuple[str, int], ...]
    takes: tuple[tuple[str, int], ...]
    is_batch: bool


class Join(NamedTuple):
    """Wait for all that runs beside."""


Line = Work | Meet | Hand | Join


def script(shape: Shape, rank: int) -> Iterator[Line]:
    """Return the lines of one step of a rank."""
    if shape.stages > 1:
        yield from _pipeline(shape, rank)
    elif shape.gradients == "sharded":
        yield from _sharded(shape)
    else:
        yield from _data_parallel(shape)
    yield Join()
    yield Work("update", shape.block_ms * 0.6)
    yield Meet("world", "allReduce", 1e-5)


def _data_parallel(shape: Shape) -> Iterator[Line]:
    """Gradients go in pieces: some beside the backward that goes on, the others after it."""
    n_pieces = shape.blocks if shape.gradients == "pieces" else 1
    for microbatch in range(shape.microbatches):
        for _ in range(shape.blocks):
            yield from _block(shape, "forward", microbatch)
        for block in range(shape.blocks):
            yield from _block(shape, "backward", microbatch)
            if microbatch == shape.microbatches - 1 and block < shape.beside * n_pieces and n_pieces > 1:
                yield Meet("data", "allReduce", shape.gradients_mb / n_pieces, is_beside=True)
    held = n_pieces - min(n_pieces, -int(-shape.beside * n_pieces // 1)) if n_pieces > 1 else 1
    yield Join()
    for _ in range(held):
        what = "allReduce" if shape.gradients == "pieces" else "reduceScatter"
        yield Meet("data", what, shape.gradients_mb / n_pieces)
    if shape.gradients == "scattered":
        yield Work("update", shape.block_ms * 0.6)
        yield Meet("data", "allGather", shape.gradients_mb)


def _sharded(shape: Shape) -> Iterator[Line]:
    """Weights are gathered before every block, the next ones beside it, and gradients scattered after it."""
    size = shape.gradients_mb / shape.blocks
    for kind in ("forward", "backward"):
        yield Meet("data", "allGather", size)
        for block in range(shape.blocks):
            if block + 1 < shape.blocks:
                yield Meet("data", "allGather", size, is_beside=True)
            yield from _block(shape, kind, 0)
            yield Join()
            if kind == "backward":
                yield Meet("data", "reduceScatter", size, is_beside=True)


def _block(shape: Shape, kind: str, microbatch: int, weight: float = 1.0) -> Iterator[Line]:
    typical = shape.block_ms * (1.0 if kind == "forward" else 2.1)
    if shape.experts > 1:
        yield Work(kind, typical * 0.5, microbatch, weight)
        yield Meet("experts", "alltoAll", shape.tensor_mb)
        yield Work("experts", typical * 0.5, microbatch, weight)
        yield Meet("experts", "alltoAll", shape.tensor_mb)
        return
    yield Work(kind, typical, microbatch, weight)
    if shape.tensor > 1:
        yield Meet("tensor", "allReduce", shape.tensor_mb)


def _pipeline(shape: Shape, rank: int) -> Iterator[Line]:
    """As the production trace: gather the weights, all microbatches, join the ends, scatter the gradients."""
    _, _, place = shape.seat(rank)
    yield Meet("data", "allGather", shape.gradients_mb / 2)
    tasks = orders(shape.stages, shape.microbatches, shape.way)[place]
    yield from _take_first(shape, rank, tasks[0])
    for number, task in enumerate(tasks):
        weight = shape.spread.last_stage if task.stage == shape.stages - 1 else 1.0
        for _ in range(shape.blocks):
            yield from _block(shape, "forward" if task.is_forward else "backward", task.microbatch, weight)
        following = tasks[number + 1] if number + 1 < len(tasks) else None
        yield from _hand_over(shape, rank, task, following)
    if shape.way == "bidirectional":
        yield Meet("twins", "allReduce", shape.gradients_mb / 2)
    elif place in (0, shape.stages - 1):
        yield Meet("ends", "allReduce", shape.gradients_mb / 4)
    yield Work("update", shape.block_ms * 0.6)
    yield Meet("data", "reduceScatter", shape.gradients_mb)


def _take_first(shape: Shape, rank: int, task: Task) -> Iterator[Line]:
    takes = _taken(shape, rank, task)
    if takes:
        yield Hand((), takes, shape.style == "batched")


def _hand_over(shape: Shape, rank: int, task: Task, following: Task | None) -> Iterator[Line]:
    gives = _given(shape, rank, task)
    takes = _taken(shape, rank, following) if following else ()
    turns = following is not None and following.is_forward != task.is_forward
    if gives and takes and (shape.style == "batched" or (shape.style == "mixed" and turns)):
        yield Hand(gives, takes, True)
        return
    if gives:
        yield Hand(gives, (), shape.style == "batched")
    if takes:
        yield Hand((), takes, shape.style == "batched")


def _given(shape: Shape, rank: int, task: Task) -> tuple[tuple[str, int], ...]:
    stage = task.stage + (1 if task.is_forward else -1)
    if not 0 <= stage < shape.stages:
        return ()
    return ((_name(task, stage), _rank_of(shape, rank, task._replace(stage=stage))),)


def _taken(shape: Shape, rank: int, task: Task) -> tuple[tuple[str, int], ...]:
    stage = task.stage - (1 if task.is_forward else -1)
    if not 0 <= stage < shape.stages:
        return ()
    return ((_name(task, task.stage), _rank_of(shape, rank, task._replace(stage=stage))),)


def _name(task: Task, to_stage: int) -> str:
    """Return the name of the message that a stage takes."""
    return f"{'f' if task.is_forward else 'b'}{task.microbatch}/{task.pipe}/{to_stage}"


def _rank_of(shape: Shape, rank: int, task: Task) -> int:
    tensor, replica, _ = shape.seat(rank)
    return shape.rank_at(tensor, replica, position(task, shape.stages))


class Task(NamedTuple):
    """One piece of work: forward or backward of one microbatch at one stage of pipeline 0 or 1."""

    is_forward: bool
    microbatch: int
    stage: int
    pipe: int


@lru_cache(maxsize=64)
def orders(n_stages: int, n_microbatches: int, way: str) -> tuple[tuple[Task, ...], ...]:
    """Return the tasks of every position of the pipeline, in order."""
    pipes = (0, 1) if way == "bidirectional" else (0,)
    play = _Play(n_stages, way)
    for pipe in pipes:
        for microbatch in range(n_microbatches):
            if microbatch % len(pipes) == pipe:
                play.offer(0.0, Task(True, microbatch, 0, pipe))
    return play.through()


def position(task: Task, n_stages: int) -> int:
    """Return where a task's stage lies: the second pipeline runs the other way."""
    return n_stages - 1 - task.stage if task.pipe else task.stage


class _Play:
    def __init__(self, n_stages: int, way: str) -> None:
        self.n, self.way = n_stages, way
        self.ready: list[list[tuple[float, Task]]] = [[] for _ in range(n_stages)]
        self.taken: list[list[Task]] = [[] for _ in range(n_stages)]
        self.free_at = [0.0] * n_stages
        self.under_way = [0] * n_stages

    def offer(self, at: float, task: Task) -> None:
        self.ready[position(task, self.n)].append((at, task))

    def through(self) -> tuple[tuple[Task, ...], ...]:
        moments = [0.0]
        while moments:
            now = heapq.heappop(moments)
            for place in range(self.n):
                task = self._choose(place, now)
                if task is None:
                    continue
                length = 1.0 if task.is_forward else 2.0
                self.free_at[place] = now + length
                self.taken[place].append(task)
                self.under_way[place] += 1 if task.is_forward else -1
                for follower in self._unlocks(task):
                    self.offer(now + length, follower)
                heapq.heappush(moments, now + length)
        return tuple(tuple(one) for one in self.taken)

    def _choose(self, place: int, now: float) -> Task | None:
        if self.free_at[place] > now:
            return None
        able = [(at, task) for at, task in self.ready[place] if at <= now and self._may(place, task)]
        if not able:
            return None
        prefers_forward = self.way == "gpipe"
        best = min(
            able, key=lambda one: (one[1].is_forward != prefers_forward, one[1].microbatch, one[1].pipe)
        )
        self.ready[place].remove(best)
        return best[1]

    def _may(self, place: int, task: Task) -> bool:
        """No rank holds more forwards than its share of the memory."""
        limit = self.n if self.way == "bidirectional" else self.n - place
        return self.way == "gpipe" or not task.is_forward or self.under_way[place] < limit

    def _unlocks(self, task: Task) -> list[Task]:
        if task.is_forward:
            if task.stage + 1 < self.n:
                return [task._replace(stage=task.stage + 1)]
            return [task._replace(is_forward=False)]
        return [task._replace(stage=task.stage - 1)] if task.stage else []
