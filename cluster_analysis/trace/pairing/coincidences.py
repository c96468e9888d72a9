"""Which calls of two stages end together, up to one shift of their clocks: the trace that a message leaves.

Nobody leaves an exchange before the other has come, and a receiver leaves when its message is there. So
the ends of a message mostly coincide, and the difference of two clocks is where most differences of ends
lie close together. Coincidences in several replicas are the program; a single one may be an accident.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
from msgspec import Struct

from cluster_analysis.numeric.arrays import BoolArray, FloatArray, IntArray
from cluster_analysis.numeric.stats import MAD_TO_SIGMA
from cluster_analysis.thresholds.calls import (
    BEGUN_SHARE,
    CONNECTED_US,
    EDGE_LOSS_SHARE,
    EVIDENT_ODDS,
    LEAST_EVIDENCE_SHARE,
    LEAST_TOLERANCE_US,
    LONG_FACTOR,
    MOST_SIGMA,
    MOST_TOO_EARLY_SHARE,
    QUICK_QUANTILE,
    WIDTHS_US,
)
from cluster_analysis.thresholds.common import HALFWAY
from cluster_analysis.trace.calls import Calls
from cluster_analysis.trace.pairing.slots import BATCH, RECEIVE, SEND, Family


class Clocks(Struct, frozen=True):
    """How long targets end after their sources' end, and after their begin, each with its spread, in µs.

    Each is two arrays (groups,); None where the sources' ends, or begins, tell nothing.
    """

    ended: tuple[FloatArray, FloatArray] | None
    begun: tuple[FloatArray, FloatArray] | None


class Votes(Struct, frozen=True):
    """How often two slots' calls end together, (E,) edges from slot `source` to slot `target`.

    `weight` is up to 1 for each replica. `clocks` are by (source stage, target stage) where they tell.
    """

    source: IntArray
    target: IntArray
    weight: FloatArray
    clocks: dict[tuple[int, int], Clocks]
    n_groups: int

    def evidence(self, edges: tuple[IntArray, IntArray]) -> float:
        """Return the weight of messages from source to target slots, all together."""
        n = 1 + max(int(one.max(initial=0)) for one in (self.source, self.target, *edges))
        is_one = np.isin(self.source * n + self.target, edges[0] * n + edges[1])
        return float(self.weight[is_one].sum())


class Sample(Struct, frozen=True):
    """Some groups of a family on one clock: `start_us` and `end_us` (groups, slots), NaN where lost.

    Without `starts_agree` only the ends of a rank's calls are compared with those of others.
    """

    family: Family
    start_us: FloatArray
    end_us: FloatArray
    is_connected: BoolArray
    starts_agree: bool = True


def some_groups(family: Family, n_groups: int) -> IntArray:
    """Return at most `n_groups` groups of a family, evenly over all."""
    return np.unique(np.linspace(0, len(family.table) - 1, n_groups).astype(np.int64))


def sample_of(
    calls: Calls, family: Family, offset_us: FloatArray, part: IntArray, chosen: IntArray
) -> Sample:
    """Lay some groups on one clock.

    Args:
        offset_us: what to add to each rank's clock to compare it with others (ranks,).
        part: ranks that collectives connect have the same number (ranks,).
        chosen: which groups.
    """
    table = family.table[chosen]
    shift = offset_us[calls.rank[table]]
    is_lost = table < 0
    start = np.where(is_lost, np.nan, calls.start_us[table] + shift)
    end = np.where(is_lost, np.nan, calls.end_us[table] + shift)
    ranks = family.ranks[chosen]
    is_connected = ((ranks < 0) | (part[ranks] == part[ranks.max(axis=1)][:, None])).all(axis=1)
    laid = Family(table, family.stage, family.kind, ranks)
    return Sample(laid, start, end, is_connected, calls.starts_agree)


def votes_of(sample: Sample, allowed: BoolArray) -> Votes:
    """Find which slots' ends coincide, over all pairs of stages.

    Args:
        allowed: stages that each slot may talk with (slots, stages).
    """
    found: list[tuple[IntArray, IntArray, FloatArray]] = []
    clocks: dict[tuple[int, int], Clocks] = {}
    pairs = list(permutations(range(sample.family.n_stages), 2))
    talking = {pair: _talking(sample.family, *pair, allowed) for pair in pairs}
    for s, t in pairs:
        seen = _between(sample, talking[s, t], talking[t, s])
        if seen is not None:
            found.append(seen[:3])
            clocks[s, t] = seen[3]
    if not found:
        nothing = np.empty(0, np.int64)
        return Votes(nothing, nothing, np.empty(0), clocks, len(sample.end_us))
    source, target, weight = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return Votes(source, target, weight, clocks, len(sample.end_us))


def _between(
    sample: Sample, there: tuple[IntArray, IntArray], back: tuple[IntArray, IntArray]
) -> tuple[IntArray, IntArray, FloatArray, Clocks] | None:
    """Votes for messages from one stage to another, with the clocks; slots that talk `there` and `back`."""
    family = sample.family
    sources, targets = there
    if not len(sources) or not len(targets) or np.isnan(sample.end_us[:, targets]).all():
        return None
    # Two exchanges show the same in both directions: counted twice it would seem more evident than it is.
    back_sources, back_targets = (one[family.kind[one] != BATCH] for one in back)
    ended = _meeting(sample, sample.end_us, sources, targets, (back_sources, back_targets))
    # A call that sends may then wait for something else: its begin is evidence, not its end.
    begun = None
    if sample.starts_agree and (family.kind[sources] == BATCH).any():
        begun = _meeting(sample, sample.start_us, sources, targets)
    weight = np.zeros((len(sources), len(targets)))
    ends = sample.end_us[:, targets]
    spacing_us = float(np.nanmax(ends) - np.nanmin(ends)) / len(targets)
    elapse = sample.end_us - sample.start_us
    for since_us, clock in ((sample.end_us, ended), (sample.start_us, begun)):
        if clock is None:
            continue
        shift, tolerance = (one[:, None, None] for one in clock)
        off = np.abs(sample.end_us[:, None, targets] - since_us[:, sources, None] - shift)
        # A message is not received before it is sent.
        lasts = sample.end_us[:, None, targets] - sample.start_us[:, sources, None] - shift
        lasted = np.broadcast_to(elapse[:, None, targets], off.shape)
        if clock is ended:
            lasted = np.fmax(elapse[:, sources, None], lasted)
        # Short calls may end together by chance: a call that waited long waited for something.
        evidence = LEAST_EVIDENCE_SHARE + (1.0 - LEAST_EVIDENCE_SHARE) * lasted / (
            lasted + LONG_FACTOR * tolerance
        )
        # And the closer ends lie together, compared with how far they usually are apart, the more that tells.
        evidence = evidence * np.log1p(spacing_us / tolerance) / np.log1p(spacing_us / LEAST_TOLERANCE_US)
        near = (off <= tolerance) & ((lasts >= -tolerance) | (not sample.starts_agree))
        own = np.where(near, evidence * (1.0 - EDGE_LOSS_SHARE * off / tolerance), 0.0).sum(axis=0)
        weight = np.maximum(weight, own if clock is ended else BEGUN_SHARE * own)
    i, j = np.nonzero(weight)
    return sources[i], targets[j], weight[i, j], Clocks(ended, begun)


def _talking(family: Family, s: int, t: int, allowed: BoolArray) -> tuple[IntArray, IntArray]:
    """Slots of stage s that may send to stage t, and those of t that may receive from it."""
    sources = np.flatnonzero((family.stage == s) & (family.kind != RECEIVE))
    targets = np.flatnonzero((family.stage == t) & (family.kind != SEND))
    return sources[allowed[sources, t]], targets[allowed[targets, s]]


def _meeting(
    sample: Sample, since_us: FloatArray, sources: IntArray, targets: IntArray,
    back: tuple[IntArray, IntArray] | None = None,
) -> tuple[FloatArray, FloatArray] | None:  # fmt: skip
    """How long after its source's end, or begin, a target usually ends, with the spread, by group.

    Two clocks have one shift: `back`, the slots that talk the other way, must show the same one.
    """
    apart = sample.end_us[:, None, targets] - since_us[:, sources, None]
    other = np.empty((len(apart), 0, 0))
    if back is not None and len(back[0]) and len(back[1]):
        other = since_us[:, back[0], None] - sample.end_us[:, None, back[1]]
    shift, tolerance = np.full(len(apart), np.nan), np.full(len(apart), np.nan)
    together = np.flatnonzero(sample.is_connected)
    lots = [together] if len(together) else []
    lots += [np.array([one]) for one in np.flatnonzero(~sample.is_connected)]
    for lot in lots:
        is_connected = bool(sample.is_connected[lot[0]])
        own = apart[lot].ravel()
        peak = _peak(np.concatenate((own, other[lot].ravel())), is_connected=is_connected)
        if peak is not None and other.size:
            # A message does not take the same time in both directions.
            with np.errstate(invalid="ignore"):
                near = own[np.abs(own - peak[0]) <= WIDTHS_US[-1]]
            peak = _peak(near, is_connected=False) or peak
        if peak is not None:
            shift[lot], tolerance[lot] = peak
    return None if np.isnan(shift).all() else (shift, tolerance)


def _peak(apart: FloatArray, *, is_connected: bool) -> tuple[float, float] | None:
    """Where differences lie closest together, and how close; None: nowhere.

    Collectives say how clocks that they connect stand: of two such places the nearer one tells more.
    """
    values = apart[np.isfinite(apart)]
    if is_connected:
        values = values[np.abs(values) <= CONNECTED_US]
    if not len(values):
        return None
    values = np.sort(values)
    span = 2.0 * CONNECTED_US if is_connected else float(values[-1] - values[0]) + WIDTHS_US[-1]
    best, found = 0.0, None
    position = np.arange(len(values))
    for width in WIDTHS_US:
        count = np.searchsorted(values, values + width, side="right") - position
        expected = max(len(values) * width / span, 1e-9)
        odds = np.where(count > expected, count * np.log(count / expected) - (count - expected), 0.0)
        near = 1.0 - np.abs(values + HALFWAY * width) / span if is_connected else 1.0
        evidence = np.where(odds > EVIDENT_ODDS, odds * near, 0.0)
        at = int(np.argmax(evidence))
        if evidence[at] > best:
            best, found = float(evidence[at]), values[at : at + int(count[at])]
    if found is None:
        return None
    middle = _middle(found)
    scatter = MAD_TO_SIGMA * _middle(np.sort(np.abs(found - middle)))
    return middle, max(MOST_SIGMA * scatter, LEAST_TOLERANCE_US)


def _middle(ordered: FloatArray) -> float:
    """The median of sorted numbers: NumPy's own takes ten times as long for a few."""
    half = len(ordered) // 2
    return float(ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2.0)


def explained(sample: Sample, votes: Votes, edges: tuple[IntArray, IntArray]) -> float:
    """Share of the waiting in receives and exchanges that ends when the other end of the message does.

    Right messages explain all of it, but for hiccups. NaN where nothing waits.

    Args:
        votes: their clocks.
        edges: source and target slots of messages.
    """
    family = sample.family
    is_explained = np.zeros(sample.end_us.shape, bool)
    is_lost = np.zeros(sample.end_us.shape, bool)
    source, target = edges
    is_lost[:, source] |= np.isnan(sample.end_us[:, target])
    is_lost[:, target] |= np.isnan(sample.end_us[:, source])
    for (s, t), clocks in votes.clocks.items():
        here = (family.stage[source] == s) & (family.stage[target] == t)
        a, b = source[here], target[here]
        for clock, since_us in ((clocks.ended, sample.end_us), (clocks.begun, sample.start_us)):
            if clock is None or not len(a):
                continue
            shift, tolerance = (one[:, None] for one in clock)
            near = np.abs(sample.end_us[:, b] - since_us[:, a] - shift) <= tolerance
            is_explained[:, b] |= near
            if clock is clocks.ended:
                is_explained[:, a] |= near
        # Of two exchanges the one that sends may wait for the other as well.
        back = votes.clocks.get((t, s))
        if back is not None and back.begun is not None and len(a):
            shift, tolerance = (one[:, None] for one in back.begun)
            near = np.abs(sample.end_us[:, a] - sample.start_us[:, b] - shift) <= tolerance
            is_explained[:, a] |= near & (family.kind[a] == BATCH) & (family.kind[b] == BATCH)
    if len(source) and _too_early(sample, votes, edges) > MOST_TOO_EARLY_SHARE:
        return 0.0
    waited = np.where((family.kind != SEND) & ~is_lost, _waited_us(sample), 0.0)
    total = float(waited.sum())
    return float(waited[is_explained].sum()) / total if total else float("nan")


def _waited_us(sample: Sample) -> FloatArray:
    """How much longer each call (groups, slots) lasts than the quick ones of its kind; 0 where it is lost.

    A call that sends and receives takes as long as what it sends, whoever comes when.
    """
    elapse = sample.end_us - sample.start_us
    for kind in np.unique(sample.family.kind).tolist():
        own = sample.family.kind == kind
        known = elapse[:, own][np.isfinite(elapse[:, own])]
        elapse[:, own] -= float(np.quantile(known, QUICK_QUANTILE)) if len(known) else 0.0
    return np.asarray(np.maximum(np.nan_to_num(elapse), 0.0))


def _too_early(sample: Sample, votes: Votes, edges: tuple[IntArray, IntArray]) -> float:
    """Share of messages that are received before they are sent."""
    if not sample.starts_agree:
        return 0.0
    stage, (source, target) = sample.family.stage, edges
    shift = np.zeros((len(sample.end_us), len(source)))
    for (s, t), clocks in votes.clocks.items():
        if clocks.ended is not None:
            shift[:, (stage[source] == s) & (stage[target] == t)] = clocks.ended[0][:, None]
    took = sample.end_us[:, target] - sample.start_us[:, source] - np.nan_to_num(shift)
    known = took[np.isfinite(took) & sample.is_connected[:, None]]
    return float(np.mean(known < -WIDTHS_US[-2])) if len(known) else 0.0
