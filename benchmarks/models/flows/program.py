"""All operations of a job, with all that varies drawn beforehand: the same whatever is wrong with the job.

A rank has a main stream, one for messages to each side, one for context rings and one for gradients.
Gradients go in buckets beside the last backward; the main stream waits for them before it works out their
norm.
"""

from __future__ import annotations

import random

from benchmarks.models.flows.ops import (
    COLLECTIVE,
    EXCHANGE,
    FUSED,
    INPUT,
    KERNELS,
    Call,
    Message,
    Op,
    phases_of,
)
from benchmarks.models.flows.shape import Shape, Turn
from benchmarks.models.flows.wiring import LATENCY_MS, Wiring


class Program:
    """The operations of a job."""

    def __init__(self, shape: Shape, seed: int) -> None:
        self.shape, self.seed = shape, seed
        self.wiring = Wiring(shape)
        self.groups = shape.groups()
        self.ops: list[Op] = []
        self.calls: list[Call] = []
        self.messages: list[Message] = []
        self.by_key: dict[object, int] = {}
        #: Operations that compute, by rank and step.
        self.kernels: dict[tuple[int, int], list[int]] = {}
        self.shared = random.Random(f"flows/{seed}/shared")
        dice = random.Random(f"flows/{seed}/parts")
        hosts = [
            (max(0.9, dice.gauss(1.0, shape.host_sigma)), max(0.8, dice.gauss(1.0, shape.dispatch_sigma)))
            for _ in range(shape.n_hosts)
        ]
        #: How each device computes, how late its host is, and when its clock stands how, as all are unlike.
        self.device = [
            hosts[self.wiring.host(rank)][0] * max(0.9, dice.gauss(1.0, shape.device_sigma))
            for rank in range(shape.n_ranks)
        ]
        self.dispatch = [hosts[self.wiring.host(rank)][1] for rank in range(shape.n_ranks)]
        self.skews = [
            (dice.gauss(0.0, shape.skew_ms), dice.gauss(0.0, 5e-6) if shape.skew_ms else 0.0)
            for _ in range(shape.n_hosts)
        ]
        self.link: dict[tuple[int, int], float] = {}
        self.expert = [max(0.5, dice.gauss(1.0, shape.expert_sigma)) for _ in range(max(1, shape.experts))]
        self.pace = [max(0.9, dice.gauss(1.0, 0.005)) for _ in range(shape.steps)]
        #: Mean length of all samples of a step: what each would have if the work were spread evenly.
        self.mean_length = [
            sum(self.length(data, step, micro) for data in range(shape.data) for micro in range(shape.micros))
            / (shape.data * shape.micros)
            for step in range(shape.steps)
        ]
        self._phases: dict[tuple[str, str, float], object] = {}
        self.group_of = {
            (name.partition("/")[0], rank): name for name, ranks in self.groups.items() for rank in ranks
        }
        for rank in range(shape.n_ranks):
            Rank(self, rank).build()

    def length(self, data: int, step: int, micro: int) -> float:
        """Return the length of a sample, as a share of what is usual."""
        sigma = self.shape.length_sigma
        dice = random.Random(f"flows/{self.seed}/sample/{data}/{step}/{micro}")
        return dice.lognormvariate(-sigma * sigma / 2, sigma) if sigma else 1.0

    def link_factor(self, source: int, target: int) -> float:
        """Return by which factor a link is unlike the others, always."""
        known = self.link.get((source, target))
        if known is None:
            dice = random.Random(f"flows/{self.seed}/link/{source}/{target}")
            known = self.link[source, target] = max(0.9, dice.gauss(1.0, self.shape.link_sigma))
        return known

    def noise(self) -> float:
        """Draw by which factor one transfer is unlike others."""
        if self.shared.random() < self.shape.slow_singles:
            return 1.6
        return max(0.8, self.shared.gauss(1.0, self.shape.call_sigma))

    def call(self, key: object, name: str, group: str, size_mb: float) -> int:
        """Return the number of a collective, which its first member makes."""
        known = self.by_key.get(key)
        if known is None:
            made = self._phases.get((name, group, size_mb))
            if made is None:
                made = phases_of(name, self.groups[group], size_mb, self.wiring) if size_mb > 0.01 else ()
                self._phases[name, group, size_mb] = made
            phases = made
            own = self.noise()
            noise = tuple(
                tuple(own * (1.6 if self.shared.random() < self.shape.slow_singles / 4 else 1.0) for _ in one)
                for one in phases  # type: ignore[attr-defined]
            )
            hosts = {self.wiring.host(rank) for rank in self.groups[group]}
            latency = LATENCY_MS["RDMA" if len(hosts) > 1 else "HCCS"]
            known = self.by_key[key] = len(self.calls)
            self.calls.append(Call(name, group, phases, noise, latency))  # type: ignore[arg-type]
        return known

    def message(self, key: object, source: int, target: int, size_mb: float, is_eager: bool) -> int:
        """Return the number of a message, which the first of its ends makes."""
        known = self.by_key.get(key)
        if known is None:
            known = self.by_key[key] = len(self.messages)
            self.messages.append(Message(source, target, size_mb, is_eager, self.noise()))
        return known


class Rank:
    """Builds the operations of one rank."""

    def __init__(self, program: Program, rank: int) -> None:
        self.program, self.shape, self.rank = program, program.shape, rank
        self.dice = random.Random(f"flows/{program.seed}/rank/{rank}")
        self.place = self.shape.place(rank)
        self.last: dict[str, int] = {}
        self.counts: dict[str, int] = {}
        self.step = 0
        self.input = -1

    def build(self) -> None:
        """Add all steps."""
        for step in range(self.shape.steps):
            self._begin(step)
            self._turns()
            self._end()

    def add(self, op: Op, *awaited: int) -> int:
        """Add an operation behind the last one of its stream, and behind others."""
        ops, number = self.program.ops, len(self.program.ops)
        before = [self.last.get(op.stream, self.input), *awaited]
        for other in dict.fromkeys(one for one in before if one >= 0):
            ops[other].followers.append(number)
            op.n_awaited += 1
        ops.append(op)
        if op.kind == KERNELS:
            self.program.kernels.setdefault((op.rank, op.step), []).append(number)
        self.last[op.stream] = number
        return number

    def _begin(self, step: int) -> None:
        shape = self.shape
        self.step = step
        ends = tuple(self.last.values())
        self.last, self.input = {}, -1
        op = Op(self.rank, step, INPUT, "main", "input", idle_ms=shape.input_ms * self._gamma(20))
        every = shape.checkpoint_every
        if every and step % every == every - 1:
            is_writer = self.place[2] == 0
            op.pause_ms += shape.checkpoint_ms * self.dice.uniform(0.9, 1.1) * (1.0 if is_writer else 0.3)
        self.input = self.add(op, *ends)
        self.last = {}

    def _gamma(self, k: float) -> float:
        return self.dice.gammavariate(k, 1 / k)

    def kernels(
        self, what: str, work_ms: float, *awaited: int, length: float = 1.0, share: float = 0.0
    ) -> int:
        """Add kernels to the main stream."""
        noise = max(0.9, self.dice.gauss(1.0, self.shape.kernel_sigma)) * self.program.pace[self.step]
        op = Op(self.rank, self.step, KERNELS, "main", what, work_ms=work_ms * noise)
        op.idle_ms = self.shape.idle_ms * self._gamma(10)
        op.length, op.share_of_length = length, share
        op.is_of_experts = what.startswith("experts")
        if self.dice.random() < self.shape.hiccups:
            op.pause_ms = self.dice.uniform(0.5, 3.0)
        return self.add(op, *awaited)

    def collective(self, kind: str, name: str, size_mb: float, stream: str, *awaited: int,
                   what: int = COLLECTIVE, shown: str = "") -> int:  # fmt: skip
        """Add a collective of a rank's group of a kind, and return it; what it awaits where it is alone."""
        group = self.program.group_of.get((kind, self.rank))
        if group is None:
            return max(awaited, default=-1)
        number = self.counts[group] = self.counts.get(group, -1) + 1
        call = self.program.call((group, number), name, group, size_mb)
        op = Op(self.rank, self.step, what, stream, shown or name, group=group, call=call)
        op.idle_ms = self.shape.idle_ms * 0.3 * self._gamma(10)
        op.jitter_ms = self.dice.expovariate(200.0)
        done = self.add(op, *awaited)
        self.program.calls[call].ops.append(done)
        return done

    def exchange(self, name: str, stream: str, group: str, sends: tuple[int, ...], receives: tuple[int, ...],
                 *awaited: int) -> int:  # fmt: skip
        """Add a call that sends and receives messages."""
        op = Op(self.rank, self.step, EXCHANGE, stream, name, group=group, sends=sends, receives=receives)
        op.idle_ms = self.shape.idle_ms * 0.3 * self._gamma(10)
        done = self.add(op, *awaited)
        for one in sends:
            self.program.messages[one].sender = done
        for one in receives:
            self.program.messages[one].receiver = done
        return done

    def _turns(self) -> None:
        shape = self.shape
        turns = shape.turns(self.place[3])
        last_use = {(one.chunk): n for n, one in enumerate(turns) if not one.is_forward}
        for number, turn in enumerate(turns):
            arrived = self._receive(turn)
            is_last = last_use[turn.chunk] == number
            done = self._layers(turn, arrived, is_last, number == len(turns) - 1)
            self._send(turn, done)

    def _neighbour(self, turn: Turn, is_out: bool) -> tuple[tuple[object, ...], int] | None:
        """Return the key of the message that a turn takes or gives, and the rank at its other end."""
        shape = self.shape
        virtual = turn.chunk * shape.stages + self.place[3]
        other = virtual + (1 if turn.is_forward == is_out else -1)
        if not 0 <= other < shape.stages * shape.chunks or shape.stages == 1:
            return None
        t, c, d, _ = self.place
        peer = shape.rank(t, c, d, other % shape.stages)
        return ("pp", t, c, d, self.step, turn.is_forward, turn.micro, min(virtual, other)), peer

    def _receive(self, turn: Turn) -> int:
        wanted = self._neighbour(turn, is_out=False)
        if wanted is None:
            return -1
        key, peer = wanted
        message = self.program.message(key, peer, self.rank, self.shape.message_mb, is_eager=True)
        group = self.program.group_of["pp", self.rank]
        return self.exchange("receive", "main", group, (), (message,))

    def _send(self, turn: Turn, done: int) -> None:
        made = self._neighbour(turn, is_out=True)
        if made is not None:
            key, peer = made
            message = self.program.message(key, self.rank, peer, self.shape.message_mb, is_eager=True)
            stream = "ahead" if turn.is_forward else "back"
            self.exchange("send", stream, self.program.group_of["pp", self.rank], (message,), (), done)

    def _layers(self, turn: Turn, arrived: int, is_last: bool, is_end: bool) -> int:
        shape = self.shape
        length = self.program.length(self.place[2], self.step, turn.micro)
        work = shape.work_ms * (1.0 if turn.is_forward else 2.0)
        way = "forward" if turn.is_forward else "backward"
        done = arrived
        per_bucket = max(1, shape.layers // shape.buckets)
        for layer in range(shape.layers):
            done = self._attention(way, work * shape.attention, length, done)
            done = self.collective("tp", "allReduce", shape.tensor_mb, "main", done)
            done = self._rest(way, work * (1 - shape.attention), length, done)
            done = self.collective("tp", "allReduce", shape.tensor_mb, "main", done)
            if (
                is_last
                and not turn.is_forward
                and ((layer + 1) % per_bucket == 0 or layer == shape.layers - 1)
            ):
                n = layer % per_bucket + 1
                done_side = self.collective("dp", "reduceScatter", shape.gradients_mb * n, "data", done)
                self.program.ops[done_side].is_held_back = is_end and layer == shape.layers - 1
        return done

    def _attention(self, way: str, work_ms: float, length: float, arrived: int) -> int:
        """Attention goes with the sample's length; in a ring each round's keys move beside the one before."""
        shape, n = self.shape, self.shape.context
        if n == 1:
            return self.kernels(f"attention {way}", work_ms, arrived, length=length, share=1.0)
        group = self.program.group_of["cp", self.rank]
        ranks = self.program.groups[group]
        at = ranks.index(self.rank)
        ahead, behind = ranks[(at + 1) % n], ranks[at - 1]
        number = self.counts["ring"] = self.counts.get("ring", -1) + 1
        done, moved = arrived, -1
        before = self.last.get("main", self.input)
        for round_ in range(n):
            awaited = moved
            if round_ < n - 1:
                gives, takes = (
                    self.program.message(
                        (group, number, round_, one), one, other, shape.ring_mb, is_eager=False
                    )
                    for one, other in ((self.rank, ahead), (behind, self.rank))
                )
                moved = self.exchange("batchSendRecv", "ring", group, (gives,), (takes,), before)
            done = self.kernels(f"attention {way}", work_ms / n, awaited, length=length, share=1.0)
        return done

    def _rest(self, way: str, work_ms: float, length: float, done: int) -> int:
        """The other half of a layer: dense, or experts to which tokens are sent and come back."""
        shape = self.shape
        if shape.experts == 1:
            return self.kernels(f"dense {way}", work_ms, done, length=length, share=0.5)
        what, names = (FUSED, ("dispatch", "combine")) if shape.is_fused else (COLLECTIVE, ("", ""))
        done = self.kernels(f"dense {way}", work_ms * 0.3, done, length=length, share=0.5)
        done = self.collective("ep", "alltoAll", shape.experts_mb, "main", done, what=what, shown=names[0])
        done = self.kernels(f"experts {way}", work_ms * 0.7, done)
        return self.collective("ep", "alltoAll", shape.experts_mb, "main", done, what=what, shown=names[1])

    def _end(self) -> None:
        """Wait for all gradients, work out their norm, agree on it, update, and gather the weights."""
        shape = self.shape
        size = shape.gradients_mb * shape.layers * shape.chunks
        done = self.kernels("norm", shape.work_ms * 0.1, *self.last.values())
        done = self.collective("world", "allReduce", 8e-6, "main", done)
        done = self.kernels("update", shape.work_ms * 0.4, done)
        self.collective("dp", "allGather", size / 2, "data" if shape.is_gather_beside else "main", done)
