"""Run a program: an event queue over the streams of all devices. Nothing here knows of steps or schedules.

An operation starts when its stream is free, all it waits for is done, and its host has launched it. A
collective leaves when its last member has come and its slowest link is done. A message needs its sender, then
the link, then its receiver. Kernels run slower beside transfers, and transfers beside kernels.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.models.streams.job import Fault
from benchmarks.models.streams.links import Carried
from benchmarks.models.streams.ops import BLOCKS, COLLECTIVE, EXCHANGE, KERNELS, Call, Message, Op
from benchmarks.models.streams.program import Program

_START, _END = 0, 1
#: A message that has come already: one small HCCS task.
_COPY_US = 2.0


@dataclass(frozen=True)
class Repaired:
    """What is made as its peers in a run: devices, hosts' launching, links, and what varies by the work."""

    devices: frozenset[int] = frozenset()
    links: frozenset[tuple[int, int]] = frozenset()
    samples: bool = False
    experts: bool = False
    stages: bool = False
    pauses: frozenset[int] = frozenset()


class StuckError(RuntimeError):
    """Operations that wait for each other: a mistake in the program."""


def run(program: Program, faults: Sequence[Fault] = (), repaired: Repaired | None = None) -> float:
    """Run all operations, leave their times in them, and return the mean time of a step in µs."""
    return _Run(program, faults, repaired or Repaired()).all()


def _ends(message: Message) -> tuple[Op, Op]:
    assert message.sender is not None
    assert message.receiver is not None
    return message.sender, message.receiver


class _Run:
    def __init__(self, program: Program, faults: Sequence[Fault], repaired: Repaired) -> None:
        self.program, self.job = program, program.job
        self.faults, self.repaired = faults, repaired
        program.network.faults = faults
        program.network.repaired = repaired.links
        self.queue: list[tuple[float, int, int, Op]] = []
        self.number = 0
        self.computing = [False] * self.job.n_ranks
        self.transfers = [0] * self.job.n_ranks
        self.n_done = 0
        ordered = sorted(program.devices)
        self.typical_device = ordered[len(ordered) // 2]
        self.even_work = (
            sum(self.job.varying.stage_work) / len(self.job.varying.stage_work)
            if self.job.varying.stage_work
            else 1.0
        )

    def all(self) -> float:
        for ops in self.program.ops:
            for op in ops:
                op.n_missing = op.n_awaited
                op.start_us = op.end_us = -1.0
                op.earliest_us = 0.0
                op.n_open = 0
                if op.call is not None:
                    op.call.n_arrived = 0
        for ops in self.program.ops:
            self._ready(ops[0], 0.0)
        while self.queue:
            now, _, phase, op = heapq.heappop(self.queue)
            if phase == _START:
                self._start(op, now)
            else:
                self._end(op, now)
        total = sum(len(ops) for ops in self.program.ops)
        if self.n_done != total:
            raise StuckError(f"{total - self.n_done} of {total} operations never ended")
        return max(max(op.end_us for op in ops[-3:]) for ops in self.program.ops) / self.job.steps

    def _push(self, at: float, phase: int, op: Op) -> None:
        self.number += 1
        heapq.heappush(self.queue, (at, self.number, phase, op))

    def _ready(self, op: Op, now: float) -> None:
        self._push(max(now, op.earliest_us), _START, op)

    def _start(self, op: Op, now: float) -> None:
        op.start_us = now
        if op.kind == KERNELS:
            busy, idle = self._kernel_time(op)
            if self.transfers[op.rank]:
                busy *= 1.0 + self.job.kernel_contention
            op.busy_us = busy
            self.computing[op.rank] = True
            self._push(now + busy + idle, _END, op)
        elif op.kind == COLLECTIVE:
            assert op.call is not None
            op.call.n_arrived += 1
            if op.call.n_arrived == len(op.call.ranks):
                self._transfer(op.call, now)
        elif op.kind == EXCHANGE:
            self._exchange(op, now)
        else:
            self._launch(op, now)

    def _end(self, op: Op, now: float) -> None:
        op.end_us = now
        self.n_done += 1
        if op.kind == KERNELS:
            self.computing[op.rank] = False
        elif op.kind == COLLECTIVE:
            self.transfers[op.rank] -= 1
        for follower in op.followers:
            follower.n_missing -= 1
            if not follower.n_missing:
                self._ready(follower, now)

    # -- kernels and hosts ----------------------------------------------------------------------------
    def _kernel_time(self, op: Op) -> tuple[float, float]:
        """Return how long a block computes, and how long it is idle between its kernels."""
        is_repaired = op.rank in self.repaired.devices
        factor = self.typical_device if is_repaired else self.program.devices[op.rank]
        factor *= 1.0 if self.repaired.samples else op.sample
        factor *= 1.0 if self.repaired.experts else op.load
        factor *= self.even_work if self.repaired.stages and op.work != 1.0 else op.work
        idle = 1.0
        for fault in () if is_repaired else self.faults:
            if op.rank not in fault.ranks:
                continue
            slow = fault.factor_in(op.step, self.job.steps)
            if fault.cause == "dispatch":
                idle *= slow
            elif fault.cause == "compute" and fault.op:
                share = sum(part for name, part, _ in BLOCKS[op.name] if name == fault.op)
                factor *= 1.0 + share * (slow - 1.0)
            elif fault.cause == "compute":
                factor *= slow
        return op.base_us * factor, op.idle_us * idle

    def _launch(self, host: Op, now: float) -> None:
        """Let a host fetch its input and launch a step's operations, one after the other."""
        is_repaired = host.rank in self.repaired.devices
        slow, added = 1.0, 0.0
        for fault in () if is_repaired else self.faults:
            if host.rank in fault.ranks and fault.factor_in(host.step, self.job.steps) != 1.0:
                slow *= fault.factor_in(host.step, self.job.steps) if fault.cause == "dispatch" else 1.0
                added += fault.add_ms * 1000.0 if fault.cause == "input" else 0.0
        at = now + host.base_us + added
        # A pause falls at a third of the launches: some of it hides behind what was launched before.
        pause_at = len(host.followers) // 3 if host.pause_us and host.rank not in self.repaired.pauses else -1
        for number, op in enumerate(host.followers):
            at += op.launch_us * slow + (host.pause_us if number == pause_at else 0.0)
            op.earliest_us = at
        self._push(now, _END, host)

    # -- communication --------------------------------------------------------------------------------
    def _transfer(self, call: Call, now: float) -> None:
        """Let a collective leave: all have come, its slowest link decides."""
        slowest = max((one.time_us for one in self.carried(call)), default=0.0)
        beside = sum(self.computing[rank] for rank in call.ranks) / len(call.ranks)
        call.transfer_us = slowest * (1.0 + self.job.transfer_contention * beside) + self._stall_us(call)
        for op in call.ops:
            self.transfers[op.rank] += 1
            self._push(now + call.transfer_us + op.jitter_us, _END, op)

    def carried(self, call: Call) -> list[Carried]:
        """Return what every link of a collective carried."""
        network = self.program.network
        pairs = network.pairs(call.name, call.ranks)
        return [
            network.carried(a, b, share * call.size_mb, call.step, noise, call.luck)
            for (a, b, share), noise in zip(pairs, call.noise, strict=True)
        ]

    def _stall_us(self, call: Call) -> float:
        """Return what an event adds to the largest call of a group's step (its first one)."""
        return sum(
            fault.add_ms * 1000.0
            for fault in self.faults
            if fault.cause == "stall"
            and call.group in fault.groups
            and fault.steps is not None
            and call.step in fault.steps
            and call is self._first_of_step(call)
        )

    def _first_of_step(self, call: Call) -> Call:
        op = call.ops[0]
        return next(
            one.call
            for one in self.program.ops[op.rank]
            if one.call is not None and one.step == call.step and one.call.group == call.group
        )

    def _exchange(self, op: Op, now: float) -> None:
        """Start all messages of a call whose other end is there; it ends with the last of them."""
        op.n_open = len(op.sends) + len(op.receives)
        op.earliest_us = now
        for message in op.sends:
            self._send(message)
        for message in op.receives:
            self._receive(message)

    def _send(self, message: Message) -> None:
        sender, receiver = _ends(message)
        network = self.program.network
        message.transfer_us = network.carried(
            message.source, message.destination, message.size_mb, message.step, message.noise, message.luck
        ).time_us
        end = sender.start_us + message.transfer_us
        if receiver.start_us >= 0.0:
            self._close(sender, end)
            self._close(receiver, end)
        elif not self.job.rendezvous:
            self._close(sender, end)

    def _receive(self, message: Message) -> None:
        sender, receiver = _ends(message)
        if sender.start_us < 0.0:
            return
        if self.job.rendezvous:
            end = receiver.start_us + message.transfer_us
            self._close(sender, end)
        else:
            # What came before somebody asked for it is only copied.
            end = max(sender.start_us + message.transfer_us, receiver.start_us + _COPY_US)
        self._close(receiver, end)

    def _close(self, op: Op, end: float) -> None:
        """Count one message of a call as known; the call ends with the last."""
        op.n_open -= 1
        op.earliest_us = max(op.earliest_us, end)
        if not op.n_open:
            self._push(op.earliest_us, _END, op)


def costs(program: Program, faults: Sequence[Fault]) -> tuple[float, float, list[tuple[float, float]]]:
    """Return the mean step in µs without and with the faults, and what each costs alone and beside others.

    The run with all of them is the last: its times stay in the operations.
    """
    clean = run(program)
    if not faults:
        return clean, clean, []
    runs = []
    if len(faults) > 1:
        for number, fault in enumerate(faults):
            others = [one for other, one in enumerate(faults) if other != number]
            runs.append((run(program, [fault]), run(program, others)))
    whole = run(program, faults)
    if not runs:
        return clean, whole, [(whole - clean, whole - clean)]
    return clean, whole, [(alone - clean, whole - beside) for alone, beside in runs]
