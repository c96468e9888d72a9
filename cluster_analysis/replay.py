"""Gap replay: run a job again on paper with some local times or transfers changed.

A rank's clock advances by its local gaps; an operator ends for all its members when the last one has
come, plus its transfer time. Changing gaps or transfers and running again gives the step time that
would have been, waiting included. No clock of one host is ever compared with another's.

Sends that return before the receiver is there are told from those that wait by their own elapsed
times: an eager send takes the same time whatever the receiver does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cluster_analysis.evidence import BoolArray, FloatArray, IntArray, StepOperators

LongArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Level:
    """Operators that can be replayed together: their visits in operator order, and where each one begins."""

    visits: LongArray
    starts: LongArray
    lengths: LongArray
    operators: LongArray


@dataclass(frozen=True)
class Graph:
    """All steps of a job side by side; visits and operators are numbered through.

    `rank` is the position in `ranks`, `step` the position of the step. `begins` are visits without a
    predecessor. `eager` marks operators whose sender does not wait. (V,) and (O,) as in StepOperators.
    """

    ranks: IntArray
    n_steps: int
    rank: LongArray
    step: LongArray
    operator: LongArray
    after: LongArray
    join: LongArray
    gap_us: FloatArray
    elapse_us: FloatArray
    is_side: BoolArray
    is_send: BoolArray
    is_receive: BoolArray
    transfer_us: FloatArray
    fixed_us: FloatArray
    operator_step: LongArray
    operator_group: LongArray
    operator_type: LongArray
    operator_place: LongArray
    operator_bytes: FloatArray
    operator_n_ranks: LongArray
    is_eager: BoolArray
    latency_us: FloatArray
    groups: tuple[str, ...]
    types: tuple[str, ...]
    measured_us: FloatArray
    levels: tuple[_Level, ...]

    def replay(self, gap_us: FloatArray | None = None, transfer_us: FloatArray | None = None) -> FloatArray:
        """Return the step times in µs, (n_steps,), or (K, n_steps) for K scenarios at once.

        Args:
            gap_us: local times (V,) or (K, V); None for the measured ones.
            transfer_us: transfer times (O,) or (K, O); None for the measured ones.
        """
        gap = self.gap_us if gap_us is None else gap_us
        transfer = self.transfer_us if transfer_us is None else transfer_us
        is_single = gap.ndim == 1 and transfer.ndim == 1
        end = self.visit_ends(np.atleast_2d(gap), np.atleast_2d(transfer))
        times = np.zeros((len(end), self.n_steps))
        order = np.argsort(self.step, kind="stable")
        bounds = np.searchsorted(self.step[order], np.arange(self.n_steps))
        filled = np.bincount(self.step, minlength=self.n_steps) > 0
        if filled.any():
            times[:, filled] = np.maximum.reduceat(end[:, order], bounds[filled], axis=1)
        return times[0] if is_single else times

    def visit_ends(self, gap: FloatArray, transfer: FloatArray) -> FloatArray:
        """Return when each visit ends, µs since the begin of its step: (K, V) for gaps (K or 1, V)."""
        n_scenarios = max(len(gap), len(transfer))
        end = np.zeros((n_scenarios, len(self.rank) + 1))  # the last column stands for "no predecessor"
        for level in self.levels:
            visits = level.visits
            begun, joined = end[:, self.after[visits]], end[:, self.join[visits]]
            own = gap[:, visits]
            side = self.is_side[visits]
            arrive = np.where(side, np.maximum(begun + own, joined), np.maximum(begun, joined) + own)
            latest = np.maximum.reduceat(arrive, level.starts, axis=1) + transfer[:, level.operators]
            ends = np.repeat(latest, level.lengths, axis=1)
            eager = np.repeat(self.is_eager[level.operators], level.lengths)
            if eager.any():
                ends = self._eager_ends(level, arrive, transfer, ends, eager)
            alone = np.repeat(np.isfinite(self.fixed_us[level.operators]), level.lengths)
            end[:, visits] = np.where(alone, arrive + self.elapse_us[visits], ends)
        return end[:, :-1]

    def _eager_ends(
        self, level: _Level, arrive: FloatArray, transfer: FloatArray, ends: FloatArray, eager: BoolArray
    ) -> FloatArray:
        """Ends where the sender goes on at once and the receiver waits for the message."""
        send = self.is_send[level.visits]
        sent = np.maximum.reduceat(np.where(send, arrive, -np.inf), level.starts, axis=1)
        sent = np.repeat(sent + transfer[:, level.operators], level.lengths, axis=1)
        latency = np.repeat(self.latency_us[level.operators], level.lengths)
        own = np.where(send, arrive + self.elapse_us[level.visits], np.maximum(arrive, sent + latency))
        return np.where(eager, own, ends)


def build_graph(steps: Sequence[StepOperators]) -> Graph | None:
    """Lay the steps side by side; None when there is no operator to replay."""
    usable = [step for step in steps if step.n_visits]
    if not usable:
        return None
    ranks = np.unique(np.concatenate([step.ranks for step in usable]))
    groups = tuple(sorted({group for step in usable for group in step.groups}))
    types = tuple(sorted({name for step in usable for name in step.types}))
    visit_base = np.r_[0, np.cumsum([step.n_visits for step in steps])]
    operator_base = np.r_[0, np.cumsum([len(step.operator_group) for step in steps])]
    n_visits = int(visit_base[-1])

    def visits(name: str) -> npt.NDArray[np.float64]:
        return np.concatenate([getattr(step, name) for step in steps])

    def shifted(name: str, base: LongArray, missing: int) -> LongArray:
        parts = [getattr(step, name).astype(np.int64) for step in steps]
        return np.concatenate(
            [np.where(part >= 0, part + start, missing) for part, start in zip(parts, base, strict=False)]
        )

    def renamed(name: str, own: str, names: tuple[str, ...]) -> LongArray:
        position = {text: place for place, text in enumerate(names)}
        return np.concatenate(
            [
                np.array([position[text] for text in getattr(step, own)] or [0])[getattr(step, name)]
                for step in steps
            ]
        ).astype(np.int64)

    measured = np.full((len(steps), len(ranks)), np.nan)
    for number, step in enumerate(steps):
        measured[number, np.searchsorted(ranks, step.ranks)] = step.step_us
    rank = np.concatenate(
        [np.searchsorted(ranks, step.ranks)[step.visit_rank] if step.n_visits else [] for step in steps]
    ).astype(np.int64)
    operator = shifted("visit_operator", operator_base, -1)
    after, join = (shifted(name, visit_base, n_visits) for name in ("visit_after", "visit_join"))
    elapse = visits("visit_elapse_us")
    is_send, is_receive = visits("visit_is_send").astype(bool), visits("visit_is_receive").astype(bool)
    transfer = visits("operator_transfer_us")
    n_members = np.bincount(operator, minlength=len(transfer))
    parts = {
        "operator_group": renamed("operator_group", "groups", groups),
        "operator_type": renamed("operator_type", "types", types),
    }
    directed = np.bincount(operator, is_send | is_receive, len(transfer)) > 0
    transfer, eager, latency = _eager(
        operator, elapse, is_send, is_receive, directed, n_members, parts["operator_group"], transfer
    )
    # A send or receive whose other end is not among the files lasts as long as it did.
    fixed = np.where(directed & (n_members < 2), transfer, np.nan)
    return Graph(
        ranks=ranks.astype(np.int32),
        n_steps=len(steps),
        rank=rank,
        step=np.repeat(np.arange(len(steps)), np.diff(visit_base)),
        operator=operator,
        after=after,
        join=join,
        gap_us=np.nan_to_num(visits("visit_gap_us")),
        elapse_us=elapse,
        is_side=visits("visit_is_side").astype(bool),
        is_send=is_send,
        is_receive=is_receive,
        transfer_us=transfer,
        fixed_us=fixed,
        operator_step=np.repeat(np.arange(len(steps)), np.diff(operator_base)),
        operator_place=visits("operator_place").astype(np.int64),
        operator_bytes=visits("operator_bytes"),
        operator_n_ranks=n_members,
        is_eager=eager,
        latency_us=latency,
        groups=groups,
        types=types,
        measured_us=measured,
        levels=_levels(operator, after, join, len(transfer)),
        **parts,
    )


def _eager(
    operator: LongArray,
    elapse: FloatArray,
    is_send: BoolArray,
    is_receive: BoolArray,
    directed: BoolArray,
    n_members: LongArray,
    group: LongArray,
    transfer: FloatArray,
) -> tuple[FloatArray, BoolArray, FloatArray]:
    """Tell sends that go on at once from those that wait, job-wide, and set their transfer times.

    With an eager sender the message takes the send's own time; a waiting receiver ends with it.
    """
    n = len(transfer)
    latency = np.zeros(n)
    paired = directed & (n_members == 2)
    if not paired.any():
        return transfer, np.zeros(n, bool), latency
    sends = is_send & paired[operator]
    send_elapse = np.zeros(n)
    send_elapse[operator[sends]] = elapse[sends]
    receives = is_receive & paired[operator]
    receive_elapse = np.zeros(n)
    receive_elapse[operator[receives]] = elapse[receives]
    # Where the receiver waits the send is short; rendezvous sends wait whenever it is the receiver
    # that comes late, and then both last longer than the transfer.
    typical = float(np.median(send_elapse[paired]))
    spread = float(np.percentile(send_elapse[paired], 95))
    is_eager = paired & (spread < 3.0 * max(typical, 1.0))
    return np.where(is_eager, send_elapse, transfer), is_eager, latency


def _levels(operator: LongArray, after: LongArray, join: LongArray, n_operators: int) -> tuple[_Level, ...]:
    """Topological order in layers. Operators in a circle (matched wrongly) are left out."""
    n_visits = len(operator)
    sources = np.concatenate([after, join])
    targets = np.concatenate([operator, operator])
    real = sources < n_visits
    sources, targets = operator[sources[real]], targets[real]
    waits = np.bincount(targets, minlength=n_operators)
    by_source = np.argsort(sources, kind="stable")
    sources, targets = sources[by_source], targets[by_source]
    begin = np.searchsorted(sources, np.arange(n_operators + 1))
    by_operator = np.argsort(operator, kind="stable")
    visit_begin = np.searchsorted(operator[by_operator], np.arange(n_operators + 1))
    levels: list[_Level] = []
    ready = np.flatnonzero(waits == 0)
    while len(ready):
        lengths = visit_begin[ready + 1] - visit_begin[ready]
        visits = by_operator[_ranges(visit_begin[ready], lengths)]
        levels.append(_Level(visits, np.r_[0, np.cumsum(lengths)[:-1]], lengths, ready))
        released = targets[_ranges(begin[ready], begin[ready + 1] - begin[ready])]
        np.subtract.at(waits, released, 1)
        ready = np.unique(released[waits[released] == 0])
    return tuple(levels)


def _ranges(starts: LongArray, lengths: LongArray) -> LongArray:
    """Concatenate arange(start, start + length) of each pair."""
    total = int(lengths.sum())
    if not total:
        return np.empty(0, np.int64)
    offsets = np.repeat(starts - np.r_[0, np.cumsum(lengths)[:-1]], lengths)
    return offsets + np.arange(total)
