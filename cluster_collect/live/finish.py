"""After the common start: the end on each host, parsing, and whether all captured the same steps."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cluster_collect.live.common_start import TOLERANCE_S
from cluster_collect.live.options import LiveOptions
from cluster_collect.live.outcome import Lost
from cluster_collect.live.sessions import Sessions
from cluster_collect.live.ways.protocol import Progress, Request, Way, ranks_of
from cluster_collect.live.whose import Target
from cluster_run.ids import HostId

_LOOK_S = 0.5
#: A captured step takes longer than others, and a job may just write a checkpoint.
_SLOWER, _MORE_S = 10.0, 30.0
#: Times of files are of another clock than ours, and MindSpore's and the daemon's come late.
_CLOCK_S = 15.0


@dataclass(frozen=True)
class Found:
    """A capture directory on a host; `steps` are None where its files do not say them."""

    path: str
    rank: int | None
    is_parsed: bool
    steps: tuple[int, ...] | None
    n_bytes: int


async def waited(
    sessions: Sessions,
    ways: Mapping[HostId, Way],
    requests: Mapping[HostId, Request],
    wait_s: float,
    step_s: float,
) -> Mapping[HostId, Progress]:
    """Wait for the end of the capture on every host; those where it does not come are lost."""
    n = max(one.warmup + one.n_steps for one in requests.values())
    end_s = time.monotonic() + wait_s * 2 + n * step_s * _SLOWER + _MORE_S
    done: dict[HostId, Progress] = {}
    waiting = [host for host in requests if host in sessions.hosts]
    while waiting:
        came = await sessions.each("unfinished", lambda host: ways[host].progress(requests[host]), waiting)
        for host, one in came.items():
            if one.trouble:
                sessions.lose(host, Lost("late", one.trouble))
            elif one.has_ended:
                done[host] = one
        waiting = [host for host in came if host not in done and host not in sessions.lost]
        if waiting and time.monotonic() > end_s:
            for host in waiting:
                begun = "the capture has begun and did not end in time"
                what = begun if came[host].has_begun else "the capture did not begin in time"
                sessions.lose(host, Lost("unfinished", what, "does the job still make steps?"))
            break
        if waiting:
            await asyncio.sleep(_LOOK_S)
    return done


def check_times(sessions: Sessions, ended: Mapping[HostId, Progress], step_s: float) -> None:
    """Lose hosts whose capture began at another moment than the others': their number was another iteration.

    Ranks of a job are in step with each other, so an iteration begins on all within a step; hosts' clocks are
    known to half the time of their quickest answer.
    """
    begins = {host: one.began_s for host, one in ended.items() if one.logged and one.began_s is not None}
    # Two hosts are compared with each other: else both would report half of the difference.
    middle = statistics.median_low(begins.values() or [0.0])
    clocks_s = 2 * max((sessions.by_host[host].clock_error_s for host in begins), default=0.0)
    for host, began_s in begins.items():
        if abs(began_s - middle) > TOLERANCE_S + 3 * step_s + clocks_s:
            side = "after" if began_s > middle else "before"
            reason = f"its capture began {abs(began_s - middle):.1f} s {side} the others'"
            sessions.lose(host, Lost("stray", f"{reason}: the same number was another iteration there"))


async def _found(
    sessions: Sessions, host: HostId, directory: str, mine: Collection[int], since_s: float | None
) -> Sequence[Found]:
    """Return the host's own captures: others lie there where hosts share a file system."""
    session = sessions.by_host[host]
    at_s = 0.0 if since_s is None else since_s + session.clock_offset_s - _CLOCK_S
    reply = map(_one, await session.ask("captures", directory=directory, since_s=at_s))
    return [one for one in reply if not mine or one.rank is None or one.rank in mine]


def _one(reply: Mapping[str, Any]) -> Found:
    steps = reply["steps"]
    return Found(
        path=str(reply["path"]),
        rank=None if reply["rank"] is None else int(reply["rank"]),
        is_parsed=bool(reply["is_parsed"]),
        steps=None if steps is None else tuple(map(int, steps)),
        n_bytes=int(reply["n_bytes"]),
    )


async def parsed(
    sessions: Sessions,
    targets: Mapping[HostId, Target],
    requests: Mapping[HostId, Request],
    options: LiveOptions,
    began: Mapping[HostId, float | None],
) -> Mapping[HostId, Sequence[Found]]:
    """Have the captures of every host parsed, by the chosen parser; hosts without captures are lost.

    Only captures of this request count: those that were made since it began.
    """
    end_s = time.monotonic() + options.deadline_s

    async def one(host: HostId) -> Sequence[Found]:
        request = requests[host]
        directory = targets[host].root + request.directory
        mine = ranks_of(targets[host], request.ranks)

        async def looked(is_enough: Callable[[Sequence[Found]], bool], last_s: float) -> Sequence[Found]:
            while True:
                there = await _found(sessions, host, directory, mine, began.get(host))
                if is_enough(there) or time.monotonic() >= last_s:
                    return there
                await asyncio.sleep(_LOOK_S)

        # The rank that tells the end may be the first of its host.
        there = await looked(lambda there: len(there) >= len(mine), time.monotonic() + _MORE_S)
        left = [one.path for one in there if not one.is_parsed]
        trouble = ""
        if left and options.parse == "host":
            trouble = await sessions.by_host[host].ask(
                "parse",
                deadline_s=options.deadline_s + _MORE_S,
                pid=targets[host].ranks[0].pid,
                paths=left,
                root=targets[host].root,
                longest_s=options.deadline_s,
            )
        there = await looked(
            lambda there: options.parse != "job" or all(one.is_parsed for one in there), end_s
        )
        n_left = sum(not one.is_parsed for one in there)
        if options.parse != "never" and (n_left or len(there) < len(mine)):
            sessions.lose(
                host,
                Lost(
                    "unparsed",
                    trouble or f"{len(there)} of {len(mine)} captures are there, {n_left} of them not parsed",
                    f"they are kept in {directory}",
                ),
            )
        return there

    hosts = [host for host in requests if host in sessions.hosts]
    return await sessions.each("unparsed", one, hosts)


def same_steps(sessions: Sessions, found: Mapping[HostId, Sequence[Found]], wanted: range) -> tuple[str, ...]:
    """Lose hosts whose files hold other steps than most; return what else is to be said.

    The files are the evidence, not the request or the names of directories.
    """
    reply = {
        host: {one.steps for one in found[host] if one.steps is not None}
        for host in sessions.hosts
        if host in found
    }
    all_steps = [steps for of_host in reply.values() for steps in of_host]
    if not all_steps:
        return ("the files do not say which steps they hold",)
    common = statistics.mode(all_steps)
    for host, steps in reply.items():
        others = sorted(steps - {common})
        if others:
            sessions.lose(
                host,
                Lost(
                    "other_steps",
                    f"its files hold steps {_range(others[0])}, those of most hosts {_range(common)}",
                ),
            )
    asked = tuple(wanted)
    return (
        () if common == asked else (f"the files hold steps {_range(common)}; asked for were {_range(asked)}",)
    )


def _range(steps: Sequence[int]) -> str:
    return f"{steps[0]}–{steps[-1]}" if steps else "none"
