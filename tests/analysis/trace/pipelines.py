"""Pipelines made by hand: programs of exchanges between stages, played on clocks of their own.

A program is, for each stage, a list of steps: work for so long, or make one call that sends and receives
these messages. Nothing here is shared with the simulator, nor with the schedules that the analysis knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cluster_analysis.tables.model import Topology
from tests.analysis.jobs import Call, small_topology

#: (what it is, micro-batch, sending stage, receiving stage)
Message = tuple[str, int, int, int]
TRANSFER_US = 400.0
WORK_US = 20_000.0


@dataclass(frozen=True)
class Work:
    """A stage works for so many forward passes' time."""

    amount: float


@dataclass(frozen=True)
class Exchange:
    """One call: what it sends, and what it receives."""

    sends: tuple[Message, ...] = ()
    receives: tuple[Message, ...] = ()

    @property
    def kind(self) -> str:
        if len(self.sends) + len(self.receives) > 1:
            return "batchsendrecv"
        return "send" if self.sends else "receive"


Program = tuple[tuple[Work | Exchange, ...], ...]


@dataclass(frozen=True)
class Played:
    """The calls of all replicas, and which calls (rank, number) are the ends of each message."""

    calls: list[Call]
    topology: Topology
    sent: dict[tuple[int, Message], tuple[int, int]] = field(default_factory=dict)
    received: dict[tuple[int, Message], tuple[int, int]] = field(default_factory=dict)

    def pairs(self, kept: Sequence[Call]) -> set[frozenset[tuple[int, int]]]:
        """Pairs of calls (rank, number) that exchange a message and are both there."""
        there = {(one.rank, one.number) for one in kept}
        both = ((self.sent[message], self.received[message]) for message in self.sent)
        return {frozenset(ends) for ends in both if ends[0] in there and ends[1] in there}


def play(
    program: Program, *, n_replicas: int = 2, eager: bool = False, as_batches: bool = False, seed: int = 1,
    scatter: float = 0.03, pace: dict[int, float] | None = None,
) -> Played:  # fmt: skip
    """Play a program in several replicas; rank = stage * n_replicas + replica.

    A call begins when its stage comes to it, and ends when all its messages are through: once both ends have
    come; an eager one once its sender has. A stage waits for what it receives, not for what it only sends.

    Args:
        program: what each stage does.
        n_replicas: how often it is played, each time with other chance.
        eager: a send ends without its receiver.
        as_batches: every call is named as if it both sent and received.
        seed: of the chance.
        scatter: of the work, as a share of it.
        pace: how much longer some ranks work.
    """
    rng = np.random.default_rng(seed)
    n_stages = len(program)
    groups = {f"p{r}": tuple(s * n_replicas + r for s in range(n_stages)) for r in range(n_replicas)}
    groups["all"] = tuple(range(n_stages * n_replicas))
    played = Played([], small_topology(groups, stages={r: r // n_replicas for r in groups["all"]}))
    left = dict.fromkeys(groups["all"], 0.0)
    for replica in range(n_replicas):
        ranks = groups[f"p{replica}"]
        now = _play_one(program, played, ranks, f"p{replica}", eager, as_batches, rng, scatter, pace or {})
        left.update(dict(zip(ranks, now, strict=True)))
    # All leave a collective together at the begin and at the end: so clocks are laid beside each other.
    end = max(left.values()) + 100.0
    for rank in left:
        played.calls.append(Call(rank, "allreduce", -500.0, 400.0 + rng.uniform(-20, 20), "all", 0))
        played.calls.append(Call(rank, "allreduce", left[rank], end - left[rank], "all", 1))
    return played


def _play_one(
    program: Program, played: Played, ranks: Sequence[int], group: str, eager: bool, as_batches: bool,
    rng: np.random.Generator, scatter: float, pace: dict[int, float],
) -> list[float]:  # fmt: skip
    now, done, number = [0.0] * len(program), [0] * len(program), [0] * len(program)
    come: dict[tuple[Message, bool], float] = {}
    replica = int(group[1:])
    made: list[tuple[int, int, float, Exchange]] = []
    while any(at < len(own) for at, own in zip(done, program, strict=True)):
        before = list(done)
        for stage, own in enumerate(program):
            while done[stage] < len(own):
                step = own[done[stage]]
                if isinstance(step, Work):
                    chance = 1.0 + scatter * abs(rng.standard_normal())
                    now[stage] += WORK_US * step.amount * chance * pace.get(ranks[stage], 1.0)
                    done[stage] += 1
                    continue
                for message in step.sends:
                    come.setdefault((message, True), now[stage])
                for message in step.receives:
                    come.setdefault((message, False), now[stage])
                if any((message, True) not in come for message in step.receives):
                    break
                if (
                    step.receives
                    and not eager
                    and any((message, False) not in come for message in step.sends)
                ):
                    break
                made.append((stage, number[stage], now[stage], step))
                now[stage] = _end(step, now[stage], come, eager) if step.receives else now[stage] + 10.0
                number[stage] += 1
                done[stage] += 1
        assert done != before, "the program waits for itself"
    for stage, place, start, step in made:
        end = _end(step, start, come, eager) + rng.exponential(20.0)
        kind = "batchsendrecv" if as_batches else step.kind
        played.calls.append(Call(ranks[stage], kind, start, end - start, group, place))
        played.sent.update({(replica, message): (ranks[stage], place) for message in step.sends})
        played.received.update({(replica, message): (ranks[stage], place) for message in step.receives})
    return now


def _end(step: Exchange, start: float, come: dict[tuple[Message, bool], float], eager: bool) -> float:
    """When all messages of a call are through."""
    end = start + 20.0
    for message in step.receives:
        sent = come[message, True]
        end = max(end, (sent if eager else max(sent, start)) + TRANSFER_US)
    for message in step.sends:
        end = max(end, (start if eager else max(come[message, False], start)) + TRANSFER_US)
    return end


def one_f_one_b(n_stages: int, n_batches: int, *, merged: bool = False) -> Program:
    """1F1B. `merged`: the steady state exchanges with each neighbour in one call, the rest in single ones."""
    found = []
    for stage in range(n_stages):
        warm = min(n_batches, n_stages - stage - 1)
        passes = [("f", m) for m in range(warm)]
        for m in range(n_batches - warm):
            passes += [("f", warm + m), ("b", m)]
        passes += [("b", m) for m in range(n_batches - warm, n_batches)]
        found.append(_calls(stage, n_stages, passes, merged=merged))
    return tuple(found)


def zero_bubble(n_stages: int, n_batches: int, *, merged: bool = False) -> Program:
    """ZB-H1: the backward is cut in two; the part that only concerns weights fills the bubbles."""
    found = []
    for stage in range(n_stages):
        warm = min(n_batches, n_stages - stage - 1)
        passes: list[tuple[str, int]] = [("f", m) for m in range(warm)]
        weights = 0
        for m in range(n_batches - warm):
            passes += [("f", warm + m), ("b", m)]
            if m >= stage:
                passes.append(("w", weights))
                weights += 1
        for m in range(n_batches - warm, n_batches):
            passes += [("b", m), ("w", weights)]
            weights += 1
        passes += [("w", m) for m in range(weights, n_batches)]
        found.append(_calls(stage, n_stages, passes, merged=merged))
    return tuple(found)


def _calls(
    stage: int, n_stages: int, passes: Sequence[tuple[str, int]], *, merged: bool = False
) -> tuple[Work | Exchange, ...]:
    made: list[Work | Exchange] = []
    amount = {"f": 1.0, "b": 1.2, "w": 0.8}
    for kind, m in passes:
        before, after = (stage - 1, stage + 1) if kind == "f" else (stage + 1, stage - 1)
        if kind != "w" and 0 <= before < n_stages:
            made.append(Exchange(receives=((kind, m, before, stage),)))
        made.append(Work(amount[kind]))
        if kind != "w" and 0 <= after < n_stages:
            made.append(Exchange(sends=((kind, m, stage, after),)))
    return tuple(_merged(made)) if merged else tuple(made)


def _merged(made: Sequence[Work | Exchange]) -> list[Work | Exchange]:
    """A send and the receive right after it, with the same neighbour, become one call."""
    found: list[Work | Exchange] = []
    for one in made:
        last = found[-1] if found else None
        if (
            isinstance(one, Exchange) and isinstance(last, Exchange) and one.receives and last.sends
            and not last.receives and last.sends[0][3] == one.receives[0][2]
        ):  # fmt: skip
            found[-1] = Exchange(last.sends, one.receives)
        else:
            found.append(one)
    return found


def interleaved(n_stages: int, n_batches: int, n_chunks: int, *, merged: bool = False) -> Program:
    """Interleaved 1F1B: each stage holds several chunks of the model, the last one sends to the first."""
    total, n_virtual = n_batches * n_chunks, n_stages * n_chunks
    forward = []
    for k in range(total):
        turn, within = divmod(k, n_virtual)
        forward.append((turn * n_stages + within % n_stages, within // n_stages))
    found = []
    for stage in range(n_stages):
        warm = min(total, 2 * (n_stages - stage - 1) + (n_chunks - 1) * n_stages)
        order = [("f", *forward[k]) for k in range(warm)]
        backward = [(m, n_chunks - 1 - chunk) for m, chunk in forward]
        for k in range(total - warm):
            order += [("f", *forward[warm + k]), ("b", *backward[k])]
        order += [("b", *one) for one in backward[total - warm :]]
        made: list[Work | Exchange] = []
        for kind, m, chunk in order:
            here = chunk * n_stages + stage
            before, after = (here - 1, here + 1) if kind == "f" else (here + 1, here - 1)
            if 0 <= before < n_virtual:
                made.append(Exchange(receives=((f"{kind}{here}", m, before % n_stages, stage),)))
            made.append(Work(0.5 if kind == "f" else 1.0))
            if 0 <= after < n_virtual:
                made.append(Exchange(sends=((f"{kind}{after}", m, stage, after % n_stages),)))
        found.append(tuple(_merged(made) if merged else made))
    return tuple(found)


def bidirectional(n_stages: int, n_batches: int) -> Program:
    """Two pipelines through the same stages in opposite directions; a stage does what came first.

    So the messages between two stages are worked on in the order in which they were sent.
    """
    made: list[list[Work | Exchange]] = [[] for _ in range(n_stages)]
    # (when it came, a number to tell equals apart, kind, micro-batch, stages passed) by stage.
    inbox: list[list[tuple[float, int, str, int, int]]] = [[] for _ in range(n_stages)]
    for m in range(n_batches):
        inbox[0].append((0.3 * m, m, "f", m, 0))
        inbox[-1].append((0.3 * m, m, "up-f", m, 0))
    free = [0.0] * n_stages
    count = n_batches
    while any(inbox):
        ready = {s: max(free[s], min(own)[0]) for s, own in enumerate(inbox) if own}
        stage = min(ready, key=lambda s: (ready[s], s))
        one = min(inbox[stage])
        inbox[stage].remove(one)
        _, _, kind, m, passed = one
        # Forward passes of the first pipeline and backward ones of the second go down.
        step = 1 if kind in ("f", "up-b") else -1
        if passed:
            made[stage].append(Exchange(receives=((kind, m, stage - step, stage),)))
        made[stage].append(Work(1.0 if kind.endswith("f") else 1.2))
        free[stage] = ready[stage] + (1.0 if kind.endswith("f") else 1.2) + 0.001 * stage
        count += 1
        if passed < n_stages - 1:
            made[stage].append(Exchange(sends=((kind, m, stage, stage + step),)))
            inbox[stage + step].append((free[stage] + 0.01, count, kind, m, passed + 1))
        elif kind.endswith("f"):
            inbox[stage].append((free[stage], count, kind[:-1] + "b", m, 0))
    return tuple(map(tuple, made))


def rings(n_ranks: int, n_rounds: int, *, length: int, apart: int = 1) -> Program:
    """Rings of so many members, so far apart from each other, in which each sends to the next one."""
    members = np.arange(n_ranks).reshape(-1, length, apart)
    after, before = np.empty(n_ranks, int), np.empty(n_ranks, int)
    after[members], before[members] = np.roll(members, -1, axis=1), np.roll(members, 1, axis=1)

    def exchange(number: int, rank: int, source: int, target: int) -> Exchange:
        return Exchange((("r", number, rank, target),), (("r", number, source, rank),))

    return tuple(
        tuple(
            step
            for number in range(n_rounds)
            for step in (Work(1.0), exchange(number, rank, int(before[rank]), int(after[rank])))
        )
        for rank in range(n_ranks)
    )
