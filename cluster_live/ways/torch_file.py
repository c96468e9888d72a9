"""torch_npu's profiler_config.json below PROF_CONFIG_PATH, and what the ranks' logs say of it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from posixpath import join

from cluster_collect.faults import RemoteFailureError
from cluster_live.common_start import Point
from cluster_live.session import Session
from cluster_live.ways.protocol import Answer, Progress, Reading, Request, Settings, ranks_of
from cluster_live.whose import Target

FILE_NAME = "profiler_config.json"
LOCK_NAME = ".cluster-live.lock"
#: How often the monitor looks until the job's 11th step, and at most after that.
_FIRST_POLL_S, _LONGEST_POLL_S = 2.0, 50.0
#: Of a probe: this many steps of one rank, with nothing recorded that matters.
_PROBE_STEPS = 2
#: Beside polls and steps, for a host that is slow to answer.
_PROBE_MORE_S = 8.0
_LOOK_S = 0.3
#: The job's 11th step is when it says how often it will look: a point, where no other is known.
_POLL_STEP = 11
_CANCELLED, _NOW = 0, -1
#: Clocks of hosts are read over the network, and log lines have milliseconds.
_CLOCK_S = 1.0


@dataclass(frozen=True)
class Event:
    """A line of a rank's log, by our clock."""

    at_s: float
    rank: int
    kind: str
    n: int


def configuration(request: Request, is_probe: bool = False) -> str:
    """Return the file for a request: what the analysis reads, and nothing that costs the job more."""
    return json.dumps(
        {
            "activities": ["CPU"] if is_probe else ["CPU", "NPU"],
            "prof_dir": request.directory,
            "analyse": request.parses,
            "async_mode": request.parses,
            "record_shapes": False,
            "profile_memory": False,
            "with_stack": False,
            "with_flops": False,
            "with_modules": False,
            "active": request.n_steps,
            "warmup": request.warmup,
            "start_step": request.start,
            "is_rank": request.ranks is not None,
            "rank_list": sorted(request.ranks or ()),
            "metadata": {"cluster_live": request.id},
            "experimental_config": {
                "profiler_level": "Level_none" if is_probe else request.level,
                "aic_metrics": "AiCoreNone",
                "l2_cache": False,
                "op_attr": False,
                "gc_detect_threshold": None,
                "data_simplification": True,
                "record_op_args": False,
                "export_type": ["text"],
                "msprof_tx": False,
                "mstx": False,
                "host_sys": [],
                "mstx_domain_include": [],
                "mstx_domain_exclude": [],
                "sys_io": False,
                "sys_interconnection": False,
            },
        },
        indent=1,
    )


def nothing_asked() -> Request:
    """Return the request that cancels: a start that is past."""
    return Request("", _CANCELLED, 1, 0, "./", "Level0")


class FileWay:
    """The configuration file of one host's job."""

    has_steps = True
    directory = ""

    def __init__(self, session: Session, target: Target, settings: Settings) -> None:
        self._session = session
        self._target = target
        self._settings = settings
        self._path = join(target.configuration, FILE_NAME)
        self._events: list[Event] = []
        self._sent_s = 0.0
        self._writes = True
        self._probe = ""

    async def hold(self, owner: str) -> str:
        """Lock the directory of the configuration; hosts that share it have one of them write."""
        directory = self._target.configuration
        holder = str(
            await self._session.ask(
                "lock", directory=directory, name=LOCK_NAME, owner=owner, host=self._session.host
            )
        )
        self._writes = holder == "ours"
        return str(self._session.host) if self._writes else holder

    async def pending(self) -> str:
        """Return the start that the file asks for and that no log says to have begun."""
        document = await self._session.ask("read", path=self._path)
        if document is None:
            raise RemoteFailureError(
                f"{self._path}: there is none",
                "the job makes it when it starts: was it removed, or has it not begun?",
            )
        start = document.get("start_step") if isinstance(document, dict) else None
        await self._listen()
        last = max(
            (one.at_s for one in self._events if one.kind == "accepted" and one.n == start), default=0.0
        )
        begun = any(one.kind == "started" and one.at_s >= last for one in self._events)
        if not isinstance(start, int) or start in (_CANCELLED, _NOW) or (last > 0 and begun) or last == 0:
            return ""
        return f"{self._path} asks for a capture at step {start}, which has not begun"

    async def peek(self) -> Reading:
        """Return what the logs tell of one rank."""
        await self._listen()
        return Reading(self._points(min(ranks_of(self._target, None))), self._poll_s())

    async def read(self, directory: str, ranks: frozenset[int]) -> Reading:
        """Have one rank capture nothing for two steps, and read in its log which steps these were.

        That probe is the one use of "at the next step" (-1): its files are thrown away.
        """
        began_s = time.time()
        rank = min(ranks & ranks_of(self._target, None))
        # A poll is as long as a step, cut to whole seconds: a probe waits for one, and takes some steps.
        longest_s = self._poll_s() + (_PROBE_STEPS + 2) * (self._poll_s() + 1) + _PROBE_MORE_S
        end_s = time.monotonic() + longest_s
        again_s = end_s - longest_s / 2
        directory = self._target.root + directory
        await self._undo_at_end(directory)
        if self._writes:
            await self._session.ask("make", directory=directory, like=self._target.configuration)
            self._probe = directory
            await self._send_probe(directory, ranks)
        while not self._has_told("stopped", began_s):
            if self._writes and time.monotonic() > again_s and not self._has_told("accepted", began_s):
                # A job that began in the very second of the file's time takes it for older than itself.
                again_s = end_s
                await self._send_probe(directory, ranks)
            if time.monotonic() > end_s:
                raise RemoteFailureError(
                    f"rank {rank} did not say its step within {longest_s:.0f} s of being asked",
                    f"does the job make steps? Is {self._target.configuration}/log written?",
                )
            await asyncio.sleep(_LOOK_S)
            await self._listen()
        return Reading(self._points(rank), self._poll_s())

    async def _send_probe(self, directory: str, ranks: frozenset[int]) -> None:
        seen = directory[len(self._target.root) :]
        probe = Request("probe", _NOW, _PROBE_STEPS, 0, seen, "Level0", ranks=ranks)
        await self._session.ask("replace", path=self._path, text=configuration(probe, is_probe=True))

    def _has_told(self, kind: str, since_s: float) -> bool:
        return any(one.kind == kind and one.at_s > since_s - _CLOCK_S for one in self._events)

    def _points(self, rank: int) -> tuple[Point, ...]:
        # Of the last process of that rank only: an earlier one had a counter of its own.
        told = {"started": 0, "stopped": 0, "poll": _POLL_STEP}
        own = [one for one in self._events if one.rank == rank and one.kind in told]
        return tuple(Point(one.at_s, _POLL_STEP if one.kind == "poll" else one.n) for one in own)

    def _poll_s(self) -> float:
        told = [one.n for one in self._events if one.kind == "poll"]
        return float(told[-1]) if told else _FIRST_POLL_S

    async def _undo_at_end(self, directory: str = "") -> None:
        if not self._writes:
            return
        requests: list[dict[str, object]] = [
            {"do": "replace", "path": self._path, "text": configuration(nothing_asked())},
            {"do": "sleep", "secs": min(self._poll_s(), _LONGEST_POLL_S) + 0.5},
            {"do": "put_back", "path": self._path},
        ]
        if directory:
            requests.append({"do": "remove", "directory": directory})
        await self._session.ask("at_end", requests=requests)

    async def send(self, request: Request) -> Answer:
        """Replace the file."""
        self._sent_s = time.time()
        if self._writes:
            await self._undo_at_end()
            await self._session.ask("replace", path=self._path, text=configuration(request))
        return Answer("taken", is_verified=False)

    async def verify(self, request: Request) -> Answer:
        """Return whether every rank's log says that it took this start."""
        await self._listen()
        wanted = ranks_of(self._target, request.ranks)
        since = [one for one in self._events if one.at_s >= self._sent_s - _CLOCK_S]
        taken = {one.rank for one in since if one.kind == "accepted" and one.n == request.start}
        silent = sorted(wanted - taken)
        if silent:
            return Answer("silent", f"{_ranks(silent)} did not say to have taken it")
        return Answer("taken")

    async def progress(self, request: Request) -> Progress:
        """Return whether every rank's log says that it has begun and ended as asked."""
        await self._listen()
        wanted = ranks_of(self._target, request.ranks)
        since = [one for one in self._events if one.at_s >= self._sent_s - _CLOCK_S]
        began = {one.rank: one.at_s for one in since if one.kind == "started" and one.n == request.start}
        ended = {one.rank: one.at_s for one in since if one.kind == "stopped" and one.n == request.end}
        elsewhere = sorted({one.n for one in since if one.kind == "started" and one.n != request.start})
        if began:
            await self._session.ask("at_end", requests=[{"do": "put_back", "path": self._path}])
        return Progress(
            has_begun=wanted <= set(began),
            has_ended=wanted <= set(ended),
            began_s=min(began.values(), default=None),
            ended_s=max(ended.values(), default=None),
            logged=True,
            trouble=f"a capture began at step {elsewhere[0]} instead" if elsewhere and not began else "",
        )

    async def cancel(self) -> None:
        """Ask for a start that is past: what waits is dropped."""
        if self._writes:
            await self._session.ask("replace", path=self._path, text=configuration(nothing_asked()))
            await self._session.ask("sleep", secs=self._poll_s() + 0.5, deadline_s=_LONGEST_POLL_S + 10)

    async def put_back(self) -> None:
        """Give the file its content and its time of before, which no rank takes for something new."""
        if self._writes:
            await self._session.ask("put_back", path=self._path)
            await self._session.ask("remove", directory=self._probe)
        await self._session.ask("at_end", requests=[])

    async def _listen(self) -> None:
        pids = [one.inner_pid for one in self._target.ranks]
        told = await self._session.ask("events", directory=join(self._target.configuration, "log"), pids=pids)
        offset_s = self._session.clock_offset_s
        self._events += [
            Event(float(one["at_s"]) - offset_s, int(one["rank"]), str(one["kind"]), int(one["n"]))
            for one in told
        ]


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"
