"""What one rank does in one step, as a script: a generator of lines, one kind of script a kind of job."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.models.paths.plan import Task, orders, position
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
