"""Calls that go on beside others in queues of their own, in calls made by hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from cluster_analysis.judge.detection import Detection, detect
from cluster_analysis.numeric.arrays import FloatArray, IntArray
from cluster_analysis.tables.schema import STEPS
from cluster_analysis.trace.calls import Calls, calls_of
from cluster_analysis.trace.streams.streams import Streams, sequence
from cluster_run.ids import HostId
from tests.analysis.copies import replace, with_column
from tests.analysis.jobs import Call, collectives_table, evidence_of, small_topology

N_RANKS = 6
BLOCK_US = 5_000.0


def in_order(calls: list[Call]) -> tuple[Calls, Streams]:
    """The sequence of one stage's ranks; sends and receives are messages."""
    table = collectives_table(calls)
    is_message = [one.op_type in ("send", "receive") for one in calls]
    found = calls_of(with_column(table, "is_p2p", is_message))
    return found, sequence(found, np.zeros(N_RANKS, np.int32))


def posted_ahead(rank: int) -> list[Call]:
    """Each block has a call in its middle; the message for the next block is asked for before the block."""
    calls, begin = [], 0.0
    for block in range(4):
        arrives = begin + 2 * BLOCK_US + 2_000.0 + 300.0 * rank
        calls += [
            Call(rank, "receive", begin, arrives - begin, "p", 2 * block + 1),
            Call(rank, "allreduce", begin + BLOCK_US, 500.0, f"t{rank}", 2 * block + 2),
            Call(rank, "allreduce", begin + 2 * BLOCK_US, 500.0, f"t{rank}", 2 * block + 3),
        ]
        begin = arrives
    return calls


def test_a_receive_that_was_asked_for_a_block_ahead_holds_no_computing_up() -> None:
    calls, found = in_order([call for rank in range(N_RANKS) for call in posted_ahead(rank)])
    assert found.is_side[calls.is_receive].all()
    middle = np.flatnonzero(~calls.is_receive & (np.array([n % 2 for n in calls.number]) == 0))
    assert found.gap_us[middle[found.after[middle] >= 0]] == pytest.approx(BLOCK_US)


def test_a_receive_before_which_nothing_is_computed_stays_on_the_main_stream() -> None:
    def of_rank(rank: int) -> list[Call]:
        return [
            one
            for block in range(4)
            for one in (
                Call(rank, "receive", 20_000.0 * block, 1_000.0 + 100.0 * rank, "p", 2 * block + 1),
                Call(rank, "allreduce", 20_000.0 * block + BLOCK_US, 500.0, f"t{rank}", 2 * block + 2),
            )
        ]

    calls, found = in_order([call for rank in range(N_RANKS) for call in of_rank(rank)])
    assert not found.is_side[calls.is_receive].any()


@pytest.mark.parametrize("later_us", [0.0, 3.0])
def test_a_send_waits_for_no_receive_that_begins_with_it_however_short_that_is(later_us: float) -> None:
    """A message that lies there already is taken at once. On a rank that is late all do."""

    def of_rank(rank: int) -> list[Call]:
        return [
            one
            for block in range(4)
            for begin in [block * BLOCK_US]
            for one in (
                Call(rank, "allreduce", begin, 500.0, f"t{rank}", 3 * block + 1),
                Call(rank, "receive", begin + 1_500.0, 5.0, "p", 3 * block + 2),
                Call(rank, "send", begin + 1_500.0 + later_us, 4_000.0, "p", 3 * block + 3),
            )
        ]

    calls, found = in_order([call for rank in range(N_RANKS) for call in of_rank(rank)])
    sends = np.flatnonzero(calls.is_send)
    assert found.is_side[sends].all()
    assert (calls.number[found.after[sends]] % 3 == 1).all()
    assert found.gap_us[sends] == pytest.approx(1_000.0 + later_us)


def test_a_send_waits_for_no_send_that_still_goes_on_when_it_begins() -> None:
    """To two neighbours: what one of them has not taken yet does not hold up what goes to the other."""

    def of_rank(rank: int) -> list[Call]:
        return [
            Call(rank, "allreduce", 0.0, 500.0, f"t{rank}", 1),
            Call(rank, "send", 5_500.0, 20_000.0, "p", 2),
            Call(rank, "allreduce", 10_500.0, 500.0, f"t{rank}", 3),
            Call(rank, "send", 16_000.0, 1_000.0, "p", 4),
            Call(rank, "allreduce", 21_000.0, 500.0, f"t{rank}", 5),
            Call(rank, "send", 26_500.0, 1_000.0, "p", 6),
        ]

    calls, found = in_order([call for rank in range(N_RANKS) for call in of_rank(rank)])
    sends = np.flatnonzero(calls.is_send).reshape(N_RANKS, 3)
    assert found.is_side[sends].all()
    assert found.join[sends[:, 1]].tolist() == [-1] * N_RANKS
    assert found.join[sends[:, 2]].tolist() == sends[:, 0].tolist()


def test_sums_that_go_on_beside_what_experts_exchange_are_on_the_second_stream() -> None:
    """Though there are more of them; what tokens are exchanged for is computed at once."""

    def of_rank(rank: int) -> list[Call]:
        return [
            Call(rank, "alltoallv", 0.0, 500.0, "e", 1),
            Call(rank, "allreduce", 5_500.0, 9_000.0, "w", 2),
            Call(rank, "alltoallv", 10_500.0, 500.0, "e", 3),
            Call(rank, "allreduce", 16_000.0, 1_000.0, "w", 4),
            Call(rank, "allreduce", 17_100.0, 50.0, "w", 5),
        ]

    calls, found = in_order([call for rank in range(N_RANKS) for call in of_rank(rank)])
    is_exchange = np.array(calls.types)[calls.kind] == "alltoallv"
    assert not found.is_side[is_exchange].any()
    assert found.is_side[calls.number == 2].all()


#: Hosts of ranks that share the weights of a model; what ranks of one place in their host have is the same.
N_HOSTS, A_HOST, N_UNITS = 4, 4, 5
FETCH_US, SUM_US, WORK_US = 3_000.0, 4_000.0, 8_000.0
SLOW = 6


class _Run:
    """Steps of weights that are sharded inside a host and replicated over hosts; rank `SLOW` is so slow."""

    def __init__(self, slow: float) -> None:
        self.n = N_HOSTS * A_HOST
        self.pace = np.ones(self.n)
        self.pace[SLOW] = slow
        self.host = np.arange(self.n) // A_HOST
        self.calls: list[Call] = []
        self.totals: list[dict[str, float]] = []
        self.step_us: list[float] = []
        self.chance = np.random.default_rng(5)
        for step in range(1, 6):
            self._step(step)

    def _call(self, kind: str, start: FloatArray, takes: float, at: IntArray, name: str) -> FloatArray:
        last: FloatArray = np.array([start[at == one].max() for one in at]) + takes
        self.n_made += 1
        for rank in range(self.n):
            group = f"{name}{at[rank]}"
            lasts = last[rank] - start[rank]
            self.calls.append(Call(rank, kind, start[rank], lasts, group, self.n_made, step=self.now))
        return last

    def _step(self, step: int) -> None:
        self.now, self.n_made = step, 0
        done, queue, sums, worked = np.zeros(self.n), np.zeros(self.n), np.zeros(self.n), np.zeros(self.n)
        blocks: list[tuple[FloatArray, FloatArray]] = []
        begin = len(self.calls)
        units = [*range(N_UNITS), *reversed(range(N_UNITS))]
        fetched = {0: self._call("allgather", done, FETCH_US, self.host, "s")}
        queue = fetched[0]
        for at, unit in enumerate(units):
            if at + 1 < len(units) and units[at + 1] != unit:
                ready = np.maximum(done, queue)
                queue = fetched[at + 1] = self._call("allgather", ready, FETCH_US, self.host, "s")
            begun = np.maximum(done, fetched.get(at, done))
            work = WORK_US * (2 if at >= N_UNITS else 1) * self.pace
            done = begun + work * (1 + 0.002 * self.chance.normal(size=self.n))
            worked += done - begun
            blocks.append((begun, done))
            if at >= N_UNITS:
                queue = self._call("reducescatter", np.maximum(done, queue), FETCH_US, self.host, "s")
                place = np.arange(self.n) % A_HOST
                sums = self._call("allreduce", np.maximum(queue, sums), SUM_US, place, "r")
        together = np.zeros(self.n, int)
        end = self._call("allreduce", np.maximum.reduce([done, queue, sums]), 50.0, together, "w")
        self.step_us.append(float(end.max()))
        for rank in range(self.n):
            own = [one for one in self.calls[begin:] if one.rank == rank]
            busy = _union([(one.start_us, one.start_us + one.elapse_us) for one in own])
            beside = sum(max(0.0, min(b, d[rank]) - max(a, c[rank])) for a, b in busy for c, d in blocks)
            all_us = sum(b - a for a, b in busy)
            self.totals.append(
                dict.fromkeys(STEPS.names, 0.0)
                | {"rank": rank, "step": step, "computing_us": worked[rank], "communication_us": all_us}
                | {
                    "communication_not_overlapped_us": all_us - beside,
                    "overlapped_us": beside,
                    "stage_us": end[rank],
                }
                | {"free_us": end[rank] - worked[rank] - all_us + beside}
            )

    def judged(self) -> Detection:
        groups = {f"s{h}": tuple(range(h * A_HOST, (h + 1) * A_HOST)) for h in range(N_HOSTS)}
        groups |= {f"r{p}": tuple(range(p, self.n, A_HOST)) for p in range(A_HOST)}
        groups["w0"] = tuple(range(self.n))
        roles = {name: "world" if name == "w0" else "dp" for name in groups}
        where = small_topology(groups, roles, dict.fromkeys(range(self.n), 0))  # type: ignore[arg-type]
        where = replace(where, hosts={rank: HostId(str(1 + int(rank) // A_HOST)) for rank in where.ranks})
        steps = pa.Table.from_pylist(self.totals, schema=STEPS)
        return detect(evidence_of(where, steps, collectives_table(self.calls)), where)


def _union(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((begin, end))
    return found


@pytest.mark.parametrize("slow", [1.2, 1.4])
def test_what_a_device_costs_is_told_where_sums_over_hosts_go_beside_weights_of_a_host(slow: float) -> None:
    job, without = _Run(slow), _Run(1.0)
    found = job.judged()
    true_ms = (np.mean(job.step_us) - np.mean(without.step_us)) / 1e3
    assert found.replay["error_share"] < 0.001
    (alarm,) = [one for one in found.findings if one.is_alarm]
    assert (alarm.kind, alarm.ranks) == ("slow_rank", (SLOW,))
    assert alarm.cost_ms_per_step == pytest.approx(true_ms, rel=0.1)
