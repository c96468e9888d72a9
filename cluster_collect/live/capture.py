"""One capture of a job that was found: the common start, sending, verifying, and cancelling.

A capture that has not begun is taken back: by `cancel` if we go on, by the hosts' own programs if we are
gone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
from posixpath import join

from cluster_collect.live.common_start import Pace, Start, common_start, pace_of
from cluster_collect.live.finish import check_times, parsed, same_steps, waited
from cluster_collect.live.options import LiveOptions
from cluster_collect.live.outcome import Captured, Lost, reasons
from cluster_collect.live.prepare import Prepared
from cluster_collect.live.session import to_its_end
from cluster_collect.live.sessions import Say
from cluster_collect.live.ways.protocol import Reply, Request, ranks_of
from cluster_run.ids import HostId

#: Hosts that missed a start are given twice the time, and twice that.
_MOST_PATIENCE = 4.0
#: Between two configurations, as torch_npu cuts their times to seconds.
_APART_S = 2.0
_LOOK_S = 0.4
#: A host reports its action at the job's next step, in a log that is read at intervals.
_LATE_S = 1.0


async def capture(
    prepared: Prepared, options: LiveOptions, say: Say, level: str, ranks: frozenset[int] | None = None
) -> Captured:
    """Capture the same steps on all hosts that take part, and return the parsed captures.

    Raises:
        NotCapturedError: too few hosts took it; it was taken back on the others.
    """
    if not all(prepared.ways[host].has_steps for host in prepared.sessions.hosts):
        return await _at_once(prepared, options, say, level)
    paces = await _read(prepared)
    try:
        start, requests = await _agreed(prepared, options, paces, say, (level, ranks))
    except BaseException:
        await to_its_end(asyncio.ensure_future(_take_back(prepared)))
        raise
    sessions, steps = prepared.sessions, next(iter(requests.values())).steps
    taken = [host for host in requests if host in sessions.hosts]
    where = f"{len(taken)} of {len(sessions.names)} hosts"
    say(f"capturing steps {steps[0]}–{steps[-1]} on {where}, in about {start.wait_s:.0f} s")
    step_s = max(pace.step_s for pace in paces.values())
    return await _finished(prepared, options, requests, step_s, start.wait_s)


async def _read(prepared: Prepared) -> Mapping[HostId, Pace]:
    """Return how far every host's job is, one rank of each asked where nothing else tells it."""
    sessions, targets = prepared.sessions, prepared.targets
    asked = {
        host: frozenset(
            min(ranks_of(targets[one], None), default=-1)
            for one in sessions.hosts
            if prepared.group(one) == prepared.group(host)
        )
        for host in sessions.hosts
    }
    probes = prepared.directories("probe")

    async def one(host: HostId) -> Pace:
        reading = await prepared.ways[host].read(probes[host], asked[host])
        return pace_of(reading.points, reading.poll_s)

    paces = await sessions.each("no_step", one)
    sessions.require()
    await asyncio.sleep(_APART_S)
    return paces


async def _agreed(
    prepared: Prepared,
    options: LiveOptions,
    paces: Mapping[HostId, Pace],
    say: Say,
    what: tuple[str, frozenset[int] | None],
) -> tuple[Start, Mapping[HostId, Request]]:
    """Send one start to all hosts until enough of them have taken it; the others are lost.

    Raises:
        NotCapturedError: too few took it.
    """
    sessions = prepared.sessions
    patience = 1.0
    while True:
        start = _choose(prepared, paces, patience)
        requests = _requests(prepared, options, start, *what)
        missing = await _sent(prepared, requests, start)
        patience *= 2
        if not missing or patience > _MOST_PATIENCE or not _may_try_again(prepared, options, missing):
            break
        say(f"{reasons(missing, sessions.names)}; once more, with more time")
        await _take_back(prepared)
        # Two readings some seconds apart tell how fast the job is now, where one may rest on its whole past.
        paces = await _read(prepared)
    for host, why in missing.items():
        sessions.lose(host, why)
    sessions.require()
    # A host that shares its file with hosts that took part must not take theirs back.
    taking = {prepared.group(host) for host in sessions.hosts}
    left = [host for host in missing if host in sessions.by_host and prepared.group(host) not in taking]
    await sessions.each("unreachable", lambda host: prepared.ways[host].cancel(), left)
    return start, {host: one for host, one in requests.items() if host in sessions.hosts}


def _choose(prepared: Prepared, paces: Mapping[HostId, Pace], patience: float) -> Start:
    """Choose the start; hosts whose count is another are lost."""
    sessions = prepared.sessions
    known = {host: pace for host, pace in paces.items() if host in sessions.hosts}
    answer_s = 2 * max((sessions.by_host[host].answer_s for host in known), default=1.0)
    start = common_start(known, time.monotonic(), answer_s, patience)
    for host, ahead in start.strays.items():
        reason = (
            f"its step is {abs(ahead):.0f} {'ahead of' if ahead > 0 else 'behind'} the others' at the same "
            "moment: the same number is another iteration there"
        )
        advice = "was it restarted? It needs dynamic_profile.set_state to count as the others do"
        sessions.lose(host, Lost("stray", reason, advice))
    sessions.require()
    return start


def _requests(
    prepared: Prepared, options: LiveOptions, start: Start, level: str, ranks: frozenset[int] | None
) -> Mapping[HostId, Request]:
    """Return what each host is asked; only the directory may differ, and not where hosts share a file."""
    directories = prepared.directories(level if ranks is None else f"{level}-suspects")
    parses = options.parse == "job"
    return {
        host: Request(
            prepared.id, start.step, options.n_steps, options.warmup, directories[host], level, parses, ranks
        )
        for host in prepared.asked_for(ranks)
    }


async def _sent(
    prepared: Prepared, requests: Mapping[HostId, Request], start: Start
) -> Mapping[HostId, Lost]:
    """Send to all hosts and return those that did not take it in time."""
    sessions, ways = prepared.sessions, prepared.ways
    end_s = time.monotonic() + start.hear_s + _LATE_S
    answers: dict[HostId, Reply] = await sessions.each(
        "refused", lambda host: ways[host].send(requests[host]), tuple(requests)
    )
    missing: dict[HostId, Lost] = {}
    while answers:
        missing |= {
            host: Lost(one.state, one.reason)
            for host, one in answers.items()
            if one.state not in ("taken", "silent")
        }
        waiting = [host for host, one in answers.items() if one.state == "silent"]
        if time.monotonic() > end_s:
            return {**missing, **{host: Lost("silent", answers[host].reason) for host in waiting}}
        answers = await sessions.each("silent", lambda host: ways[host].verify(requests[host]), waiting)
        if any(one.state == "silent" for one in answers.values()):
            await asyncio.sleep(_LOOK_S)
    return missing


def _may_try_again(prepared: Prepared, options: LiveOptions, missing: Mapping[HostId, Lost]) -> bool:
    """Whether more time may bring back hosts that the requirement needs."""
    sessions = prepared.sessions
    if all(one.word not in ("late", "silent") for one in missing.values()):
        return False
    n_left = len([host for host in sessions.hosts if host not in missing])
    return n_left < (len(sessions.names) if options.quorum is None else options.quorum)


async def _take_back(prepared: Prepared) -> None:
    ways = prepared.ways
    await prepared.sessions.each("unreachable", lambda host: ways[host].cancel(), tuple(ways))


async def _at_once(prepared: Prepared, options: LiveOptions, say: Say, level: str) -> Captured:
    """Capture by a way without common steps: all get the order at the same moment, and end by themselves."""
    sessions = prepared.sessions
    requests = {
        host: Request(prepared.id, 0, options.n_steps, 0, prepared.ways[host].directory, level)
        for host in sessions.hosts
    }
    answers = await sessions.each("refused", lambda host: prepared.ways[host].send(requests[host]))
    for host, one in answers.items():
        if one.state != "taken":
            sessions.lose(host, Lost(one.state, one.reason))
    try:
        sessions.require()
    except BaseException:
        await to_its_end(asyncio.ensure_future(_take_back(prepared)))
        raise
    n_left, n_hosts = len(sessions.hosts), len(sessions.names)
    say(f"{n_left} of {n_hosts} hosts profile: each counts its own iterations from now on")
    return await _finished(prepared, options, requests, 1.0, 0.0)


async def _finished(
    prepared: Prepared, options: LiveOptions, requests: Mapping[HostId, Request], step_s: float, wait_s: float
) -> Captured:
    """Wait for the end, have it parsed, and say what is there."""
    sessions, ways = prepared.sessions, prepared.ways
    hosts = tuple(requests)
    ended = await waited(sessions, ways, requests, wait_s, step_s)
    steps = next(iter(requests.values())).steps
    begins = [one.began_s for one in ended.values() if one.began_s is not None]
    ends = [one.ended_s for one in ended.values() if one.ended_s is not None]
    busy_s = max(ends) - min(begins) if begins and ends else len(steps) * step_s
    prepared.spent(busy_s)
    check_times(sessions, ended, step_s)
    await sessions.each("unreachable", lambda host: ways[host].put_back(), tuple(ways))
    there = await parsed(sessions, prepared.targets, requests, options, {h: ended[h].began_s for h in ended})
    notes = (*prepared.notes, *same_steps(sessions, there, steps))
    sessions.require()
    left = tuple(host for host in hosts if host in sessions.hosts)
    roots = {host: prepared.targets[host].root + requests[host].directory for host in left}
    return Captured(
        id=prepared.id,
        steps=steps,
        hosts=left,
        lost=dict(sessions.lost),
        directories=roots,
        captures={host: frozenset(one.path[len(roots[host]) + 1 :] for one in there[host]) for host in left},
        n_bytes=sum(one.n_bytes for host in left for one in there[host]),
        busy_s=busy_s,
        step_s=step_s,
        notes=notes,
    )


async def remove_captures(prepared: Prepared, partial: Collection[HostId]) -> None:
    """Remove what was made on hosts, but not on those that are `partial`, nor where these may have theirs."""
    kept = {prepared.group(host) for host in partial}

    async def one(host: HostId) -> None:
        directory = prepared.targets[host].root + join(prepared.bases[host], prepared.id)
        await prepared.sessions.by_host[host].ask("remove", directory=directory)

    await prepared.sessions.each(
        "unreachable", one, [host for host in prepared.bases if prepared.group(host) not in kept]
    )
