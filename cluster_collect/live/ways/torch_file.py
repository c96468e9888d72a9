"""torch_npu's profiler_config.json below PROF_CONFIG_PATH, and what the ranks' logs say of it."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from posixpath import join

from cluster_collect.faults import RemoteFailureError
from cluster_collect.live.common_start import Point
from cluster_collect.live.options import LiveOptions
from cluster_collect.live.session import Session
from cluster_collect.live.ways.protocol import (
    ConfiguredWay,
    Progress,
    Reading,
    Reply,
    Request,
    ranks_of,
)
from cluster_collect.live.whose import Target
from cluster_run.ids import format_number_ranges

#: How often the monitor looks until the job's 11th step, and at most after that.
_FIRST_POLL_S, _LONGEST_POLL_S = 2.0, 50.0
#: Steps of a probe: of one rank, with nothing recorded that matters.
_PROBE_STEPS = 2
#: Beside polls and steps, for a job that just writes a checkpoint and a machine with much to do.
_PROBE_MORE_S = 20.0
#: A rank that has begun ends, but loading libraries for the first profile may take long.
_FIRST_TIME_S = 120.0
#: Times of files are cut to seconds: what is asked again this much later has another one.
_AGAIN_MORE_S = 2.0
#: Two points of a rank nearer to each other say more of how late a line was written than of a step.
_LEAST_SPAN_S = 1.0
_LOOK_S = 0.3
#: The job's 11th step is when it says how often it will look: a point, where no other is known.
_POLL_STEP = 11
_CANCELLED, _NOW = 0, -1
#: The request that cancels: a start that is past.
_NOTHING = Request("", _CANCELLED, 1, 0, "./", "Level0")


@dataclass(frozen=True)
class LogLine:
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


class FileWay(ConfiguredWay):
    """The configuration file of one host's job."""

    def __init__(self, session: Session, target: Target, options: LiveOptions) -> None:
        super().__init__(session, target, options)
        self._events: list[LogLine] = []
        #: How many events were known when the last request was sent.
        self._sent = 0
        self._probe = ""

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
        """Return the steps of one rank, by its logs."""
        await self._listen()
        return Reading(self._points(min(ranks_of(self._target, None))), self._poll_s())

    async def read(self, directory: str, ranks: frozenset[int]) -> Reading:
        """Have one rank capture two empty steps, and read in its log which steps these were.

        That probe is the one use of "at the next step" (-1): its files are thrown away.
        """
        rank = min(ranks & ranks_of(self._target, None))
        seen, directory = directory, self._target.root + directory
        probe = Request("probe", _NOW, _PROBE_STEPS, 0, seen, "Level0", ranks=ranks)
        await self._undo_at_end(directory)
        if self._writes:
            await self._session.ask("make", directory=directory, like=self._target.configuration)
            self._probe = directory
        while True:
            await self._probed(rank, probe)
            points = self._points(rank)
            if not self._writes or points[-1].at_s - points[0].at_s >= _LEAST_SPAN_S:
                return Reading(points, self._poll_s())

    async def _probed(self, rank: int, probe: Request) -> None:
        """Ask until this rank says that it has heard, and wait until it has ended.

        Logs of other ranks are no answer: a rank takes only what is later than all that it took, and than its
        own start, in whole seconds; and it drops what it reads while that is being written. Its silence is
        counted in looks, which take longer on a busy machine.
        """
        since, began_s, again_s = len(self._events), time.monotonic(), 0.0
        said: set[str] = set()
        n_looks = 0
        while "stopped" not in said:
            if self._writes and "accepted" not in said and time.monotonic() >= again_s:
                text = configuration(probe, is_probe=True)
                await self._session.ask("replace", path=self._path, text=text)
                again_s = time.monotonic() + 2 * self._poll_s() + 1 + _AGAIN_MORE_S
            await asyncio.sleep(_LOOK_S)
            await self._listen()
            heard = {
                one.kind
                for one in self._events[since:]
                if one.rank == rank and (one.kind != "accepted" or one.n == probe.start)
            }
            n_looks = n_looks + 1 if heard == said else 0
            said = heard
            # A poll is as long as a step, cut to whole seconds: a probe waits for one, and takes some steps.
            more_s = _FIRST_TIME_S if "started" in said else _PROBE_MORE_S
            longest_s = self._poll_s() + (_PROBE_STEPS + 2) * (self._poll_s() + 1) + more_s
            if n_looks * _LOOK_S > longest_s:
                raise RemoteFailureError(
                    f"rank {rank} did not say its step within {time.monotonic() - began_s:.0f} s "
                    "of being asked",
                    f"does the job make steps? Is {self._target.configuration}/log written? "
                    "Was the host's clock set back?",
                )

    def _points(self, rank: int) -> tuple[Point, ...]:
        # Only the last process of that rank counts: an earlier one had a counter of its own.
        known = {"started": 0, "stopped": 0, "poll": _POLL_STEP}
        own = [one for one in self._events if one.rank == rank and one.kind in known]
        return tuple(Point(one.at_s, _POLL_STEP if one.kind == "poll" else one.n) for one in own)

    def _poll_s(self) -> float:
        known = [one.n for one in self._events if one.kind == "poll"]
        return float(known[-1]) if known else _FIRST_POLL_S

    async def _undo_at_end(self, directory: str = "") -> None:
        if not self._writes:
            return
        requests: list[dict[str, object]] = [
            {"do": "replace", "path": self._path, "text": configuration(_NOTHING)},
            {"do": "sleep", "secs": min(self._poll_s(), _LONGEST_POLL_S) + 0.5},
            {"do": "put_back", "path": self._path},
        ]
        if directory:
            requests.append({"do": "remove", "directory": directory})
        await self._session.ask("at_end", requests=requests)

    async def send(self, request: Request) -> Reply:
        """Replace the file."""
        self._sent = len(self._events)
        if self._writes:
            await self._undo_at_end()
            await self._session.ask("replace", path=self._path, text=configuration(request))
        return Reply("silent")

    async def verify(self, request: Request) -> Reply:
        """Return whether every rank's log says that it took this start."""
        await self._listen()
        wanted = ranks_of(self._target, request.ranks)
        taken = {
            one.rank
            for one in self._events[self._sent :]
            if one.kind == "accepted" and one.n == request.start
        }
        silent = sorted(wanted - taken)
        if silent:
            return Reply("silent", f"rank {format_number_ranges(silent)} did not confirm it")
        return Reply("taken")

    async def progress(self, request: Request) -> Progress:
        """Return whether every rank's log says that it has begun and ended as asked."""
        await self._listen()
        wanted = ranks_of(self._target, request.ranks)
        since = self._events[self._sent :]
        began = {one.rank: one.at_s for one in since if one.kind == "started" and one.n == request.start}
        ended = {one.rank: one.at_s for one in since if one.kind == "stopped" and one.n == request.end}
        elsewhere = self._elsewhere(request)
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

    def _elsewhere(self, request: Request) -> list[int]:
        """Return where ranks began after they took this request: what they had before may begin before it."""
        taken: set[int] = set()
        steps: set[int] = set()
        for one in self._events[self._sent :]:
            if one.kind == "accepted" and one.n == request.start:
                taken.add(one.rank)
            elif one.kind == "started" and one.n != request.start and one.rank in taken:
                steps.add(one.n)
        return sorted(steps)

    async def cancel(self) -> None:
        """Ask for a start that is past: what waits is dropped."""
        if self._writes:
            await self._session.ask("replace", path=self._path, text=configuration(_NOTHING))
            await self._session.ask("sleep", secs=self._poll_s() + 0.5, deadline_s=_LONGEST_POLL_S + 10)

    async def put_back(self) -> None:
        """Give the file its content and its time of before, which no rank takes for something new."""
        if self._writes:
            await self._session.ask("put_back", path=self._path)
            await self._session.ask("remove", directory=self._probe)
        await self._session.ask("at_end", requests=[])

    async def _listen(self) -> None:
        pids = [one.inner_pid for one in self._target.ranks]
        known = await self._session.ask(
            "events", directory=join(self._target.configuration, "log"), pids=pids
        )
        offset_s = self._session.clock_offset_s
        self._events += [
            LogLine(float(one["at_s"]) - offset_s, int(one["rank"]), str(one["kind"]), int(one["n"]))
            for one in known
        ]
