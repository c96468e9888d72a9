"""One capture of a running job: whose it is, the lock, the common start, sending, verifying, the end.

Nothing is sent before it is known whose job it would be. What was sent is taken back where it has not begun:
by `cancel` where we go on, by the hosts' own programs where this process is gone.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from posixpath import join

from cluster_collect.faults import HostError
from cluster_collect.spec import HostSpec
from cluster_live.common_start import Pace, Start, common_start, pace_of
from cluster_live.finish import check_times, directories_of, parsed, same_steps, waited
from cluster_live.fleet import Fleet
from cluster_live.options import LiveOptions
from cluster_live.outcome import Captured, Lost
from cluster_live.sight import sight_of
from cluster_live.ways.protocol import Answer, Request, Settings, Way, ranks_of
from cluster_live.ways.registry import WAYS
from cluster_live.whose import Target, decide
from cluster_run.ids import HostId

#: Hosts that missed a start are given twice the time, and twice that.
_MOST_PATIENCE = 4.0
#: Between two configurations, as torch_npu cuts their times to seconds.
_APART_S = 2.0
_LOOK_S = 0.4
#: Whose answers come late without a fault: a log is written at the job's next step.
_LATE_S = 2.0

Say = Callable[[str], None]


class Capture:
    """A capture that is being made of the hosts of a fleet."""

    def __init__(
        self, fleet: Fleet, specs: Mapping[HostId, HostSpec], options: LiveOptions, say: Say
    ) -> None:
        self.id = f"live-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
        self._fleet = fleet
        self._specs = specs
        self._options = options
        self._say = say
        self.targets: Mapping[HostId, Target] = {}
        self._ways: dict[HostId, Way] = {}
        self._holders: dict[HostId, str] = {}
        self._directories: dict[HostId, str] = {}

    async def look(self) -> None:
        """Find the job on every host; hosts where it is in doubt are lost.

        Raises:
            NotCapturedError: too few hosts are left.
        """
        fleet = self._fleet

        async def one(host: HostId) -> object:
            return await fleet.sessions[host].ask("look")

        answers = await fleet.each("unreachable", one)
        decision = decide(
            (sight_of(host, answer) for host, answer in answers.items()), self._options.job, self._options.via
        )
        for host, refusal in decision.refusals.items():
            fleet.lose(host, Lost("refused", refusal.reason, refusal.advice))
        self.targets = decision.targets
        fleet.require()
        settings = Settings(self._options.port, self._options.certificates, self._options.step_log)
        if self._options.step_pattern:
            settings = Settings(
                settings.port, settings.certificates, settings.step_log, self._options.step_pattern
            )
        for host in fleet.hosts:
            target = self.targets[host]
            self._ways[host] = WAYS[target.way](fleet.sessions[host], target, settings)

    async def peek(self) -> Mapping[HostId, Pace]:
        """Return the paces that can be told without asking the job anything."""
        readings = await self._fleet.each("no_step", lambda host: self._ways[host].peek())
        paces = {}
        for host, reading in readings.items():
            try:
                paces[host] = pace_of(reading.points, reading.poll_s)
            except (ValueError, IndexError):
                continue
        return paces

    async def prepare(self) -> None:
        """Take the locks, see that nobody else waits for a capture, and make the directories.

        Raises:
            NotCapturedError: too few hosts are left.
        """
        fleet = self._fleet
        self._holders = await fleet.each("held", lambda host: self._ways[host].hold(self.id))
        fleet.require()
        pending = await fleet.each("other", lambda host: self._ways[host].pending())
        for host, what in pending.items():
            if what:
                advice = (
                    "wait for it; where it is left over, write start_step 0 into that file and call again"
                )
                fleet.lose(host, Lost("other", what, advice))
        fleet.require()

        async def make(host: HostId) -> str:
            target = self.targets[host]
            directory = join(self._base(host), self.id)
            like = (
                target.configuration
                if target.ranks[0].configuration
                else target.root + target.ranks[0].directory
            )
            await fleet.sessions[host].ask("make", directory=target.root + directory, like=like)
            return directory

        self._directories = await fleet.each("refused", make)
        fleet.require()

    def _base(self, host: HostId) -> str:
        """Return where captures of a host go: the same directory every time."""
        target, spec = self.targets[host], self._specs[host]
        base = self._options.directory or spec.local or spec.profiler_root
        return base if base.startswith("/") else target.ranks[0].configuration or target.ranks[0].directory

    async def earlier_bytes(self) -> float:
        """Return the bytes a rank and step of the largest capture from before, 0 without any."""

        async def one(host: HostId) -> Sequence[float]:
            root = self.targets[host].root
            there = await self._fleet.sessions[host].ask("captures", directory=root + self._base(host))
            return [capture["n_bytes"] / len(capture["steps"]) for capture in there if capture["steps"]]

        sizes = [
            size for of_host in (await self._fleet.each("unreachable", one)).values() for size in of_host
        ]
        return max(sizes, default=0.0)

    async def take(self, level: str, ranks: frozenset[int] | None = None) -> Captured:
        """Capture, on all hosts that are in, and return what is there when it is parsed.

        Raises:
            NotCapturedError: too few hosts took it; it was taken back on the others.
        """
        _options, fleet = self._options, self._fleet
        paces = await self._read()
        patience = 1.0
        start = self._choose(paces, patience)
        requests = self._requests(start, level, ranks)
        missing = await self._send(requests, start)
        while missing and patience < _MOST_PATIENCE and self._may_try_again(missing):
            self._say(
                f"{self._named(missing)}: {next(iter(missing.values())).reason}; once more, with more time"
            )
            await self._take_back()
            patience *= 2
            start = self._choose(paces, patience)
            requests = self._requests(start, level, ranks)
            missing = await self._send(requests, start)
        for host, why in missing.items():
            fleet.lose(host, why)
        if missing:
            await self._take_back_where_lost(missing)
        try:
            fleet.require()
        except BaseException:
            await self._take_back()
            raise
        taken = fleet.hosts
        steps = next(iter(requests.values())).steps
        self._say(
            f"capturing steps {steps[0]}–{steps[-1]} on {len(taken)} of {len(fleet.names)} hosts, "
            f"in about {start.wait_s:.0f} s"
        )
        return await self._finish(requests, start, paces)

    def _requests(self, start: Start, level: str, ranks: frozenset[int] | None) -> Mapping[HostId, Request]:
        """Return what each host is asked; only the directory may differ, and not where hosts share a file."""
        options = self._options
        directories = directories_of(self._directories, level, ranks)
        group_of = {self._group(host): directory for host, directory in directories.items()}
        return {
            host: Request(
                self.id,
                start.step,
                options.n_steps,
                options.warmup,
                group_of[self._group(host)],
                level,
                options.parse == "job",
                ranks,
            )
            for host in directories
        }

    async def _read(self) -> Mapping[HostId, Pace]:
        fleet = self._fleet
        for host in fleet.hosts:
            if not self._ways[host].has_steps:
                fleet.lose(host, Lost("no_step", "this way has no steps that hosts could share"))
        sharing = {
            host: frozenset(one for one in fleet.hosts if self._group(one) == self._group(host))
            for host in fleet.hosts
        }
        asked = {
            host: frozenset(min(ranks_of(self.targets[one], None)) for one in sharing[host])
            for host in fleet.hosts
        }

        async def one(host: HostId) -> Pace:
            reading = await self._ways[host].read(join(self._directories[host], "probe"), asked[host])
            return pace_of(reading.points, reading.poll_s)

        paces = await fleet.each("no_step", one)
        fleet.require()
        await asyncio.sleep(_APART_S)
        return paces

    def _named(self, hosts: Iterable[HostId]) -> str:
        return ", ".join(self._fleet.names[host] for host in hosts)

    def _group(self, host: HostId) -> str:
        return self._holders.get(host, str(host))

    def _choose(self, paces: Mapping[HostId, Pace], patience: float) -> Start:
        fleet = self._fleet
        known = {host: pace for host, pace in paces.items() if host in fleet.hosts}
        answer_s = 2 * max((fleet.sessions[host].answer_s for host in known), default=1.0)
        start = common_start(known, time.time(), answer_s, patience)
        for host, ahead in start.strays.items():
            fleet.lose(
                host,
                Lost(
                    "stray",
                    f"its step is {abs(ahead):.0f} {'ahead of' if ahead > 0 else 'behind'} the others' "
                    "at the same moment: the same number is another iteration there",
                    "was it restarted? It needs dynamic_profile.set_state to count as the others do",
                ),
            )
        fleet.require()
        return start

    async def _send(self, requests: Mapping[HostId, Request], start: Start) -> Mapping[HostId, Lost]:
        """Send to all hosts and return those that did not take it in time."""
        fleet = self._fleet
        hosts = fleet.hosts

        async def send(host: HostId) -> Answer:
            return await self._ways[host].send(requests[host])

        answers: dict[HostId, Answer] = await fleet.each("refused", send)
        missing = {host: Lost(one.state, one.reason) for host, one in answers.items() if one.state != "taken"}
        end_s = time.monotonic() + start.hear_s + _LATE_S
        waiting = [host for host in hosts if host in answers and host not in missing]
        while waiting:
            verified = await fleet.each(
                "silent", lambda host: self._ways[host].verify(requests[host]), waiting
            )
            missing.update(
                {
                    host: Lost(one.state, one.reason)
                    for host, one in verified.items()
                    if one.state not in ("taken", "silent")
                }
            )
            waiting = [host for host, one in verified.items() if one.state == "silent"]
            if time.monotonic() > end_s:
                missing.update({host: Lost("silent", verified[host].reason) for host in waiting})
                break
            if waiting:
                await asyncio.sleep(_LOOK_S)
        return missing

    def _may_try_again(self, missing: Mapping[HostId, Lost]) -> bool:
        """Whether more time may bring back hosts that the requirement needs."""
        fleet = self._fleet
        if all(one.word not in ("late", "silent") for one in missing.values()):
            return False
        n_left = len([host for host in fleet.hosts if host not in missing])
        n_needed = len(fleet.names) if self._options.quorum is None else self._options.quorum
        return n_left < n_needed

    async def _take_back(self) -> None:
        await self._fleet.each("unreachable", lambda host: self._ways[host].cancel())

    async def _take_back_where_lost(self, lost: Mapping[HostId, Lost]) -> None:
        async def cancel(host: HostId) -> None:
            # A host that shares its file with hosts that took part must not take theirs back.
            if not any(self._group(one) == self._group(host) for one in self._fleet.hosts):
                await self._ways[host].cancel()

        await self._fleet.each("unreachable", cancel, [host for host in lost if host in self._fleet.sessions])

    async def _finish(
        self, requests: Mapping[HostId, Request], start: Start, paces: Mapping[HostId, Pace]
    ) -> Captured:
        fleet, options = self._fleet, self._options
        steps = next(iter(requests.values())).steps
        step_s = max((pace.step_s for pace in paces.values()), default=1.0)
        ended = await waited(fleet, self._ways, requests, start, step_s)
        notes = check_times(fleet, ended, step_s)
        await fleet.each("unreachable", lambda host: self._ways[host].put_back())
        found = await parsed(fleet, self.targets, requests, options)
        notes += same_steps(fleet, found, steps)
        fleet.require()
        begins = [
            one.began_s for host, one in ended.items() if host in fleet.hosts and one.began_s is not None
        ]
        ends = [one.ended_s for host, one in ended.items() if host in fleet.hosts and one.ended_s is not None]
        return Captured(
            id=self.id,
            steps=steps,
            hosts=fleet.hosts,
            lost=dict(fleet.lost),
            directories={host: self.targets[host].root + requests[host].directory for host in fleet.hosts},
            n_bytes=sum(one.n_bytes for host in fleet.hosts for one in found[host]),
            busy_s=max(ends) - min(begins) if begins and ends else 0.0,
            step_s=step_s,
            notes=notes,
        )

    async def clean(self) -> None:
        """Remove from the hosts what was made there and is not wanted any more."""

        async def one(host: HostId) -> None:
            root = self.targets[host].root
            await self._fleet.sessions[host].ask("remove", directory=root + self._directories[host])

        try:
            await self._fleet.each(
                "unreachable", one, [host for host in self._directories if host in self._fleet.sessions]
            )
        except HostError:
            return
