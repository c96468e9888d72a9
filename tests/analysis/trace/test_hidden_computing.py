"""Computing beside calls that no gap shows: told from other steps, other ranks, and the step totals."""

from __future__ import annotations

import numpy as np
import pytest

from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.trace.streams.computing import Overlap, PeerRows, overlap_of
from tests.analysis.copies import replace

N_RANKS = 6
N_STEPS = 4
#: A block of computing, and a call that is quick or slow against it.
BLOCK_US = 8_000.0
QUICK_US = 3_000.0
SLOW_US = 9_000.0


def sums_during_calls(call_us: FloatArray) -> PeerRows:
    """Three sums of gradients, each issued after a block; then a call that waits. A row's calls last alike.

    Args:
        call_us: how long the calls of each row last.
    """
    rows = len(call_us)
    start, end, issued = np.zeros((rows, 4)), np.zeros((rows, 4)), np.full(rows, BLOCK_US)
    for place in range(3):
        before = end[:, place - 1] if place else issued
        start[:, place] = np.maximum(issued, before)
        end[:, place] = start[:, place] + call_us
        issued = issued + BLOCK_US
    start[:, 3], end[:, 3] = end[:, 2], end[:, 2] + 100.0
    # Two blocks come after the first call is issued, and end before the last one does.
    covered = np.minimum(2 * BLOCK_US, end[:, 2] - start[:, 0])
    covered = np.minimum(covered, 2 * call_us)
    return PeerRows(
        start, end, np.ones(start.shape, bool),
        np.zeros(4, bool), np.ones(4, bool), covered, np.full(rows, 3 * BLOCK_US), np.zeros(rows),
    )  # fmt: skip


def told(laid: PeerRows) -> Overlap:
    found = overlap_of(laid)
    assert found is not None
    return found


def by_step(quick: list[bool]) -> FloatArray:
    return np.repeat(np.where(quick, QUICK_US, SLOW_US), N_RANKS)


def test_what_slow_calls_hide_in_one_step_quick_ones_show_in_another() -> None:
    found = told(sums_during_calls(by_step([True, True, False, True])))
    assert found.worked_us[:, 1:3] == pytest.approx(BLOCK_US, abs=1.0)
    assert found.runs_on[1:3].all()


def test_gaps_around_calls_that_were_filled_in_show_nothing() -> None:
    laid = sums_during_calls(by_step([True, True, False, True]))
    wrong = laid.start_us.copy()
    wrong[3, 1:] += 2_500.0
    recorded = laid.is_recorded.copy()
    recorded[3, 1:3] = False
    found = told(replace(laid, start_us=wrong, is_recorded=recorded))
    assert found.worked_us[:, 1:3] == pytest.approx(BLOCK_US, abs=1.0)


def gathered() -> tuple[PeerRows, float]:
    """Weights of four blocks are gathered one after the other, and each is computed with once it is there.

    Gathering takes longer than computing, so that only the last block, behind all calls, shows.
    """
    n_blocks, rows = 4, N_RANKS * N_STEPS
    end = np.cumsum(np.full((rows, n_blocks), SLOW_US), axis=1)
    start = end - SLOW_US
    last = end[:, -1:] + BLOCK_US
    start, end = np.hstack([start, last]), np.hstack([end, last + 100.0])
    covered = np.full(rows, (n_blocks - 1) * BLOCK_US)
    laid = PeerRows(
        start, end, np.ones(start.shape, bool),
        np.array([True] * n_blocks + [False]), np.zeros(n_blocks + 1, bool), covered, covered + BLOCK_US,
        np.zeros(rows),
    )  # fmt: skip
    return laid, BLOCK_US


def test_nothing_is_computed_beside_a_gathering_before_other_weights_are_there() -> None:
    laid, block_us = gathered()
    found = told(laid)
    assert found.worked_us[:, 1] == pytest.approx(0.0)
    assert found.worked_us[:, 2:] == pytest.approx(block_us, abs=1.0)


def test_gradients_are_computed_before_they_go_though_slow_calls_hide_it() -> None:
    """Weights of four blocks are gathered; the gradients of the last two are summed up behind them."""
    gathers = np.array([True, True, True, True, False, False, False])
    reduces = np.array([False, False, False, False, True, True, False])
    rows = N_RANKS * N_STEPS
    end = np.cumsum(np.full((rows, 6), SLOW_US), axis=1)
    start = end - SLOW_US
    last = end[:, -1:] + QUICK_US
    start, end = np.hstack([start, last]), np.hstack([end, last + 100.0])
    covered = np.full(rows, 3 * BLOCK_US)
    laid = PeerRows(
        start, end, np.ones(start.shape, bool), gathers, reduces,
        covered, covered + QUICK_US, np.zeros(rows),
    )  # fmt: skip
    worked = told(laid).worked_us
    assert worked[:, 2:4] == pytest.approx(BLOCK_US / 2, abs=1.0)  # behind each of the weights
    assert worked[:, 4:6] == pytest.approx(BLOCK_US, abs=1.0)  # twice as much before gradients
    assert worked[:, 6] == pytest.approx(0.0)  # and nothing beside the last sum


def test_before_sums_that_all_queue_as_much_is_computed_before_each() -> None:
    rows = N_RANKS * N_STEPS
    start = np.tile(SLOW_US * np.arange(4), (rows, 1))
    laid = PeerRows(
        start, start + SLOW_US, np.ones(start.shape, bool), np.zeros(4, bool), np.ones(4, bool),
        np.full(rows, 12_000.0), np.full(rows, 30_000.0), np.zeros(rows),
    )  # fmt: skip
    found = told(laid)
    assert found.worked_us.mean(axis=0) == pytest.approx([0.0, 4_000.0, 4_000.0, 4_000.0], abs=1.0)
    assert found.runs_on.tolist() == [False, True, True, True]


def test_each_row_hides_as_much_as_its_own_totals_say() -> None:
    rows = N_RANKS * N_STEPS
    start = np.tile(SLOW_US * np.arange(4), (rows, 1))
    covered = np.linspace(9_000.0, 15_000.0, rows)
    laid = PeerRows(
        start, start + SLOW_US, np.ones(start.shape, bool), np.zeros(4, bool), np.ones(4, bool),
        covered, np.full(rows, 30_000.0), np.zeros(rows),
    )  # fmt: skip
    assert told(laid).worked_us.sum(axis=1) == pytest.approx(covered, abs=1.0)


def test_nothing_is_computed_beside_weights_that_are_gathered_behind_the_last_sum() -> None:
    """Sums of gradients hide computing; behind them come a norm, the optimizer, the next step's weights."""
    rows = N_RANKS * N_STEPS
    takes = np.array([SLOW_US, SLOW_US, SLOW_US, 50.0, SLOW_US, SLOW_US, 50.0])
    pause = np.array([BLOCK_US, 0.0, 0.0, 0.0, QUICK_US, 0.0, 0.0])
    end = np.tile(np.cumsum(takes + pause), (rows, 1))
    start = end - takes
    sums = np.array([True] * 3 + [False] * 4)
    gathers = np.array([False] * 4 + [True] * 2 + [False])
    covered = np.full(rows, 2 * BLOCK_US)
    laid = PeerRows(
        start, end, np.ones(start.shape, bool), gathers, sums, covered,
        covered + BLOCK_US + QUICK_US, np.zeros(rows),
    )  # fmt: skip
    worked = told(laid).worked_us
    assert worked[:, 1:3] == pytest.approx(BLOCK_US, abs=1.0)
    assert worked[:, 3:] == pytest.approx(0.0)


class _Step:
    """Calls of one step of sharded weights: a queue of collectives, and where the ranks' computing is."""

    def __init__(self, call_us: float) -> None:
        self.call_us, self.now, self.queue = call_us, np.zeros(N_RANKS), np.zeros(N_RANKS)
        self.start: list[FloatArray] = []
        self.end: list[FloatArray] = []
        self.blocks: list[tuple[FloatArray, FloatArray]] = []

    def call(self) -> None:
        """Issue a collective beside computing: it begins behind the one before, and ends for all at once."""
        self.start.append(np.maximum(self.now, self.queue))
        self.queue = np.full(N_RANKS, float(self.start[-1].max()) + self.call_us)
        self.end.append(self.queue)

    def compute(self, idle_us: FloatArray, work_us: FloatArray) -> None:
        """Idle, then compute, and wait for the calls."""
        self.blocks.append((self.now + idle_us, self.now + idle_us + work_us))
        self.now = np.maximum(self.blocks[-1][1], self.queue)

    @property
    def covered_us(self) -> FloatArray:
        """How much of the calls each rank's computing covers (ranks,)."""
        start, end = np.stack(self.start), np.stack(self.end)
        both = [np.minimum(done, end) - np.maximum(begun, start) for begun, done in self.blocks]
        return np.asarray(np.clip(both, 0.0, None).sum(axis=(0, 1)))


def sharded(slower: float, idle_us: float, call_us: float) -> tuple[PeerRows, FloatArray]:
    """Blocks whose weights are gathered during the block before, and whose gradients are summed behind them.

    Those of the second half take twice as long. The last rank computes slower by a factor, and idles before
    each block while calls go on. Also what ranks compute and idle a step.
    """
    n_blocks, chance = 6, np.random.default_rng(1)
    idle = np.where(np.arange(N_RANKS) == N_RANKS - 1, idle_us, 0.0)
    steps, worked = [], []
    for _ in range(N_STEPS):
        work = BLOCK_US * chance.normal(1.0, 0.01, (2, n_blocks, N_RANKS)) * np.array([[[1.0]], [[2.0]]])
        work[..., -1] *= slower
        step = _Step(call_us)
        for backward, of_half in enumerate(work):
            step.call()
            step.now = step.queue
            for block, of_ranks in enumerate(of_half):
                if block + 1 < n_blocks:
                    step.call()
                step.compute(idle, of_ranks)
                if backward:
                    step.call()
        step.now = step.queue
        step.call()
        steps.append(step)
        worked.append(work.sum(axis=(0, 1)))
    start, end = (np.concatenate([np.stack(one, 1) for one in of]) for of in
                  ([one.start for one in steps], [one.end for one in steps]))  # fmt: skip
    gathers = np.array([True] * (n_blocks + 1) + [True, False] * (n_blocks - 1) + [False, False])
    reduces = ~gathers & (np.arange(len(gathers)) < len(gathers) - 1)
    busy, covered = np.concatenate(worked), np.concatenate([one.covered_us for one in steps])
    recorded, nothing = np.ones(start.shape, bool), np.zeros(len(busy))
    laid = PeerRows(start, end, recorded, gathers, reduces, covered, busy, nothing)
    return laid, busy + 2 * n_blocks * np.tile(idle, N_STEPS)


@pytest.mark.parametrize("call_us", [2_000.0, 7_000.0])
@pytest.mark.parametrize(("slower", "idle_us"), [(1.0, 0.0), (1.2, 0.0), (1.0, 2_000.0)])
def test_ranks_that_wait_for_a_late_one_compute_as_long_as_they_do_without_it(
    slower: float, idle_us: float, call_us: float
) -> None:
    """And the late one for as long as it shows, though no total holds what it idles during calls."""
    laid, local_us = sharded(slower, idle_us, call_us)
    found = told(laid)
    behind = np.maximum(laid.start_us[:, 1:] - laid.end_us[:, :-1], 0.0)
    shown_us = found.worked_us[:, 1:] + np.where(found.runs_on[1:], 0.0, behind)
    assert shown_us.sum(axis=1) == pytest.approx(local_us, rel=0.03)


def test_who_waits_least_in_a_call_has_more_left_behind_it_than_those_that_hid_it() -> None:
    """Calls hide whole blocks of those that wait for the late rank, and hardly anything of its own."""
    laid, _ = sharded(slower=1.3, idle_us=0.0, call_us=4_000.0)
    of_peers = told(laid).worked_us.reshape(N_STEPS, N_RANKS, -1)[:, :-1]
    assert of_peers[..., [3, 4, 5]] == pytest.approx(BLOCK_US, rel=0.06)
    assert of_peers[..., [8, 10, 12, 14, 16, 17]] == pytest.approx(2 * BLOCK_US, rel=0.06)


def test_what_few_rows_show_of_a_place_others_hide_there_as_far_as_their_totals_say_so() -> None:
    """All queue but the last rank, which is slower: one block comes behind each sum, two behind the last."""
    blocks, before = np.array([0.0, *[1.0] * 6, 2.0]), 40.0
    came = (before + np.cumsum(blocks)) * 1.05 * BLOCK_US
    end = np.tile(came + QUICK_US, (N_RANKS, 1))
    start = np.hstack([np.full((N_RANKS, 1), before * BLOCK_US), end[:, :-1]])
    start[-1] = came
    covered = np.full(N_RANKS, blocks.sum() * BLOCK_US)
    covered[-1] = (len(blocks) - 1) * QUICK_US
    rows, every = N_RANKS * N_STEPS, (N_STEPS, 1)
    laid = PeerRows(
        np.tile(start, every), np.tile(end, every), np.ones((rows, len(blocks)), bool),
        np.zeros(len(blocks), bool), np.ones(len(blocks), bool), np.tile(covered, N_STEPS),
        np.full(rows, (before + blocks.sum()) * BLOCK_US), np.zeros(rows),
    )  # fmt: skip
    of_peers = told(laid).worked_us.reshape(N_STEPS, N_RANKS, -1)[:, :-1]
    assert of_peers.sum(axis=-1) == pytest.approx(covered[0], rel=0.01)
    assert (of_peers[..., -1] > 1.3 * BLOCK_US).all()


def pieces(launch_us: float) -> PeerRows:
    """Two blocks, whose gradients are summed; behind the second, three more sums in a queue, and a norm.

    The last rank idles before each call, during calls too, and launches each call of the queue late.
    """
    chance = np.random.default_rng(1)
    starts, ends, covers = [], [], []
    for _ in range(N_STEPS):
        now, queue = np.zeros(N_RANKS), np.zeros(N_RANKS)
        start, end, covered = [], [], np.zeros(N_RANKS)
        late = np.arange(N_RANKS) == N_RANKS - 1
        for place in range(6):
            work = BLOCK_US * chance.normal(1.0, 0.01, N_RANKS) * (place in (1, 2))
            now = now + np.where(late, QUICK_US * (place < 3), 0.0)
            covered += np.clip(np.minimum(now + work, queue) - now, 0.0, None)
            now = now + work
            launch = np.where(late & (place > 2), launch_us * chance.normal(1.0, 0.05), 0.0)
            start.append(np.maximum(now, queue + launch))
            queue = np.full(N_RANKS, start[-1].max() + QUICK_US * chance.normal(1.0, 0.05))
            end.append(queue)
        starts.append(np.stack(start, 1))
        ends.append(np.stack(end, 1))
        covers.append(covered)
    rows = N_RANKS * N_STEPS
    return PeerRows(
        np.concatenate(starts), np.concatenate(ends), np.ones((rows, 6), bool), np.zeros(6, bool),
        np.arange(6) < 5, np.concatenate(covers), np.full(rows, 3 * BLOCK_US), np.zeros(rows),
    )  # fmt: skip


@pytest.mark.parametrize("launch_us", [0.0, 200.0])
def test_a_rank_that_launches_each_call_of_a_queue_late_computes_nothing_between_them(
    launch_us: float,
) -> None:
    worked = told(pieces(launch_us)).worked_us
    of_peers = worked.reshape(N_STEPS, N_RANKS, -1)[:, :-1]
    assert of_peers[..., 1:3] == pytest.approx(BLOCK_US, rel=0.05)
    assert worked[:, 3:] == pytest.approx(0.0, abs=100.0)
