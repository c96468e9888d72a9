"""The sessions of all hosts of a capture at once, who is still in, who is lost and why."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar

from cluster_collect.faults import HostError, as_host_error
from cluster_collect.live.outcome import Lost, not_captured
from cluster_collect.live.session import HeldError, Session, opened
from cluster_collect.progress_events import ProgressListener
from cluster_collect.spec import CollectOptions, HostSpec
from cluster_collect.transports.dialers import Dialers
from cluster_collect.watchdog import cancelled
from cluster_run.ids import HostId

_T = TypeVar("_T")
#: Takes a line for people.
Say = Callable[[str], None]
#: Time after which it is said which hosts are waited for, and how many are named.
_SAY_S, _N_NAMED = 10.0, 5
#: What is waited for, by the word for hosts that fail at it.
_DONE = {"no_step": "with a known step", "unfinished": "captured", "unparsed": "parsed"}


def names_of(specs: Sequence[HostSpec]) -> Mapping[HostId, str]:
    """Return what people call the hosts."""
    return {spec.host: str(spec.server_id or spec.address) for spec in specs}


class Sessions:
    """The sessions on the hosts of one capture. A host that is lost once stays lost."""

    def __init__(self, names: Mapping[HostId, str], quorum: int | None, say: Say) -> None:
        self.by_host: dict[HostId, Session] = {}
        self.names = names
        self.lost: dict[HostId, Lost] = {}
        self._quorum = quorum
        self._say = say

    @property
    def hosts(self) -> tuple[HostId, ...]:
        """Those that are still in, in the order of the inventory."""
        return tuple(host for host in self.names if host in self.by_host and host not in self.lost)

    def lose(self, host: HostId, why: Lost) -> None:
        """Leave a host out from now on; the first reason is kept."""
        self.lost.setdefault(host, why)

    def require(self) -> None:
        """Go on only with enough hosts.

        Raises:
            NotCapturedError: some are lost and all are required, or fewer than the quorum are left.
        """
        n_needed = len(self.names) if self._quorum is None else self._quorum
        if len(self.hosts) < max(1, n_needed):
            raise not_captured(self.lost, self.names, self._quorum)

    async def each(
        self, word: str, work: Callable[[HostId], Awaitable[_T]], hosts: Sequence[HostId] | None = None
    ) -> dict[HostId, _T]:
        """Do something on all hosts at once and return what came; one where it fails is lost as `word`.

        Long waits are reported at intervals, with their hosts.
        """
        asked = self.hosts if hosts is None else tuple(hosts)
        tasks = {host: asyncio.ensure_future(work(host)) for host in asked}
        try:
            while tasks and (await asyncio.wait(tasks.values(), timeout=_SAY_S))[1]:
                self._say_waiting(word, [host for host, task in tasks.items() if not task.done()], len(asked))
        finally:
            for task in tasks.values():
                await cancelled(task)
        came: dict[HostId, _T] = {}
        for host, task in tasks.items():
            error = task.exception()
            if isinstance(error, HeldError):
                self.lose(host, Lost.by("held", error))
            elif isinstance(error, Exception):
                self.lose(host, Lost.by(word, as_host_error(error)))
            else:
                came[host] = task.result()
        return came

    def _say_waiting(self, word: str, hosts: Sequence[HostId], n_asked: int) -> None:
        names = ", ".join(self.names[host] for host in hosts[:_N_NAMED])
        more = f" and {len(hosts) - _N_NAMED} more" if len(hosts) > _N_NAMED else ""
        done = _DONE.get(word, "done")
        self._say(f"{n_asked - len(hosts)} of {n_asked} hosts {done}, waiting for {names}{more}")


@asynccontextmanager
async def opened_sessions(
    specs: Sequence[HostSpec], options: CollectOptions, quorum: int | None, say: Say = lambda _: None
) -> AsyncIterator[Sessions]:
    """Open a session on every host that can be reached while the block runs."""
    dialers = Dialers(options, ProgressListener())
    stacks: list[AsyncExitStack] = []
    sessions = Sessions(names_of(specs), quorum, say)

    async def open_one(spec: HostSpec) -> None:
        stack = AsyncExitStack()
        stacks.append(stack)
        try:
            opening = opened(spec, dialers.dial, options.progress_deadline_s)
            session = await stack.enter_async_context(opening)
        except HostError as error:
            sessions.lose(spec.host, Lost.by("unreachable", error))
        else:
            sessions.by_host[spec.host] = session

    try:
        await asyncio.gather(*(open_one(spec) for spec in specs))
        yield sessions
    finally:
        # Undo on all hosts at once: one after the other would take minutes.
        await asyncio.shield(asyncio.gather(*(stack.aclose() for stack in stacks), return_exceptions=True))
        await dialers.aclose()
