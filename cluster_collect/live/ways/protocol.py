"""Protocol of a way to ask a running job for a capture; one module here each.

A way knows the words of one protocol. Which hosts, which step and whose job is decided elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from posixpath import join
from typing import Literal, Protocol

from cluster_collect.live.common_start import Point
from cluster_collect.live.host.settings import LOCK_NAME
from cluster_collect.live.options import LiveOptions
from cluster_collect.live.session import Session
from cluster_collect.live.whose import Target

#: What the dynamic profilers of both frameworks read.
FILE_NAME = "profiler_config.json"
#: How a host took what was sent: `late` the start was past; `busy` another text or capture was in the way, or
#: ours was dropped; `silent` nothing says that it was taken; `other` something else is waiting there.
State = Literal["taken", "late", "busy", "refused", "silent", "other"]


@dataclass(frozen=True)
class Request:
    """The capture of steps [start, start + warmup + n) into `directory`; the warm-up is not recorded.

    `ranks` are those that are asked, None for all. `parses` says whether the job parses by itself.
    """

    id: str
    start: int
    n_steps: int
    warmup: int
    directory: str
    level: str
    parses: bool = False
    ranks: frozenset[int] | None = None

    @property
    def end(self) -> int:
        """The first step that it does not hold."""
        return self.start + self.warmup + self.n_steps

    @property
    def steps(self) -> range:
        """The steps that its files hold."""
        return range(self.start + self.warmup, self.end)


@dataclass(frozen=True)
class Reading:
    """Steps of a host: points by our clock, and how often it looks for configurations."""

    points: tuple[Point, ...]
    poll_s: float


@dataclass(frozen=True)
class Reply:
    """How a host took a request; one that was only sent is `silent`."""

    state: State
    reason: str = ""


@dataclass(frozen=True)
class Progress:
    """Whether a capture has begun and ended on a host; times by our clock, None where nothing tells them.

    They are `logged` where the job says them, and else those at which we saw it.
    """

    has_begun: bool
    has_ended: bool
    began_s: float | None
    ended_s: float | None
    logged: bool = False
    trouble: str = ""


class Way(Protocol):
    """One host's trigger. Errors are HostErrors."""

    #: Whether a start step can be given that all hosts then share.
    has_steps: bool
    #: Where captures go that cannot be sent elsewhere.
    directory: str

    async def hold(self, owner: str) -> str:
        """Take the host's lock; return the host that sends for this one, itself in most cases."""

    async def pending(self) -> str:
        """Return a request of somebody else that is not done; empty without one."""

    async def peek(self) -> Reading:
        """Return the job's steps that are known without asking it anything; often too few points."""

    async def read(self, directory: str, ranks: frozenset[int]) -> Reading:
        """Return how far the job is, asking it in the least disturbing way.

        `directory` is ours for that, `ranks` are those that may be asked: one of each host that shares this
        one's configuration.
        """

    async def send(self, request: Request) -> Reply:
        """Ask for a capture. From then on it is cancelled when our end is gone, until it has begun."""

    async def verify(self, request: Request) -> Reply:
        """Return how the host took it; `silent` may be so only because too little time has passed."""

    async def progress(self, request: Request) -> Progress:
        """Return how far the capture is."""

    async def cancel(self) -> None:
        """Take back what has not begun."""

    async def put_back(self) -> None:
        """Leave everything as it was before."""


class ConfiguredWay:
    """Common part of ways by a file that jobs read: one of the hosts that share the file writes it."""

    has_steps = True
    directory = ""

    def __init__(self, session: Session, target: Target, options: LiveOptions) -> None:
        self._session = session
        self._target = target
        self._options = options
        self._path = join(target.configuration, FILE_NAME)
        self._writes = True

    async def hold(self, owner: str) -> str:
        """Lock the directory of the file."""
        holder = await self._session.lock(self._target.configuration, LOCK_NAME, owner)
        self._writes = holder == self._session.host
        return holder


def ranks_of(target: Target, chosen: frozenset[int] | None) -> frozenset[int]:
    """Return which of a host's ranks a request is for."""
    here = frozenset(one.rank for one in target.ranks if one.rank is not None)
    return here if chosen is None else here & chosen
