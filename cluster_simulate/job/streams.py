"""The clocks of all ranks, and the operators that move them.

Barrier semantics: a collective ends for all its ranks when the last one has come and the data has moved.
A receive ends when the data is there. Sends and some gradient collectives run on streams of their own,
which the rank waits for only where it needs the result.
"""

from __future__ import annotations

import numpy as np

from cluster_simulate.job import layout as kinds
from cluster_simulate.job.arrays import Bools, Floats, Ints
from cluster_simulate.job.effects import Retransmission
from cluster_simulate.job.layout import GroupSet
from cluster_simulate.job.network import Network, Wires, link_bytes
from cluster_simulate.job.plant import Plant
from cluster_simulate.job.recorder import Recorder
from cluster_simulate.job.schedule import Action, Message, message_of

_LAUNCH_US = 12.0
_RECEIVE_US = 6.0
MB = 1e6
#: Loss of a collective's bandwidth by concurrent matrix multiplications.
_CONTENTION = 1.0 / 0.8


class Streams:
    """Three clocks a rank: its own, its second stream for gradients and parameters, its sends."""

    def __init__(self, plant: Plant, retransmissions: tuple[Retransmission, ...]) -> None:
        n = plant.spec.n_ranks
        self.recorder = Recorder()
        self.clock = np.zeros(n)
        self.side = np.zeros(n)
        self.computed_us = np.zeros(n)
        self._plant = plant
        self._spec = plant.spec
        self._retransmissions = retransmissions
        self._retried: set[Retransmission] = set()
        self._sending = np.zeros(n)
        self._compute = np.zeros(n)
        self._free = np.zeros(n)
        self._messages: dict[Message, tuple[Floats, Floats, Wires]] = {}
        self._channel: dict[tuple[int, int], Floats] = {}
        self._pending: dict[int, Action] = {}

    def begin_step(self, step: int, preparing_us: Floats, network: Network, rng: np.random.Generator) -> None:
        """Let a step begin on every rank once its input is there."""
        self._step, self._network, self._rng = step, network, rng
        self.clock = self.clock + preparing_us
        self.side = np.maximum(self.side, self.clock)
        self._sending = np.maximum(self._sending, self.clock)
        self.computed_us = np.zeros_like(self.clock)
        self._compute[:] = 0.0
        self._free[:] = 0.0
        self._messages.clear()

    def advance(self, here: slice, compute: Floats, free: Floats) -> None:
        """Let ranks idle and then compute."""
        self.clock[here] += free + compute
        self.computed_us[here] += compute
        self._compute[here] += compute
        self._free[here] += free

    def wait_until(self, here: slice, when: Floats) -> None:
        """Let ranks wait for their second stream until `when`: what they computed so far lies before that."""
        ranks = np.arange(len(self.clock))[here]
        late = ranks[(when > self.clock[here]) & (self._compute[here] > 0)]
        if len(late):
            self.recorder.add_waits(late, self._step, self.clock[late], self._compute[late])
            self._compute[late] = 0.0
        self.clock[here] = np.maximum(self.clock[here], when)

    # ---- collectives

    def collective(
        self,
        groups: GroupSet,
        kind: int,
        size_bytes: float,
        stage: int,
        *,
        is_side: bool = False,
        load: Floats | None = None,
    ) -> None:
        """Run one operator in all groups of a stage; stage -1 means everywhere.

        `load`, by rank, multiplies what each rank is sent.
        """
        per_stage = len(groups.members) // self._spec.pp
        rows = (
            slice(0, len(groups.members)) if stage < 0 else slice(stage * per_stage, (stage + 1) * per_stage)
        )
        members, n = groups.members[rows], groups.size
        wires = self._plant.wires[groups.first]
        arrive = (np.maximum(self.clock, self.side) if is_side else self.clock)[members]
        begin = arrive.max(axis=1)
        received = 1.0 if load is None else load[wires.dst_rank[rows]]
        times = self._network.link_times(wires, rows, kind, size_bytes, n, received)
        if is_side:
            times = times * _CONTENTION
        times = times * self._network.crowding(wires, rows, begin, times.max(axis=1))[:, None]
        times = times + self._retransmitted(wires, rows, size_bytes)
        transfer = times.max(axis=1)
        jitter = self._rng.exponential(self._spec.noise.exit_jitter_us, members.shape)
        end = ((begin + transfer)[:, None] + jitter).ravel()
        flat = members.ravel()
        compute, free = self._taken(flat, is_side)
        group = np.repeat(np.arange(rows.start, rows.stop, dtype=np.int64) + groups.first, n)
        first = self.recorder.add_ops(
            rank=flat, step=self._step, kind=kind, group=group, start=arrive.ravel(), end=end,
            transfer=np.repeat(transfer, n), compute=compute, free=free, is_side=is_side,
        )  # fmt: skip
        (self.side if is_side else self.clock)[flat] = end
        owner = first + np.arange(len(members))[:, None] * n + wires.src[None, :]
        self.recorder.add_links(
            owner.ravel(), wires.dst_rank[rows].ravel(), wires.transport[rows].ravel(),
            (link_bytes(wires, kind, size_bytes, n) * received * np.ones_like(times)).ravel(), times.ravel(),
        )  # fmt: skip

    # ---- point to point

    def send(self, action: Action) -> None:
        """Send a stage's result; what that does to the sender depends on the job's `p2p`."""
        spec = self._spec
        here = self._ranks(action.stage)
        self.finish_send(action.stage)
        wires = self._plant.pairs[action.stage, action.peer]
        everything = slice(0, len(here))
        blocking = spec.p2p == "batch"
        start = self.clock[here].copy() if blocking else np.maximum(self.clock[here], self._sending[here])
        size = spec.pp_mb * MB
        times = self._network.link_times(wires, everything, kinds.SEND, size, 2)[:, 0]
        times = times * self._network.crowding(wires, everything, start, times)
        times = times + self._retransmitted(wires, everything, size)[:, 0]
        self._messages[message_of(spec, action)] = (start, times, wires)
        if blocking:
            self._pending[action.stage] = action
            return
        self._free[here] += _LAUNCH_US
        self.clock[here] += _LAUNCH_US
        if spec.p2p == "eager":
            self._sending[here] = start + times
            self._record_send(here, start, start + times, times, wires)

    def receive(self, action: Action) -> None:
        """Wait for what another stage sends to this one."""
        here = self._ranks(action.stage)
        sent, times, wires = self._messages[message_of(self._spec, action)]
        pending = self._pending.pop(action.stage, None)
        start = self.clock[here].copy()
        if self._spec.p2p == "rendezvous":
            channel = (action.peer, action.stage)
            before = self._channel.get(channel, np.zeros(len(here)))
            send_start = np.maximum(sent, before)
            end = np.maximum(send_start, start) + times
            self._channel[channel] = end
            self._record_send(self._ranks(action.peer), send_start, end, times, wires)
            peers = self._ranks(action.peer)
            self._sending[peers] = np.maximum(self._sending[peers], end)
        else:
            end = np.maximum(sent + times, start) + _RECEIVE_US
        if pending is not None:
            self._record_batch(pending, action, end)
        elif self._spec.p2p == "batch":
            self._record_batch(None, action, end)
        else:
            self._record(here, kinds.RECEIVE, start, end, times)

    def finish_sends(self) -> None:
        """End the blocking sends of all stages."""
        for stage in list(self._pending):
            self.finish_send(stage)

    def finish_send(self, stage: int) -> None:
        """End a blocking send of a stage that is to go on without receiving."""
        action = self._pending.pop(stage, None)
        if action is not None:
            self._record_batch(action, None, None)

    def _record_send(self, here: Ints, start: Floats, end: Floats, times: Floats, wires: Wires) -> None:
        rows = self._record(here, kinds.SEND, start, end, times, is_side=True)
        self._add_p2p_links(rows, wires, times, np.ones(len(here), dtype=bool))

    def _record(
        self, here: Ints, kind: int, start: Floats, end: Floats, transfer: Floats, *, is_side: bool = False
    ) -> Ints:
        """Record a message on each rank; one on the rank's own stream moves its clock."""
        compute, free = self._taken(here, is_side)
        first = self.recorder.add_ops(
            rank=here, step=self._step, kind=kind, group=self._p2p_group(here), start=start, end=end,
            transfer=transfer, compute=compute, free=free, is_side=is_side,
        )  # fmt: skip
        if not is_side:
            self.clock[here] = end
        rows: Ints = first + np.arange(len(here), dtype=np.int64)
        return rows

    def _record_batch(self, send: Action | None, receive: Action | None, received: Floats | None) -> None:
        """Record one batchSendRecv that sends, receives, or both; it lasts until both are done."""
        action = send or receive
        if action is None:
            return
        here = self._ranks(action.stage)
        start = self.clock[here].copy()
        end, transfer = start, np.zeros(len(here))
        parts = [self._messages[message_of(self._spec, one)] for one in (send, receive) if one is not None]
        if send is not None:
            end = start + parts[0][1]
        if received is not None:
            end = np.maximum(end, received)
        for _, times, _ in parts:
            transfer = np.maximum(transfer, times)
        rows = self._record(here, kinds.BATCH_SEND_RECV, start, end, transfer)
        for _, times, wires in parts:
            self._add_p2p_links(rows, wires, times, wires.src_rank[:, 0] == here)

    def _add_p2p_links(self, rows: Ints, wires: Wires, times: Floats, mine: Bools) -> None:
        if mine.any():
            self.recorder.add_links(
                rows[mine],
                wires.dst_rank[mine, 0],
                wires.transport[mine, 0],
                np.full(int(mine.sum()), self._spec.pp_mb * MB),
                times[mine],
            )

    # ---- helpers

    def _ranks(self, stage: int) -> Ints:
        n = self._spec.stage_ranks
        return np.arange(stage * n, (stage + 1) * n, dtype=np.int64)

    def _p2p_group(self, here: Ints) -> Ints:
        pipelines = self._plant.layout.pp
        if pipelines is None:
            raise AssertionError("only pipelines send and receive")
        group: Ints = pipelines.first + here % self._spec.stage_ranks
        return group

    def _taken(self, ranks: Ints, is_side: bool) -> tuple[Floats, Floats]:
        """Return, and forget, what ranks computed and idled since their last blocking operator."""
        if is_side:
            return np.zeros(len(ranks)), np.zeros(len(ranks))
        taken = self._compute[ranks], self._free[ranks]
        self._compute[ranks] = 0.0
        self._free[ranks] = 0.0
        return taken

    def _retransmitted(self, wires: Wires, rows: slice, size_bytes: float) -> Floats:
        """Return what retransmissions add to [group, link]: in the first large operator of their step."""
        src, dst = wires.src_rank[rows], wires.dst_rank[rows]
        extra = np.zeros(src.shape)
        for one in self._retransmissions:
            if one.step != self._step or size_bytes < MB or one in self._retried:
                continue
            hit = (src == one.src) & (dst == one.dst)
            if hit.any():
                self._retried.add(one)
                extra += np.where(hit, one.extra_us, 0.0)
        return extra
