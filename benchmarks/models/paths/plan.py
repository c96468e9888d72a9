"""The order in which the ranks of a pipeline take up their work, found by playing one step through.

No formula of a schedule is used: every rank takes, of what is ready, what its rule likes best. So the order
can be carried out by construction, also where two pipelines run against each other (as in Chimera, SC'21).
"""

from __future__ import annotations

import heapq
from functools import lru_cache
from typing import NamedTuple


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
