"""Checks before a capture: whose job runs on each host, locks, and captures that others wait for."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from posixpath import join

from cluster_collect.live.common_start import Pace, pace_of
from cluster_collect.live.options import LiveOptions
from cluster_collect.live.outcome import Lost
from cluster_collect.live.sessions import Sessions
from cluster_collect.live.sight import sight_of
from cluster_collect.live.ways.protocol import Way, ranks_of
from cluster_collect.live.ways.registry import WAYS
from cluster_collect.live.whose import Target, decide
from cluster_collect.spec import HostSpec
from cluster_run.ids import HostId, format_number_ranges


@dataclass
class Prepared:
    """A capture's hosts and the job on them. `holders` are the hosts that send, by those they send for."""

    id: str
    sessions: Sessions
    targets: Mapping[HostId, Target]
    ways: Mapping[HostId, Way]
    bases: Mapping[HostId, str]
    holders: Mapping[HostId, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    #: Told the seconds that the job ran captured, once a capture.
    spent: Callable[[float], None] = lambda _: None

    def group(self, host: HostId) -> str:
        """Return the host that sends for this one."""
        return self.holders.get(host, str(host))

    def asked_for(self, ranks: frozenset[int] | None) -> tuple[HostId, ...]:
        """Return the hosts that have a part in a capture of some ranks, or send for one that has."""
        meant = {
            self.group(host)
            for host in self.sessions.hosts
            if ranks is None or ranks_of(self.targets[host], ranks)
        }
        return tuple(host for host in self.sessions.hosts if self.group(host) in meant)

    def directories(self, name: str) -> Mapping[HostId, str]:
        """Return where each host's captures go; the same where hosts share a file."""
        of_group = {self.group(host): join(base, self.id, name) for host, base in self.bases.items()}
        return {host: of_group[self.group(host)] for host in self.bases}


async def found(sessions: Sessions, specs: Mapping[HostId, HostSpec], options: LiveOptions) -> Prepared:
    """Find the job on every host; hosts where it is in doubt are lost. Nothing is asked of it.

    Raises:
        NotCapturedError: too few hosts are left.
    """

    async def look(host: HostId) -> object:
        return await sessions.by_host[host].ask("look")

    answers = await sessions.each("unreachable", look)
    decision = decide((sight_of(host, answer) for host, answer in answers.items()), options.job, options.via)
    for host, refusal in decision.refusals.items():
        sessions.lose(host, refusal)
    sessions.require()
    targets = {host: decision.targets[host] for host in sessions.hosts}
    ways = {host: WAYS[one.way](sessions.by_host[host], one, options) for host, one in targets.items()}
    bases = {host: _base(one, specs[host], options) for host, one in targets.items()}
    run_id = f"live-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
    return Prepared(run_id, sessions, targets, ways, bases, notes=_notes(targets))


def _notes(targets: Mapping[HostId, Target]) -> tuple[str, ...]:
    """Return the notes on ranks of the job that are on no host here."""
    processes = [one for target in targets.values() for one in target.ranks]
    n_ranks = max((one.n_ranks for one in processes if one.n_ranks is not None), default=0)
    absent = set(range(n_ranks)) - {one.rank for one in processes}
    if not absent:
        return ()
    return (f"ranks {format_number_ranges(absent)} of the job are on none of these hosts",)


def _base(target: Target, spec: HostSpec, options: LiveOptions) -> str:
    """Return where captures of a host go: the same directory every time, as the job sees it."""
    base = options.directory or spec.local or spec.profiler_root
    return base if base.startswith("/") else target.ranks[0].configuration or target.ranks[0].directory


async def held(prepared: Prepared) -> None:
    """Take the locks, and check that no other capture is waiting.

    Raises:
        NotCapturedError: too few hosts are left.
    """
    sessions, ways = prepared.sessions, prepared.ways
    prepared.holders = await sessions.each("held", lambda host: ways[host].hold(prepared.id))
    sessions.require()
    pending = await sessions.each("other", lambda host: ways[host].pending())
    for host, what in pending.items():
        if what:
            advice = (
                "wait for it; where it is left over in a file, write start_step 0 there and call this again"
            )
            sessions.lose(host, Lost("other", what, advice))
    sessions.require()


async def made(prepared: Prepared) -> None:
    """Make the directories of the capture, of the job's own user.

    Raises:
        NotCapturedError: too few hosts are left.
    """

    async def make(host: HostId) -> None:
        target = prepared.targets[host]
        like = (
            target.configuration if target.ranks[0].configuration else target.root + target.ranks[0].directory
        )
        directory = target.root + join(prepared.bases[host], prepared.id)
        await prepared.sessions.by_host[host].ask("make", directory=directory, like=like)

    await prepared.sessions.each("refused", make)
    prepared.sessions.require()


async def peeked(prepared: Prepared) -> Mapping[HostId, Pace]:
    """Return the paces that are known without asking the job anything."""
    readings = await prepared.sessions.each("no_step", lambda host: prepared.ways[host].peek())
    paces = {}
    for host, reading in readings.items():
        try:
            paces[host] = pace_of(reading.points, reading.poll_s)
        except (ValueError, IndexError):
            continue
    return paces


async def earlier_bytes(prepared: Prepared) -> float:
    """Return the bytes a rank and step of the largest capture from before, 0 without any."""

    async def one(host: HostId) -> Sequence[float]:
        directory = prepared.targets[host].root + prepared.bases[host]
        there = await prepared.sessions.by_host[host].ask("captures", directory=directory)
        return [capture["n_bytes"] / len(capture["steps"]) for capture in there if capture["steps"]]

    of_hosts = await prepared.sessions.each("unreachable", one)
    return max((size for sizes in of_hosts.values() for size in sizes), default=0.0)
