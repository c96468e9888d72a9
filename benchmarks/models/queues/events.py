"""Runs a job: an event queue in which items arrive, meet, and are done."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field, replace

from benchmarks.models.queues.job import Job
from benchmarks.models.queues.shape import KERNELS, RECEIVE, SEND, Item, Meeting

#: Kernels beside a gradient's transfer take so much longer, for both use the memory.
_BESIDE = 1.04
#: Share of a layer's time in which its stream stands between kernels.
_BETWEEN = 0.02
_STEP_TAIL_MS = 0.4
_ARRIVED, _DONE = range(2)


@dataclass(frozen=True)
class Trouble:
    """One fault. `size` is a share more of what it lengthens; of `feeds` and `pauses` it is ms."""

    what: str
    size: float = 0.0
    ranks: frozenset[int] = frozenset()
    wires: frozenset[tuple[int, int]] = frozenset()
    steps: frozenset[int] = frozenset()
    stage: int | None = None

    def sized(self, size: float) -> Trouble:
        """Return the same fault in another size."""
        return replace(self, size=size)


@dataclass(frozen=True)
class Mended:
    """What is made as its peers: devices with their hosts, links, pauses, samples, the share of stages."""

    ranks: frozenset[int] = frozenset()
    wires: frozenset[tuple[int, int]] = frozenset()
    pauses: frozenset[int] = frozenset()
    are_samples_even: bool = False
    are_stages_even: bool = False


@dataclass
class Course:
    """When what happened, in ms: of items, and of each rank's steps."""

    start: list[float]
    end: list[float]
    busy: list[float]
    begun: dict[tuple[int, int], float] = field(default_factory=dict)
    wires: dict[int, list[float]] = field(default_factory=dict)

    def step_ms(self, n_steps: int) -> float:
        """Return the mean step of the job."""
        return (max(self.end) - min(self.begun.values())) / n_steps


class Run:
    """One run of a job with what is wrong with it, and what is made right again."""

    def __init__(self, job: Job, troubles: tuple[Trouble, ...] = (), mended: Mended | None = None) -> None:
        self.job, self.troubles, self.mended = job, troubles, mended or Mended()
        self.missing = [one.n_awaited for one in job.items]
        n = len(job.items)
        self.first, self.launched = [0.0] * n, [0.0] * n
        self.course = Course([-1.0] * n, [-1.0] * n, [0.0] * n)
        self.here = [0] * len(job.meetings)
        self.open = {key: len(items) for key, items in job.own.items()}
        self.moving = [0] * job.shape.n_ranks
        self.queue: list[tuple[float, int, int]] = []
        loads = [layers + 0.0 for layers in job.shape.layers]
        loads[-1] += job.shape.head
        mean = sum(loads) / len(loads)
        self.share = [mean / one if self.mended.are_stages_even else 1.0 for one in loads]

    def course_of_all(self) -> Course:
        """Run everything."""
        for rank in range(self.job.shape.n_ranks):
            self._open_step(rank, 0, 0.0)
        while self.queue:
            now, event, number = heapq.heappop(self.queue)
            if event == _ARRIVED:
                self._arrive(number, now)
            else:
                self._finish(number, now)
        assert min(self.course.end) >= 0, "items wait for each other in a circle"
        return self.course

    def _open_step(self, rank: int, step: int, now: float) -> None:
        """The host fetches a batch, then launches item after item, far ahead of its device."""
        job = self.job
        self.course.begun[rank, step] = now
        is_mended = rank in self.mended.ranks
        host = now + (job.shape.input_ms if is_mended else job.inputs[rank, step])
        pauses = {} if is_mended or rank in self.mended.pauses else dict(job.pauses[rank, step])
        slowness = 1.0 if is_mended else job.launching[rank, step]
        busy = 0.0
        items = job.own[rank, step]
        for one in self.troubles:
            if rank not in one.ranks or is_mended:
                continue
            if one.what == "feeds":
                host += one.size * job.inputs[rank, step] / job.shape.input_ms
            elif one.what == "launches":
                busy += one.size
            elif one.what == "pauses" and step in one.steps and rank not in self.mended.pauses:
                place = items[len(items) * (1 + 7 * step % 10) // 60]
                pauses[place] = pauses.get(place, 0.0) + one.size
        for number in items:
            item = job.items[number]
            host += pauses.get(number, 0.0) + busy * item.held_up
            self.first[number] = host + 0.1 * item.launch_ms * slowness
            host += item.launch_ms * slowness
            self.launched[number] = host
            self._release(number, now)

    def _release(self, number: int, now: float) -> None:
        self.missing[number] -= 1
        if not self.missing[number]:
            heapq.heappush(self.queue, (max(now, self.first[number]), _ARRIVED, number))

    def _arrive(self, number: int, now: float) -> None:
        item = self.job.items[number]
        self.course.start[number] = now
        if item.kind == KERNELS:
            busy = self._work(item)
            self.course.busy[number] = busy
            self._done_at(number, max(now + busy * (1 + _BETWEEN), self.launched[number] + busy * 0.05))
            return
        meeting = self.job.meetings[item.meeting]
        self.here[item.meeting] += 1
        if item.kind in (SEND, RECEIVE):
            self._exchange(item, meeting, now)
        elif self.here[item.meeting] == len(meeting.items):
            lasting = self._transfer(item.meeting, item.step)
            for other in meeting.items:
                self.moving[self.job.items[other].rank] += item.stream == "data"
                self._done_at(other, now + lasting)

    def _exchange(self, item: Item, meeting: Meeting, now: float) -> None:
        sender, receiver = meeting.items
        both = self.here[item.meeting] == 2
        if self.job.shape.do_senders_wait:
            if both:
                end = now + self._transfer(item.meeting, item.step)
                self._done_at(sender, end)
                self._done_at(receiver, end)
        elif item.kind == SEND:
            end = now + self._transfer(item.meeting, item.step)
            self._done_at(sender, end)
            if both:
                self._done_at(receiver, end)
        elif both:
            self._done_at(receiver, max(now + 0.005, self.course.end[sender]))

    def _done_at(self, number: int, end: float) -> None:
        self.course.end[number] = end
        heapq.heappush(self.queue, (end, _DONE, number))

    def _finish(self, number: int, now: float) -> None:
        item = self.job.items[number]
        self.moving[item.rank] -= item.stream == "data"
        for follower in item.followers:
            self._release(follower, now)
        key = (item.rank, item.step)
        self.open[key] -= 1
        if not self.open[key] and item.step + 1 < self.job.shape.steps:
            self._open_step(item.rank, item.step + 1, now + _STEP_TAIL_MS)

    # -- how long ---------------------------------------------------------------------------------------
    def _work(self, item: Item) -> float:
        job, shape = self.job, self.job.shape
        work = item.work_ms
        if item.stage is not None:
            work *= self.share[item.stage]
            if not self.mended.are_samples_even:
                work *= 1 + shape.attention * (item.length - 1)
        if item.rank not in self.mended.ranks:
            work *= job.device[item.rank]
            for one in self.troubles:
                if item.rank in one.ranks:
                    work *= 1 + _growth(one, item.step, shape.steps)
        return work * (_BESIDE if self.moving[item.rank] else 1.0)

    def _transfer(self, number: int, step: int) -> float:
        """Return how long a meeting's slowest link takes, and keep the times of all."""
        meeting, job = self.job.meetings[number], self.job
        times = []
        for wire in meeting.wires:
            ends = (wire.source, wire.target)
            factor = 1.0 if ends in self.mended.wires else job.links[ends]
            for one in self.troubles:
                if ends in one.wires and ends not in self.mended.wires:
                    factor *= 1 + one.size
            times.append(job.duration_ms(wire, factor))
        if meeting.stage is not None:
            times = [one * self.share[meeting.stage] for one in times]
        self.course.wires[number] = times
        return max(times)


def _growth(trouble: Trouble, step: int, n_steps: int) -> float:
    """Return by which share a fault lengthens kernels in a step."""
    if trouble.what == "computes":
        return trouble.size
    if trouble.what == "throttles":
        return trouble.size if step in trouble.steps else 0.0
    if trouble.what == "ages":
        return trouble.size * step / (n_steps - 1)
    return 0.0
