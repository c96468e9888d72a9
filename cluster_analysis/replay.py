"""Gap replay: run a job again on paper with some local times or transfers changed.

A rank's clock advances by its local gaps; a collective ends for all its members when the last one has
come, plus its transfer time; a receive ends when the message is there. Changing gaps or transfers and
running again gives the step time that would have been, waiting included. No clock of one host is ever
compared with another's.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cluster_analysis.evidence import BoolArray, FloatArray, IntArray

LongArray = npt.NDArray[np.int64]

#: Rounds in which ranks' leads are carried from step to step. A collective of all ranks in each step
#: makes the second round exact.
_CARRY_ROUNDS = 3
#: Leads that change by less from round to round change no step time that anybody quotes.
_SETTLED_US = 20.0


@dataclass(frozen=True)
class Level:
    """Operators that can be replayed together: their visits in operator order, and where each one begins."""

    visits: LongArray
    starts: LongArray
    lengths: LongArray
    operators: LongArray
    messages: LongArray


@dataclass(frozen=True)
class Graph:
    """All steps of a job side by side; visits and operators are numbered through.

    `rank` and `step` (V,) are positions in `ranks` and among the steps. `after`, `join`, `sender` and
    `receiver` (V,) are visits, V where there is none (V + 1 for `join`). `own_us` is what a receive takes
    once its message is there, NaN where a visit takes the operator's transfer. `waits_for_receiver`
    marks sends that do not return before the receiver has come. Operators: (O,). `measured_us` is
    (steps, ranks).
    """

    ranks: IntArray
    n_steps: int
    rank: LongArray
    step: LongArray
    operator: LongArray
    after: LongArray
    join: LongArray
    sender: LongArray
    receiver: LongArray
    gap_us: FloatArray
    elapse_us: FloatArray
    own_us: FloatArray
    is_side: BoolArray
    is_p2p: BoolArray
    waits_for_receiver: BoolArray
    transfer_us: FloatArray
    operator_step: LongArray
    operator_group: LongArray
    operator_type: LongArray
    operator_place: LongArray
    operator_bytes: FloatArray
    operator_n_ranks: LongArray
    groups: tuple[str, ...]
    types: tuple[str, ...]
    measured_us: FloatArray
    levels: tuple[Level, ...]
    first_step_leads: bool = True

    @property
    def begins(self) -> BoolArray:
        """Visits of the main stream without a predecessor: the gap before them is the begin of the step."""
        return np.asarray((self.after == len(self.rank)) & ~self.is_side)

    def replay(
        self,
        gap_us: FloatArray | None = None,
        transfer_us: FloatArray | None = None,
        lead: FloatArray | None = None,
    ) -> FloatArray:
        """Return the step times in µs, (n_steps,), or (K, n_steps) for K scenarios at once.

        A step's time is from the last rank's end of the step before to the last rank's end. Ranks that
        end a step early begin the next one early: the lead is carried over. The first step has the lead
        that its own end shows, or none with `first_step_leads` off (all ranks began together).

        Args:
            gap_us: local times (V,) or (K, V); None for the measured ones.
            transfer_us: transfer times (O,) or (K, O); None for the measured ones.
            lead: a first guess of the ranks' leads (steps, ranks).
        """
        gap = self.gap_us if gap_us is None else gap_us
        transfer = self.transfer_us if transfer_us is None else transfer_us
        times: FloatArray = self.rank_ends(np.atleast_2d(gap), np.atleast_2d(transfer), lead).max(axis=2)
        is_single = gap.ndim == 1 and transfer.ndim == 1
        return times[0] if is_single else times

    def rank_ends(self, gap: FloatArray, transfer: FloatArray, lead: FloatArray | None = None) -> FloatArray:
        """Return each rank's end of each step, µs after the last rank's end of the step before.

        The result is (K, steps, ranks).

        Args:
            gap: local times (K or 1, V).
            transfer: transfer times (K or 1, O).
            lead: a first guess of the ranks' leads (steps, ranks), see `leads`.
        """
        n_scenarios = max(len(gap), len(transfer))
        shape = (n_scenarios, self.n_steps, len(self.ranks))
        begins = np.flatnonzero(self.after == len(self.rank))
        cell = self.step * len(self.ranks) + self.rank
        order = np.argsort(cell, kind="stable")
        present, begin_of = np.unique(cell[order], return_index=True)
        now = np.zeros(shape) if lead is None else np.broadcast_to(lead, shape)
        ends = np.full((n_scenarios, self.n_steps * len(self.ranks)), -np.inf)
        for _ in range(_CARRY_ROUNDS):
            moved = np.repeat(gap, n_scenarios // len(gap), axis=0)
            moved[:, begins] += now[:, self.step[begins], self.rank[begins]]
            by_visit = self.visit_ends(moved, transfer)[:, order]
            ends[:, present] = np.maximum.reduceat(by_visit, begin_of, axis=1)
            before, now = now, self.leads(ends.reshape(shape))
            if float(np.abs(now - before).max(initial=0.0)) < _SETTLED_US:
                break
        return ends.reshape(shape)

    def leads(self, ends: FloatArray) -> FloatArray:
        """Return how early each rank begins each step, from its end of the step before; not above 0."""
        late = np.where(np.isfinite(ends), ends - ends.max(axis=2, keepdims=True), 0.0)
        first = late[:, :1] if self.first_step_leads else np.zeros_like(late[:, :1])
        return np.concatenate([first, late[:, :-1]], axis=1)

    def visit_ends(self, gap: FloatArray, transfer: FloatArray) -> FloatArray:
        """Return when each visit ends, µs since the begin of its step: (K, V) for gaps (K or 1, V)."""
        n_scenarios = max(len(gap), len(transfer))
        n_visits = len(self.rank)
        # The last two columns stand for "from the begin of the step" and "waits for nothing".
        end = np.zeros((n_scenarios, n_visits + 2))
        end[:, n_visits + 1] = -np.inf
        for level in self.levels:
            arrive = self._arrive(end, gap, level.visits)
            latest = np.maximum.reduceat(arrive, level.starts, axis=1) + transfer[:, level.operators]
            end[:, level.visits] = np.repeat(latest, level.lengths, axis=1)
            if len(level.messages):
                self._end_messages(end, gap, transfer, level.messages)
        return end[:, :n_visits]

    def visit_times(self, gap: FloatArray, transfer: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return when each visit ends and when its rank comes to it: (K, V) each, as `visit_ends`."""
        end = self.visit_ends(gap, transfer)
        none = np.zeros((len(end), 1))
        padded = np.concatenate([end, none, none - np.inf], axis=1)
        return end, self._arrive(padded, gap, np.arange(len(self.rank)))

    def _arrive(self, end: FloatArray, gap: FloatArray, visits: LongArray) -> FloatArray:
        begun, joined, own = end[:, self.after[visits]], end[:, self.join[visits]], gap[:, visits]
        side = self.is_side[visits]
        if side.any():
            return np.where(side, np.maximum(begun + own, joined), np.maximum(begun, joined) + own)
        arrive: FloatArray = np.maximum(begun, joined) + own
        return arrive

    def _end_messages(
        self, end: FloatArray, gap: FloatArray, transfer: FloatArray, visits: LongArray
    ) -> None:
        moved = transfer[:, self.operator[visits]]
        own = self.own_us[visits]
        until = self._arrive(end, gap, visits) + np.where(np.isfinite(own), np.nan_to_num(own), moved)
        for others, counts in (
            (self.sender[visits], np.ones(len(visits), bool)),
            (self.receiver[visits], self.waits_for_receiver[visits]),
        ):
            paired = np.flatnonzero((others < len(self.rank)) & counts)
            if len(paired):
                arrived = self._arrive(end, gap, others[paired]) + moved[:, paired]
                until[:, paired] = np.maximum(until[:, paired], arrived)
        end[:, visits] = until
