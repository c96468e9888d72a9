"""A suspect: what a detector hands over before anybody has computed what it costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from cluster_analysis.judge.measures.transfers import Mended
from cluster_analysis.numeric.arrays import FloatArray
from cluster_analysis.numeric.tails import over_looks
from cluster_analysis.replay.replay import Graph
from cluster_analysis.thresholds.common import FEWEST_PEERS, HALFWAY, MOSTLY
from cluster_run.facts import Fact, fact
from cluster_run.findings import Cause, Confidence, Evidence, Link, Pattern
from cluster_run.ids import HostId, Rank
from cluster_run.kinds import KINDS, Kind, KindRecord

#: Where the excess lies: everywhere, or in pauses of one gap each.
Where = Literal["spread", "pauses"]


class Suspect(Struct, frozen=True):
    """One hypothesis.

    `step_positions` are the steps that show it, None for all. `excess_us` (R, S) is the local time that would
    go away, `head_us` (R, S) what of it lies before a step's first operator. `link_factor` (O,) is the part
    of each operator's transfer that would remain once `mended` links are healthy: less together with other
    suspects. Only an alarm may become more than information. `p_value` is how probable such a suspect is in a
    healthy job, over all ranks or hosts that were compared. `metric` names the local time that is too long.
    `facts` are what reports make sentences of; `separable` is false where the traffic cannot tell it from a
    neighbouring part.
    """

    key: str
    kind: Kind
    evidence: tuple[Evidence, ...]
    step_positions: tuple[int, ...] | None = None
    ranks: tuple[Rank, ...] = ()
    hosts: tuple[HostId, ...] = ()
    cause: Cause = "unknown"
    pattern: Pattern = "persistent"
    facts: tuple[Fact, ...] = ()
    confidence: Confidence = "high"
    excess_us: FloatArray | None = None
    head_us: FloatArray | None = None
    where: Where = "spread"
    links: tuple[Link, ...] = ()
    link_factor: FloatArray | None = None
    mended: Mended | None = None
    is_alarm: bool = True
    p_value: float = 0.0
    separable: bool = True
    metric: str = ""

    @property
    def record(self) -> KindRecord:
        """The record of its kind."""
        return KINDS[self.kind]

    @property
    def is_slow_host(self) -> bool:
        """Whether a host is late by itself: its ranks are no peers of others."""
        return self.record.subject == "host"

    @property
    def is_late(self) -> bool:
        """Whether it idles too long, and does not compute too long."""
        return self.cause in ("dispatch", "input")

    @property
    def lost_us(self) -> FloatArray | None:
        """The most that any of its ranks loses in each step (S,); None where no local time is too long."""
        return None if self.excess_us is None else np.asarray(self.excess_us.max(axis=0))

    def most_us(self, graph: Graph | None) -> float:
        """The most that it may cost in the mean step, without any replay; infinite if that is not known.

        Local time that is too long, on the rank that loses most; transfers that the busiest rank would save.
        """
        lost_us = None if self.lost_us is None else float(self.lost_us.mean())
        if self.link_factor is not None and graph is not None:
            return float(graph.saved_us(self.link_factor).max(axis=0).mean()) + (lost_us or 0.0)
        return np.inf if lost_us is None else lost_us

    def positions(self, n_steps: int) -> tuple[int, ...]:
        """Positions of the steps that show it, out of `n_steps`."""
        return tuple(range(n_steps)) if self.step_positions is None else self.step_positions


def most_significant(suspects: Sequence[Suspect], n_looks: int = 1) -> list[Suspect]:
    """Keep one suspect a key, the most significant alarm, where several measures found the same thing.

    Among `n_looks` places of a step it was looked for. Of totals and kernels the less probable one counts.
    """
    found: dict[str, list[Suspect]] = {}
    for one in sorted(suspects, key=lambda suspect: (not suspect.is_alarm, suspect.p_value)):
        found.setdefault(one.key, []).append(one)
    return [
        replace(some[0], p_value=over_looks([one.p_value for one in some[:n_looks]], n_looks))
        for some in found.values()
    ]


def hosts_or_their_ranks(suspects: Sequence[Suspect]) -> list[Suspect]:
    """Keep the less probable of each host that may be slow and its ranks that are slow beyond it.

    If most of its ranks are slow, they are one finding: half a host is as improbable as each of them.
    """
    gone, hosts = set[int](), dict[int, Suspect]()
    ranks = [one for one in suspects if one.record.is_fault and one.record.subject == "rank"]
    for host in (one for one in suspects if one.is_slow_host):
        own = [one for one in ranks if one.metric == host.metric and set(one.ranks) <= set(host.ranks)]
        are_most = len(own) > HALFWAY * len(host.ranks)
        is_surer = any(one.is_alarm and one.p_value < host.p_value for one in own) and not are_most
        gone |= {id(host)} if is_surer else {id(one) for one in own}
        if are_most:
            middle = sorted(one.p_value for one in own)[len(own) // 2]
            hosts[id(host)] = replace(host, p_value=min(host.p_value, middle))
    return [hosts.get(id(one), one) for one in suspects if id(one) not in gone]


def with_alike_as_one(suspects: Sequence[Suspect], n_hosts: int) -> list[Suspect]:
    """Put one finding in the place of several that are late alike: for input, or hosts that compute slowly.

    That each has a fault of its own is less probable than that what they share is late, or slow; and each
    hides the others. Two slow hosts may have a fault each; half of all may be of another kind: no alarm.
    """
    late = _alike([one for one in suspects if one.record.is_fault and one.cause == "input"], HALFWAY)
    if len({one.key for one in late}) > 1:
        shared, suspects = _joined(late, suspects)
        said = fact("inputs_late", ranks=shared.ranks, more_us=max(one.most_us(None) for one in late))
        shared = replace(shared, key="input_bound-shared", kind="input_bound", separable=False, facts=(said,))
        suspects = [shared, *suspects]
    slow = _alike([one for one in suspects if one.is_slow_host and one.cause == "compute"], MOSTLY)
    if len(slow) > 1:
        shared, suspects = _joined(slow, suspects)
        slower = float(np.median([one.evidence[0].beyond_share for one in slow]))
        said = fact("hosts_alike", hosts=shared.hosts, slower_share=slower, n_hosts=n_hosts)
        is_alarm = shared.is_alarm and len(slow) < HALFWAY * n_hosts
        shared = replace(shared, key="slow_host-alike", is_alarm=is_alarm, facts=(said,))
        each = [replace(one, facts=(*one.facts, said)) for one in slow]
        suspects = [*(each if len(slow) < FEWEST_PEERS else [shared]), *suspects]
    return list(suspects)


def _alike(suspects: Sequence[Suspect], share: float) -> list[Suspect]:
    """Those that lose at least a share of what any loses."""
    most_us = max((one.most_us(None) for one in suspects), default=0.0)
    return [one for one in suspects if one.most_us(None) >= share * most_us]


def _joined(some: Sequence[Suspect], suspects: Sequence[Suspect]) -> tuple[Suspect, list[Suspect]]:
    """The first of `some` with the ranks and hosts of all, and what they lose together; and all others."""
    gone, by_rank = {id(one) for one in some}, sorted(some, key=lambda one: one.ranks)
    excess_us, head_us = (
        np.max(known, axis=0) if (known := [part for part in parts if part is not None]) else None
        for parts in ([one.excess_us for one in some], [one.head_us for one in some])
    )
    shared = replace(
        some[0], excess_us=excess_us, head_us=head_us,
        ranks=tuple(sorted({rank for one in some for rank in one.ranks})),
        hosts=tuple(dict.fromkeys(host for one in by_rank for host in one.hosts)),
        is_alarm=any(one.is_alarm for one in some), p_value=min(one.p_value for one in some),
    )  # fmt: skip
    return shared, [one for one in suspects if id(one) not in gone]
