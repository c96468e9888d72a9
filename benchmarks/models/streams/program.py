"""Turn a job into operations: what every rank runs in every step, with all that varies drawn beforehand.

Draws depend on the seed and the job only, never on a fault: the same job can be run again without one.
"""

from __future__ import annotations

import random

from benchmarks.models.streams.job import Job
from benchmarks.models.streams.links import Network
from benchmarks.models.streams.ops import (
    COLLECTIVE,
    DATA,
    EXCHANGE,
    HOST,
    HOST_STREAM,
    KERNELS,
    MAIN,
    PIPE,
    Call,
    Message,
    Op,
)
from benchmarks.models.streams.schedules import Turn, turns


class Program:
    """All operations of a job. `devices` are the devices' own factors on kernels."""

    def __init__(self, job: Job, seed: int) -> None:
        self.job, self.seed = job, seed
        self.network = Network(job, seed)
        self.groups = job.groups()
        self.ops: list[list[Op]] = [[] for _ in range(job.n_ranks)]
        self._calls: dict[tuple[str, int], Call] = {}
        self._messages: dict[tuple[int, str, int, int, int], Message] = {}
        self._dice = random.Random(f"{seed}/program")
        self.devices = [self._device(rank) for rank in range(job.n_ranks)]
        self._group_of = {
            (name.partition("/")[0], rank): name for name, ranks in self.groups.items() for rank in ranks
        }
        self.pace = self._pace()
        for rank in range(job.n_ranks):
            _Rank(self, rank).build()

    def _device(self, rank: int) -> float:
        dice = random.Random(f"{self.seed}/device/{rank}")
        own = dice.gauss(1.0, self.job.varying.device_sigma)
        return own + (dice.expovariate(100.0) if dice.random() < self.job.varying.tail_share else 0.0)

    def _pace(self) -> list[float]:
        """Draw the pace of each step, which all ranks share (an AR(1) series)."""
        dice, pace, series = random.Random(f"{self.seed}/steps"), 0.0, []
        for _ in range(self.job.steps):
            pace = 0.5 * pace + dice.gauss(0.0, self.job.varying.step_sigma)
            series.append(1.0 + pace)
        return series

    def group(self, name: str, rank: int) -> str | None:
        """Return the group of one kind that a rank is in, None where it would be alone."""
        return self._group_of.get((name, rank))

    def call(self, group: str, number: int, name: str, size_mb: float, step: int) -> Call:
        """Return a collective: the `number`-th of its group, the same for all its members."""
        known = self._calls.get((group, number))
        if known is None:
            ranks = self.groups[group]
            n_links = len(self.network.pairs(name, ranks))
            own = self._call_noise()
            noise = tuple(max(0.5, own * self._dice.gauss(1.0, 0.003)) for _ in range(n_links))
            known = self._calls[group, number] = Call(
                name, group, ranks, size_mb, step, noise, self._luck(group, number)
            )
        return known

    def message(self, key: tuple[int, str, int, int, int], source: int, destination: int) -> Message:
        """Return the message of a key (step, direction, microbatch, virtual stage, replica)."""
        known = self._messages.get(key)
        if known is None:
            size = self.job.activation_mb
            known = Message(source, destination, size, key[0], self._call_noise(), self._luck(*key))
            self._messages[key] = known
        return known

    def _luck(self, *key: object) -> float:
        return random.Random(f"{self.seed}/luck/{key}").random()

    def _call_noise(self) -> float:
        varying = self.job.varying
        if self._dice.random() < varying.contended_share:
            return 1.0 / 0.6
        return max(0.7, self._dice.gauss(1.0, varying.call_sigma))


class _Rank:
    """Builds the operations of one rank."""

    def __init__(self, program: Program, rank: int) -> None:
        self.program, self.job, self.rank = program, program.job, rank
        self.where = self.job.place(rank)
        self.dice = random.Random(f"{program.seed}/rank/{rank}")
        self.expert = random.Random(f"{program.seed}/expert/{rank}").gauss(0.0, self.job.varying.expert_sigma)
        self.ops = program.ops[rank]
        self.last: dict[int, Op | None] = {}
        self.counts: dict[str, int] = {}
        self.step = 0
        self.host: Op | None = None
        self.sample = 1.0
        self.load = 1.0

    def build(self) -> None:
        for step in range(self.job.steps):
            self._begin(step)
            self._work()
            self._end()

    def _begin(self, step: int) -> None:
        """Begin a step: the host waits for the last one, fetches its input, and launches everything."""
        self.step = step
        varying = self.job.varying
        host = Op(self.rank, step, HOST, HOST_STREAM, "input", base_us=self._input_us())
        # The host goes on when all streams are done.
        host.after(*dict.fromkeys(self.last.values()))
        if self.dice.random() < varying.pause_share:
            host.pause_us = self.dice.uniform(*varying.pause_ms) * 1000.0
        if varying.pause_every and step % varying.pause_every == varying.pause_every - 1:
            host.pause_us += self.dice.uniform(0.8, 1.2) * varying.pause_ms[1] * 1000.0
        self.ops.append(host)
        self.host = host
        self.last = {}
        self.load = max(0.3, 1.0 + self.expert + self.dice.gauss(0.0, varying.expert_sigma / 3))

    def _input_us(self) -> float:
        return self.job.input_ms * 1000.0 * self.dice.gammavariate(16.0, 1.0 / 16.0)

    def _add(self, op: Op, *awaited: Op | None) -> Op:
        assert self.host is not None
        op.launch_us = self.job.launch_us * self.dice.gammavariate(25.0, 0.04)
        op.after(self.host, *dict.fromkeys((self.last.get(op.stream), *awaited)))
        self.last[op.stream] = op
        self.ops.append(op)
        return op

    def kernels(self, block: str, typical_us: float, *awaited: Op | None, work: float = 1.0) -> Op:
        """Add a block of kernels to the main stream; sums of kernels have tails, so Student's t with 5."""
        t = self.dice.gauss(0.0, 1.0) / (self.dice.gammavariate(2.5, 2.0) / 5.0) ** 0.5
        noise = max(0.8, 1.0 + self.job.varying.kernel_sigma * t * 0.77)
        base = typical_us * noise * self.program.pace[self.step]
        idle = typical_us * self.job.idle_share * self.dice.gammavariate(10.0, 0.1)
        op = Op(self.rank, self.step, KERNELS, MAIN, block, base_us=base, idle_us=idle, work=work)
        op.sample = 1.0 if block in ("optimizer", "experts") else self.sample
        op.load = self.load if block == "experts" else 1.0
        return self._add(op, *awaited)

    def collective(self, kind: str, name: str, size_mb: float, stream: int, *awaited: Op | None) -> Op | None:
        """Add a collective of the rank's group of that kind, or nothing where it is alone."""
        group = self.program.group(kind, self.rank)
        if group is None:
            return None
        number = self.counts[group] = self.counts.get(group, -1) + 1
        call = self.program.call(group, number, name, size_mb, self.step)
        jitter = self.dice.expovariate(1.0 / self.job.varying.exit_jitter_us)
        op = Op(self.rank, self.step, COLLECTIVE, stream, name, call=call, jitter_us=jitter)
        call.ops.append(op)
        return self._add(op, *awaited)

    def exchange(self, sends: list[Message], receives: list[Message], batched: bool, *awaited: Op) -> Op:
        """Add one call that sends and receives messages of the pipeline."""
        name = "batchSendRecv" if batched else "send" if sends else "receive"
        op = Op(self.rank, self.step, EXCHANGE, PIPE, name, sends=sends, receives=receives)
        for message in sends:
            message.sender = op
        for message in receives:
            message.receiver = op
        group = self.program.group("pp", self.rank)
        assert group is not None
        self.counts[group] = self.counts.get(group, -1) + 1
        return self._add(op, *awaited)

    def _work(self) -> None:
        plan = turns(self.job, self.where["pp"])
        layers = _Layers(self)
        if self.job.counts_tokens:
            self.collective("world", "allReduce", 8e-6, MAIN)
        layers.begin_step()
        received = self._receives(plan[0])
        arrived = self.exchange([], received, self.job.exchanges == "batched") if received else None
        for number, turn in enumerate(plan):
            self.sample = self._sample(turn.microbatch)
            is_last_use = self._is_last(plan, number)
            done = layers.run(turn, arrived, is_last_use)
            following = plan[number + 1] if number + 1 < len(plan) else None
            arrived = self._hand_over(turn, following, done)
        layers.finish()

    def _is_last(self, plan: list[Turn], number: int) -> bool:
        """Return whether this turn is the last that adds to the gradients of its chunk."""
        turn = plan[number]
        what = "W" if turn.what in ("b", "W") else "B"
        return turn.what == what and not any(
            one.what == what and one.chunk == turn.chunk for one in plan[number + 1 :]
        )

    def _sample(self, microbatch: int) -> float:
        sigma = self.job.varying.sample_sigma
        if not sigma:
            return 1.0
        dice = random.Random(f"{self.program.seed}/sample/{self.where['dp']}/{self.step}/{microbatch}")
        return dice.lognormvariate(-sigma * sigma / 2, sigma)

    def _neighbour(self, turn: Turn, is_out: bool) -> tuple[tuple[int, str, int, int, int], int] | None:
        """Return the key of the message that a turn needs or makes, and the rank at its other end."""
        job = self.job
        if turn.what == "W":
            return None
        virtual = turn.chunk * job.pp + self.where["pp"]
        forward = turn.what == "F"
        other = virtual + (1 if forward == is_out else -1)
        if not 0 <= other < job.pp * job.chunks:
            return None
        name = self.program.group("pp", self.rank)
        assert name is not None
        peer = self.program.groups[name][other % job.pp]
        boundary = min(virtual, other)
        replica = self.program.groups[name][0]
        return (self.step, "F" if forward else "B", turn.microbatch, boundary, replica), peer

    def _receives(self, turn: Turn | None) -> list[Message]:
        wanted = self._neighbour(turn, is_out=False) if turn else None
        return [self.program.message(wanted[0], wanted[1], self.rank)] if wanted else []

    def _hand_over(self, turn: Turn, following: Turn | None, done: Op) -> Op | None:
        """Send what a turn made and receive what the next one needs: in one call or in two."""
        made = self._neighbour(turn, is_out=True)
        sends = [self.program.message(made[0], self.rank, made[1])] if made else []
        receives = self._receives(following)
        style = self.job.exchanges
        steady = following is not None and turn.what != following.what
        if sends and receives and (style == "batched" or (style == "mixed" and steady)):
            return self.exchange(sends, receives, True, done)
        if sends:
            self.exchange(sends, [], style == "batched", done)
        return self.exchange([], receives, style == "batched", done) if receives else None

    def _end(self) -> None:
        if self.job.norm:
            norm = self.collective("world", "allReduce", 8e-6, DATA, *self.last.values())
            self.kernels("optimizer", self.job.layer_us * 0.5, norm)
        else:
            self.kernels("optimizer", self.job.layer_us * 0.5, *self.last.values())
        if self.job.data == "zero1":
            size = self.job.gradient_mb * self.job.layers * self.job.chunks
            self.collective("dp", "allGather", size, DATA, self.last[MAIN])


class _Layers:
    """Layers of one rank in one step: kernels, and the collectives inside and beside them."""

    def __init__(self, rank: _Rank) -> None:
        self.on, self.job = rank, rank.job
        self.n_buckets = 0
        self.held: list[tuple[str, float]] = []

    def begin_step(self) -> None:
        """Fetch the weights of the first layer where ranks share them."""
        # Each layer of each turn needs its own.
        self.n_gathers = 2 * self.job.microbatches * self.job.layers
        self.gathered = self._gather() if self.job.data == "zero3" else None

    def _gather(self) -> Op | None:
        """Fetch a layer's weights, no earlier than the last layer but one is done: memory is short."""
        self.n_gathers -= 1
        if self.n_gathers < 0:
            return None
        return self.on.collective("dp", "allGather", self.job.gradient_mb, DATA, self.on.last.get(MAIN))

    def run(self, turn: Turn, arrived: Op | None, is_last_use: bool) -> Op:
        """Add the kernels of one turn; return the last of them."""
        done: Op | None = arrived
        for layer in range(self.job.layers):
            done = self._layer(turn, done)
            if is_last_use:
                self._gradients(layer, done)
        assert done is not None
        return done

    def _layer(self, turn: Turn, awaited: Op | None) -> Op:
        on, job = self.on, self.job
        work = job.varying.stage_work[on.where["pp"]] if job.varying.stage_work else 1.0
        block = {"F": "forward", "B": "backward", "b": "backward", "W": "weights"}[turn.what]
        typical = job.layer_us * (2.0 if turn.what == "B" else 1.0)
        if self.job.data == "zero3":
            # The next layer's weights are fetched while this one computes.
            gathered, self.gathered = self.gathered, self._gather()
            awaited_all = (awaited, gathered)
        else:
            awaited_all = (awaited, None)
        if turn.what == "W":
            return on.kernels(block, typical, *awaited_all, work=work)
        if job.cp > 1:
            awaited_all = (on.collective("cp", "allGather", job.activation_mb, MAIN, *awaited_all), None)
        halves = 2 if job.tp > 1 or job.ep > 1 else 1
        done = on.kernels(block, typical / halves, *awaited_all, work=work)
        if job.tp > 1:
            done = on.collective("tp", "allReduce", job.activation_mb, MAIN, done) or done
        if job.ep > 1:
            on.collective("ep", "alltoAll", job.activation_mb, MAIN, done)
            done = on.kernels("experts", typical / halves, work=work)
            done = on.collective("ep", "alltoAll", job.activation_mb, MAIN, done) or done
        elif halves > 1:
            done = on.kernels(block, typical / halves, done, work=work)
        if job.tp > 1:
            done = on.collective("tp", "allReduce", job.activation_mb, MAIN, done) or done
        return done

    def _gradients(self, layer: int, done: Op) -> None:
        """Send gradients a bucket at a time: some beside the layers that follow, the others at the end."""
        job = self.job
        size_layers = 1 if job.data == "zero3" else job.layers_a_bucket
        if job.data == "at_end":
            self.held.append(("allReduce", job.gradient_mb))
        elif (layer + 1) % size_layers == 0 or layer == job.layers - 1:
            count = layer % size_layers + 1
            name = "allReduce" if job.data == "bucketed" else "reduceScatter"
            total = -(-job.layers // size_layers) * job.chunks
            if self.n_buckets < job.beside_share * total:
                self.on.collective("dp", name, job.gradient_mb * count, DATA, done)
            else:
                self.held.append((name, job.gradient_mb * count))
            self.n_buckets += 1

    def finish(self) -> None:
        """Send what was held back, after all backwards; one call where gradients go at the end."""
        last = self.on.last[MAIN]
        if self.job.data == "at_end" and self.held:
            self.held = [("allReduce", sum(size for _, size in self.held))]
        for name, size in self.held:
            self.on.collective("dp", name, size, MAIN if self.job.held_on_main else DATA, last)
