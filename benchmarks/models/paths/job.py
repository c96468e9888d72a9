"""A job of this model: its groups, its graph, its durations."""

from __future__ import annotations

from benchmarks.models.paths.graph import Paths
from benchmarks.models.paths.lengths import Durations
from benchmarks.models.paths.scripts import Meet, script
from benchmarks.models.paths.shape import Shape

Groups = dict[str, dict[int, tuple[int, ...]]]


class Job:
    """Everything of one job that no fault changes. `begun[rank][step]` is the point where a step begins."""

    def __init__(self, shape: Shape, seed: int) -> None:
        self.shape, self.seed = shape, seed
        self.groups = groups_of(shape)
        self.paths = Paths(self.groups)
        self.begun: list[list[int]] = [[] for _ in range(shape.n_ranks)]
        for step in range(shape.steps):
            for rank in range(shape.n_ranks):
                self.paths.begin(rank, step)
                self.begun[rank].append(self.paths.begun(rank))
                for line in script(shape, rank):
                    alone = isinstance(line, Meet) and len(self.groups[line.group].get(rank, ())) < 2
                    if not alone:
                        self.paths.add(rank, step, line)
        self.durations = Durations(shape, seed, self.paths)


def groups_of(shape: Shape) -> Groups:
    """Return the members of every rank's group of each kind."""
    found: Groups = {name: {} for name in ("tensor", "data", "pipe", "experts", "twins", "ends", "world")}
    for rank in range(shape.n_ranks):
        tensor, replica, stage = shape.seat(rank)
        last = shape.stages - 1
        found["world"][rank] = tuple(range(shape.n_ranks))
        found["tensor"][rank] = tuple(shape.rank_at(t, replica, stage) for t in range(shape.tensor))
        found["data"][rank] = tuple(shape.rank_at(tensor, d, stage) for d in range(shape.data))
        found["pipe"][rank] = tuple(shape.rank_at(tensor, replica, s) for s in range(shape.stages))
        first = replica - replica % shape.experts
        found["experts"][rank] = tuple(
            shape.rank_at(tensor, d, stage) for d in range(first, min(shape.data, first + shape.experts))
        )
        pair = sorted({stage, last - stage})
        found["twins"][rank] = tuple(shape.rank_at(tensor, replica, s) for s in pair)
        found["ends"][rank] = tuple(sorted({shape.rank_at(tensor, replica, s) for s in (0, last)}))
    return found
