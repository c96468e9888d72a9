"""Runs a program: a queue of events in which operations arrive, meet, move what they move, and end."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from statistics import fmean

from benchmarks.models.flows.ops import EXCHANGE, INPUT, KERNELS, Op
from benchmarks.models.flows.program import Program
from benchmarks.models.flows.sharing import Flow, Sharing
from benchmarks.models.flows.wiring import LATENCY_MS, Part

#: Flows that end within so many ms end together.
_TOGETHER_MS = 0.002
_ARRIVED, _DONE, _MOVED, _NEXT = range(4)
#: Parts that carry all that comes to them over other parts, so that they never hold up while healthy.
_AMPLE = frozenset({"port out", "port in", "host out", "host in", "hosts"})


@dataclass(frozen=True)
class Trouble:
    """One fault. `size` is a share more of what it lengthens; of pauses and side calls it is ms a time.

    `pauses` are the operations before which a rank's host stands still, and how long as a share of `size`.
    """

    what: str
    size: float = 0.0
    ranks: frozenset[int] = frozenset()
    parts: tuple[Part, ...] = ()
    steps: frozenset[int] | None = None
    pauses: tuple[tuple[int, float], ...] = ()

    def sized(self, size: float) -> Trouble:
        """Return the same fault in another size."""
        return replace(self, size=size)

    def is_in(self, step: int) -> bool:
        """Return whether it shows in a step."""
        return self.steps is None or step in self.steps


@dataclass(frozen=True)
class Mended:
    """What is made as its peers: devices with their hosts, links, the length of samples, and experts.

    Where nobody pauses, checkpoints are written all the same.
    """

    ranks: frozenset[int] = frozenset()
    links: frozenset[tuple[int, int]] = frozenset()
    are_samples_even: bool = False
    are_experts_even: bool = False
    pauses_nobody: bool = False


@dataclass
class Course:
    """When what happened, in ms, by operation."""

    start: list[float]
    end: list[float]
    busy: list[float]
    #: By operation, and by inverted number of a collective: source, target, MB, begin and end of transfers.
    moved: dict[int, list[tuple[int, int, float, float, float]]] = field(default_factory=dict)

    def step_ms(self, program: Program) -> float:
        """Return the mean step of the job."""
        return (max(self.end) - min(self.start)) / program.shape.steps


class Run:
    """One run of a program with what is wrong with it, and what is made right again."""

    def __init__(
        self, program: Program, troubles: Iterable[Trouble] = (), mended: Mended | None = None
    ) -> None:
        self.program, self.mended = program, mended or Mended()
        self.troubles = tuple(troubles)
        n = len(program.ops)
        self.course = Course([-1.0] * n, [-1.0] * n, [0.0] * n)
        self.missing = [op.n_awaited for op in program.ops]
        self.here = [0] * len(program.calls)
        self.phase = [0] * len(program.calls)
        self.open: dict[int, int] = {}
        self.heap: list[tuple[float, int, int, int, Flow | None, int]] = []
        self.serial = 0
        self.pauses = dict[int, float]()
        self.slow: dict[str, list[Trouble]] = {}
        for one in self.troubles:
            self.slow.setdefault(one.what, []).append(one)
            for op, share in one.pauses:
                if program.ops[op].rank not in self.mended.ranks:
                    self.pauses[op] = self.pauses.get(op, 0.0) + one.size * share
        self.numbers: dict[Part, int] = {}
        self.parts: list[Part] = []
        #: By both ends: the parts that can hold up a transfer, and by which factor its link is unlike others.
        self.ways: dict[tuple[int, int], tuple[tuple[int, ...], float]] = {}
        self.step = -1
        self.net = Sharing([])

    def course_of_all(self) -> Course:
        """Run everything."""
        for number, op in enumerate(self.program.ops):
            if not op.n_awaited:
                self._release(number, 0.0)
        while self.heap:
            now, _, event, number, flow, version = heapq.heappop(self.heap)
            if flow is not None:
                self._end_flows([(flow, version), *self._soon(now)], now)
            elif event == _ARRIVED:
                self._arrive(number, now)
            elif event == _DONE:
                self._finish(number, now)
            else:
                self._next_phase(number, now)
        assert min(self.course.end) >= 0, "operations wait for each other in a circle"
        return self.course

    def _push(self, at: float, event: int, number: int) -> None:
        self.serial += 1
        heapq.heappush(self.heap, (at, self.serial, event, number, None, 0))

    def _await(self, flows: Iterable[Flow], now: float) -> None:
        """Look when flows, whose rates are new, will be done."""
        for flow in flows:
            self.serial += 1
            heapq.heappush(
                self.heap, (now + flow.left / flow.rate, self.serial, _MOVED, 0, flow, flow.version)
            )

    # -- operations -------------------------------------------------------------------------------------
    def _release(self, number: int, now: float) -> None:
        """All that an operation waits for is done: it begins when its host has launched it."""
        op = self.program.ops[number]
        if op.kind == INPUT:
            self.course.start[number] = now
        self._push(now + self._idle(number, op), _ARRIVED, number)

    def _idle(self, number: int, op: Op) -> float:
        if op.rank in self.mended.ranks:
            return op.idle_ms
        idle = op.idle_ms * self.program.dispatch[op.rank]
        for one in self.slow.get("feeds" if op.kind == INPUT else "dispatches", ()):
            if op.rank in one.ranks and one.is_in(op.step):
                idle *= 1 + one.size
        if op.is_held_back:
            for one in self.slow.get("holds back", ()):
                if op.rank in one.ranks and one.is_in(op.step):
                    idle += one.size
        if self.mended.pauses_nobody and op.kind == KERNELS:
            return idle
        return idle + op.pause_ms + self.pauses.get(number, 0.0)

    def _arrive(self, number: int, now: float) -> None:
        op = self.program.ops[number]
        if op.kind == INPUT:
            if op.step > self.step:
                self._open_step(op.step, now)
            self._done_at(number, now)
            return
        self.course.start[number] = now
        if op.kind == KERNELS:
            busy = self.course.busy[number] = self._work(op)
            self._done_at(number, now + busy)
        elif op.kind == EXCHANGE:
            self._exchange(number, op, now)
        else:
            self.here[op.call] += 1
            call = self.program.calls[op.call]
            if self.here[op.call] == len(call.ops):
                self._push(now + call.latency_ms, _NEXT, op.call)

    def _done_at(self, number: int, end: float) -> None:
        self.course.end[number] = end
        self._push(end, _DONE, number)

    def _finish(self, number: int, now: float) -> None:
        for follower in self.program.ops[number].followers:
            self.missing[follower] -= 1
            if not self.missing[follower]:
                self._release(follower, now)

    def _work(self, op: Op) -> float:
        program, work = self.program, op.work_ms
        length = program.mean_length[op.step] if self.mended.are_samples_even else op.length
        work *= 1 + op.share_of_length * (length - 1)
        if op.is_of_experts:
            expert = program.shape.expert(op.rank)
            work *= fmean(program.expert) if self.mended.are_experts_even else program.expert[expert]
            for one in self.slow.get("is hot", ()):
                # There are no more tokens for that: the others get fewer.
                n = program.shape.experts
                work *= 1 + one.size if op.rank in one.ranks else max(0.1, 1 - one.size / (n - 1))
        if op.rank in self.mended.ranks:
            return work
        work *= program.device[op.rank]
        for one in self.slow.get("computes", ()):
            if op.rank in one.ranks and one.is_in(op.step):
                work *= 1 + one.size
        return work

    # -- transfers --------------------------------------------------------------------------------------
    def _next_phase(self, call_number: int, now: float) -> None:
        """Begin a collective's next phase, or end it; begin a message, whose number is inverted."""
        if call_number < 0:
            message = self.program.messages[~call_number]
            one = self._flow(message.source, message.target, message.size_mb, message.noise, call_number)
            self._await(self.net.begin([one], now), now)
            return
        call = self.program.calls[call_number]
        at = self.phase[call_number]
        if at == len(call.phases):
            for number in call.ops:
                self._done_at(number, now + self.program.ops[number].jitter_ms)
            return
        self.phase[call_number] += 1
        self.open[call_number] = len(call.phases[at])
        flows = [
            self._flow(a, b, size, noise, call_number)
            for (a, b, size), noise in zip(call.phases[at], call.noise[at], strict=True)
        ]
        self._await(self.net.begin(flows, now), now)

    def _exchange(self, number: int, op: Op, now: float) -> None:
        self.open[~number] = len(op.sends) + len(op.receives)
        for key in (*op.sends, *op.receives):
            message = self.program.messages[key]
            is_sender = message.sender == number
            other = message.receiver if is_sender else message.sender
            is_other_here = self.course.start[other] >= 0
            if is_sender if message.is_eager else is_other_here:
                latency = LATENCY_MS[self.program.wiring.transport(message.source, message.target)]
                self._push(now + latency, _NEXT, ~key)
            elif message.is_eager and self.course.end[other] >= 0:
                self._close(~number, now)

    def _flow(self, source: int, target: int, size: float, noise: float, owner: int) -> Flow:
        way = self.ways.get((source, target))
        if way is None:
            is_mended = (source, target) in self.mended.links
            factor = 1.0 if is_mended else self.program.link_factor(source, target)
            way = self.ways[source, target] = self._path(source, target), factor
        return Flow(way[0], size * noise * way[1], (owner, source, target, size))

    def _soon(self, now: float) -> Iterator[tuple[Flow, int]]:
        """Take what else is moved before it could matter."""
        while self.heap and self.heap[0][0] <= now + _TOGETHER_MS:
            flow, version = self.heap[0][4:]
            if flow is None:
                return
            heapq.heappop(self.heap)
            yield flow, version

    def _end_flows(self, ended: list[tuple[Flow, int]], now: float) -> None:
        flows = [flow for flow, version in ended if flow.version == version and flow.rate]
        self._await(self.net.end(flows, now), now)
        for flow in flows:
            self._moved(flow, now)

    def _moved(self, flow: Flow, now: float) -> None:
        """Note what was moved; the last transfer of a phase begins the next one."""
        owner, source, target, size = flow.owner
        row = (source, target, size, flow.began, now)
        if owner < 0:
            message = self.program.messages[~owner]
            for number in (message.sender, message.receiver):
                self.course.moved.setdefault(number, []).append(row)
                if self.course.start[number] >= 0:
                    self._close(~number, now)
            return
        self.course.moved.setdefault(~owner, []).append(row)
        self.open[owner] -= 1
        if not self.open[owner]:
            self._next_phase(owner, now)

    def _close(self, key: int, now: float) -> None:
        self.open[key] -= 1
        if not self.open[key]:
            self._done_at(~key, now + 0.003)

    # -- the network ------------------------------------------------------------------------------------
    def _path(self, source: int, target: int) -> tuple[int, ...]:
        """Return the parts that can hold up a transfer: the others need not be looked at."""
        wiring, troubled = self.program.wiring, {part for one in self.troubles for part in one.parts}
        is_far = wiring.transport(source, target) == "RDMA"
        found = []
        for part in wiring.path(source, target):
            is_ample = part[0] in _AMPLE or (part[0] == "link" and is_far)
            is_ample |= str(part[0]).startswith("rack") and self.program.shape.uplink_share >= 1
            if part in troubled or not is_ample:
                found.append(self._number(part))
        return tuple(found)

    def _number(self, part: Part) -> int:
        known = self.numbers.get(part)
        if known is None:
            known = self.numbers[part] = len(self.parts)
            self.parts.append(part)
            self.net.capacities.append(0.0)
            self.net.strangers.append(0)
            self.net.users.append({})
            self._set(known, max(0, self.step))
        return known

    def _set(self, number: int, step: int) -> None:
        """Set what a part carries in a step, and how many flows of others pass it."""
        part = self.parts[number]
        carries, strangers = self.program.wiring.capacity(part), 0
        for one in self.slow.get("carries", ()):
            if part in one.parts and one.is_in(step):
                carries /= 1 + one.size
        for one in self.slow.get("is shared", ()):
            if part in one.parts and one.is_in(step):
                strangers += round(one.size)
        self.net.capacities[number], self.net.strangers[number] = carries, strangers

    def _open_step(self, step: int, now: float) -> None:
        """The first rank begins a step: what is slow or shared in some steps changes."""
        self.step = step
        for number in range(len(self.parts)):
            self._set(number, step)
        self._await(self.net.refresh(range(len(self.parts)), now), now)
