"""What a job does: items that each host launches, in order, into the streams of its device.

All draws are made here, once, whatever is wrong with the job. So the job with a fault and the job without it
differ by the fault alone.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from benchmarks.models.queues.shape import (
    KERNELS,
    LATENCY_MS,
    MEETING,
    RATES,
    RECEIVE,
    SEND,
    Item,
    Meeting,
    Shape,
    Wire,
    groups_of,
    order_of,
)


class Job:
    """The items of all ranks, and everything about the job that chance decides."""

    def __init__(self, shape: Shape, seed: int) -> None:
        self.shape, self.seed = shape, seed
        self.items: list[Item] = []
        self.meetings: list[Meeting] = []
        self.groups = groups_of(shape)
        n, dice = shape.n_ranks, random.Random(f"queues/{seed}/nature")
        self.device = [
            1 + dice.gauss(0, shape.device_sigma) + dice.expovariate(1) * shape.device_tail for _ in range(n)
        ]
        self.links: dict[tuple[int, int], float] = {}
        self.skews = [
            (dice.gauss(0, shape.skew_ms), dice.gauss(0, 5e-6)) for _ in range(1 + n // shape.per_host)
        ]
        self.own: dict[tuple[int, int], list[int]] = {
            (r, s): [] for r in range(n) for s in range(shape.steps)
        }
        self._busy_dice = random.Random(f"queues/{seed}/busy")
        self._link_dice = random.Random(f"queues/{seed}/links")
        #: The last item of each stream of a rank, and what the next one of a stream waits for beside that.
        self._open: dict[tuple[str, int], int] = {}
        self._before: dict[tuple[str, int], dict[str, int]] = {}
        for step in range(shape.steps):
            self._step(step, random.Random(f"queues/{seed}/{step}"))
        self.inputs, self.pauses, self.launching = self._hosts()

    def transport(self, source: int, target: int) -> str:
        """Return what carries a link's bytes."""
        return "HCCS" if self.shape.host(source) == self.shape.host(target) else "RDMA"

    def _hosts(
        self,
    ) -> tuple[
        dict[tuple[int, int], float], dict[tuple[int, int], dict[int, float]], dict[tuple[int, int], float]
    ]:
        """Return how long input takes, which items come after a pause, and how slowly hosts launch."""
        shape, dice = self.shape, random.Random(f"queues/{self.seed}/hosts")
        inputs, pauses, launching = {}, {}, {}
        period = {rank: (dice.randint(3, 7), dice.randint(0, 6)) for rank in range(shape.n_ranks)}
        for (rank, step), items in self.own.items():
            first = 1.6 if step == 0 else 1.0
            inputs[rank, step] = shape.input_ms * first * dice.lognormvariate(0, 0.25)
            launching[rank, step] = dice.lognormvariate(0, 0.05)
            stops: dict[int, float] = {}
            if dice.random() < shape.late_launches:
                launching[rank, step] *= dice.uniform(1.5, 3.0)
            if dice.random() < shape.hiccups:
                stops[dice.choice(items)] = 5 * 10 ** dice.random()
            every, phase = period[rank]
            stop, length = dice.choice(items), dice.lognormvariate(0, 0.3)
            if shape.collection_ms and (step + phase) % every == 0:
                stops[stop] = shape.collection_ms * length
            if shape.checkpoint_every and step % shape.checkpoint_every == shape.checkpoint_every - 1:
                stops[items[0]] = 60 * dice.lognormvariate(0, 0.15) + (40 if rank == 0 else 0)
            pauses[rank, step] = stops
        return inputs, pauses, launching

    # -- one step ---------------------------------------------------------------------------------------
    def _step(self, step: int, dice: random.Random) -> None:
        shape = self.shape
        lengths = {
            (data, micro): dice.lognormvariate(0, shape.length_sigma) if shape.length_sigma else 1.0
            for data in range(shape.data)
            for micro in range(shape.microbatches)
        }
        self._messages: dict[tuple[str, int, int], int] = {}
        for stage in range(shape.stages):
            for data in range(shape.data):
                for what, micro in order_of(shape, stage):
                    self._pass(step, stage, data, what, micro, lengths[data, micro], dice)
        for stage in range(shape.stages):
            for data in range(shape.data):
                self._update(step, stage, data, dice)
        self._messages.clear()

    def _pass(
        self, step: int, stage: int, data: int, what: str, micro: int, length: float, dice: random.Random
    ) -> None:
        """One forward or backward of a stage of a replica: receive, layers, send."""
        shape = self.shape
        ranks = [shape.rank(tensor, data, stage) for tensor in range(shape.tensor)]
        ahead = what == "forward"
        source, target = (stage - 1, stage + 1) if ahead else (stage + 1, stage - 1)
        for tensor, rank in enumerate(ranks):
            if 0 <= source < shape.stages:
                sender = shape.rank(tensor, data, source)
                self._message(step, what, micro, sender, rank, RECEIVE, f"pp/{tensor},{data}", dice)
        for layer in range(shape.layers[stage]):
            share = 1 + shape.head if stage == shape.stages - 1 and layer == 0 else 1.0
            for rank in ranks:
                work = shape.work_ms * share * (1 if ahead else 2) * _tail(dice, shape.kernel_sigma)
                self._kernels(rank, step, what, work, length, stage)
            if shape.tensor > 1:
                self._collective(
                    step, "allReduce", f"tp/{data},{stage}", shape.tensor_mb, "tensor", dice, stage
                )
            if shape.are_gradients_beside and not ahead and micro == shape.microbatches - 1:
                for tensor in range(shape.tensor):
                    self._gradients(step, stage, data, tensor, layer, dice)
        for tensor, rank in enumerate(ranks):
            if 0 <= target < shape.stages:
                receiver = shape.rank(tensor, data, target)
                self._message(step, what, micro, rank, receiver, SEND, f"pp/{tensor},{data}", dice)

    def _gradients(
        self, step: int, stage: int, data: int, tensor: int, layer: int, dice: random.Random
    ) -> None:
        """A bucket of gradients: every replica launches its part when its layer is done."""
        size = self.shape.gradients_mb / self.shape.layers[stage]
        name = f"dp/{tensor},{stage}"
        self._join(
            step, "reduceScatter", name, size, "data", dice, self.shape.rank(tensor, data, stage), layer
        )

    def _update(self, step: int, stage: int, data: int, dice: random.Random) -> None:
        shape = self.shape
        for tensor in range(shape.tensor):
            rank, name = shape.rank(tensor, data, stage), f"dp/{tensor},{stage}"
            if not shape.are_gradients_beside:
                self._join(step, "reduceScatter", name, shape.gradients_mb, "data", dice, rank, 0)
            self._wait(rank, "data", "computing")
            self._join(step, "allReduce", "world", 0.001, "computing", dice, rank, 0)
            self._kernels(
                rank, step, "optimizer", shape.work_ms / 3 * _tail(dice, shape.kernel_sigma), 1.0, None
            )
            self._join(step, "allGather", name, shape.gradients_mb / 2, "computing", dice, rank, 0)

    # -- items ------------------------------------------------------------------------------------------
    def _kernels(
        self, rank: int, step: int, what: str, work: float, length: float, stage: int | None
    ) -> None:
        launch = self.shape.work_ms * self.shape.launch_share * (2 if what == "backward" else 1)
        held_up = launch * self._busy_dice.expovariate(1.0)
        self._add(Item(rank, step, KERNELS, what, "computing", launch, work, held_up, length, stage))

    def _collective(
        self,
        step: int,
        what: str,
        name: str,
        size: float,
        stream: str,
        dice: random.Random,
        stage: int | None,
    ) -> None:
        """A collective that computing waits for."""
        meeting = self._meeting(what, name, size, dice, stage)
        for rank in self.groups[name]:
            self._wait(rank, "computing", stream)
            item = self._add(Item(rank, step, MEETING, what, stream, 0.03, meeting=meeting))
            self.meetings[meeting].items.append(item)
            self._wait(rank, stream, "computing")

    def _join(
        self,
        step: int,
        what: str,
        name: str,
        size: float,
        stream: str,
        dice: random.Random,
        rank: int,
        number: int,
    ) -> None:
        """One member's part of a collective, whose other members launch theirs elsewhere."""
        key = (f"{what} {name} {number}", step, 0)
        if key not in self._messages:
            self._messages[key] = self._meeting(what, name, size, dice, None)
        meeting = self._messages[key]
        if stream != "computing":
            self._wait(rank, "computing", stream)
        item = self._add(Item(rank, step, MEETING, what, stream, 0.03, meeting=meeting))
        self.meetings[meeting].items.append(item)

    def _message(
        self,
        step: int,
        what: str,
        micro: int,
        source: int,
        target: int,
        kind: int,
        group: str,
        dice: random.Random,
    ) -> None:
        """One side of a message. Computing waits for what it receives, and goes on beside what it sends."""
        key = (what, micro, source * 1_000_000 + target)
        if key not in self._messages:
            self._messages[key] = len(self.meetings)
            wire = self._wire(source, target, self.shape.message_mb, dice)
            self.meetings.append(Meeting("send", group, [wire], [-1, -1]))
        meeting = self._messages[key]
        rank, stream = (source, "sends") if kind == SEND else (target, "receives")
        self._wait(rank, "computing", stream)
        if self.shape.tensor > 1:
            self._wait(rank, "tensor", stream)
        name = "send" if kind == SEND else "receive"
        item = self._add(Item(rank, step, kind, name, stream, 0.03, meeting=meeting))
        self.meetings[meeting].items[kind == RECEIVE] = item
        if kind == RECEIVE:
            self._wait(rank, stream, "computing")

    def _meeting(self, what: str, name: str, size: float, dice: random.Random, stage: int | None) -> int:
        ranks = self.groups[name]
        n = len(ranks)
        if name.startswith("tp"):
            pairs: Iterable[tuple[int, int]] = [(a, b) for a in ranks for b in ranks if a != b]
            share = size * 2 / n
        else:
            pairs = [(rank, ranks[(place + 1) % n]) for place, rank in enumerate(ranks)]
            share = size * (n - 1) / n
        wires = [self._wire(source, target, share, dice) for source, target in pairs]
        self.meetings.append(Meeting(what, name, wires, stage=stage))
        return len(self.meetings) - 1

    def _wire(self, source: int, target: int, size: float, dice: random.Random) -> Wire:
        if (source, target) not in self.links:
            self.links[source, target] = self._link_dice.lognormvariate(0, 0.01)
        single = 1.6 if dice.random() < self.shape.slow_singles else 1.0
        noise = single * dice.lognormvariate(0, 0.005)
        return Wire(source, target, size, noise, self.transport(source, target))

    def _add(self, item: Item) -> int:
        number = len(self.items)
        self.items.append(item)
        self.own[item.rank, item.step].append(number)
        place = item.stream, item.rank
        awaited = set(self._before.pop(place, {}).values())
        if place in self._open:
            awaited.add(self._open[place])
        for before in awaited:
            if self.items[before].step == item.step:
                self.items[before].followers.append(number)
                item.n_awaited += 1
        self._open[place] = number
        return number

    def _wait(self, rank: int, stream: str, waiting: str) -> None:
        """Let the next item of `waiting` start after what `stream` holds by now."""
        if (stream, rank) in self._open:
            self._before.setdefault((waiting, rank), {})[stream] = self._open[stream, rank]

    def duration_ms(self, wire: Wire, factor: float) -> float:
        """Return how long a wire's bytes take, if its link is `factor` times as slow as its kind."""
        return LATENCY_MS[wire.kind] + wire.size_mb / RATES[wire.kind] * factor * wire.noise


def _tail(dice: random.Random, sigma: float) -> float:
    """A factor on kernels: lognormal, and for some of them half as long again."""
    return dice.lognormvariate(0, sigma) * (dice.uniform(1.1, 1.6) if dice.random() < 0.001 else 1.0)
