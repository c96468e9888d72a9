"""MindSpore's DynamicProfilerMonitor: a file with both ends of a range, and no report of the outcome.

Nothing tells the step but a log of the training, and nothing that a host took the file but its captures.
"""

from __future__ import annotations

import asyncio
import json
import time

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

_POLL_S = 2.0
_LOOK_S = 0.5
_READ_DEADLINE_S = 120.0
_N_POINTS = 3
#: The file is read by the next job of the directory, too: what stays in it must ask for nothing.
_OFF = -1


def configuration(request: Request) -> str:
    """Return the file for a request: both ends are in the range. The job parses, in another process."""
    return _text(request.steps[0], request.steps[-1], request.directory, request.level)


def _text(start: int, stop: int, directory: str, level: str) -> str:
    document = {
        "start_step": start,
        "stop_step": stop,
        "prof_path": directory,
        "aic_metrics": -1,
        "profiler_level": {"Level0": 0, "Level1": 1, "Level2": 2}.get(level, 1),
        "analyse_mode": 1,
        "activities": 0,
        "export_type": 0,
        "profile_memory": False,
        "mstx": False,
        "parallel_strategy": False,
        "with_stack": False,
        "data_simplification": True,
        "l2_cache": False,
        "analyse": True,
        "record_shapes": False,
    }
    return json.dumps(document, indent=1)


class MindSporeWay(ConfiguredWay):
    """The file of one host's MindSpore job, which `--job DIRECTORY` names: the environment does not."""

    def __init__(self, session: Session, target: Target, options: LiveOptions) -> None:
        super().__init__(session, target, options)
        self._points: list[Point] = []
        self._began_s: float | None = None
        self._before: dict[str, object] = {}

    async def hold(self, owner: str) -> str:
        """Lock the directory of the file, if the job can be captured so at all."""
        if not self._target.ranks[0].configuration:
            raise RemoteFailureError(
                "MindSpore's processes do not say where their file is",
                "name its directory: --job /the/cfg_path",
            )
        if not self._options.step_log:
            raise RemoteFailureError(
                "MindSpore tells no step",
                "name a log of the training that does: --step-log FILE --step-pattern REGEX",
            )
        return await super().hold(owner)

    async def pending(self) -> str:
        """Return the range that the file asks for and that is not over."""
        document = await self._session.ask("read", path=self._path)
        if not isinstance(document, dict):
            raise RemoteFailureError(f"{self._path}: there is none", "rank 0 makes it when the job starts")
        self._before = document
        stop = document.get("stop_step", _OFF)
        await self._listen()
        if document.get("start_step", _OFF) == _OFF or (self._points and self._points[-1].step > stop):
            return ""
        return f"{self._path} asks for steps {document['start_step']}–{stop}"

    async def peek(self) -> Reading:
        """Return the steps of the log's end."""
        await self._listen()
        return Reading(tuple(self._points), _POLL_S)

    async def read(self, directory: str, ranks: frozenset[int]) -> Reading:
        """Follow the log until it has shown some steps: nothing is asked of the job."""
        self._points.clear()
        end_s = time.monotonic() + _READ_DEADLINE_S
        while len(self._points) < _N_POINTS:
            if time.monotonic() > end_s:
                raise RemoteFailureError(
                    f"{self._options.step_log} told {len(self._points)} steps in {_READ_DEADLINE_S:g} s",
                    "is it this job's, and does --step-pattern find the number?",
                )
            await self._listen()
            await asyncio.sleep(_LOOK_S)
        return Reading(tuple(self._points), _POLL_S)

    async def send(self, request: Request) -> Reply:
        """Replace the file."""
        self._began_s = None
        if self._writes:
            off = [{"do": "replace", "path": self._path, "text": self._off()}]
            await self._session.ask("at_end", requests=off)
            await self._session.ask("replace", path=self._path, text=configuration(request))
        return Reply("silent")

    def _off(self) -> str:
        return json.dumps({**self._before, "start_step": _OFF, "stop_step": _OFF}, indent=1)

    async def verify(self, request: Request) -> Reply:
        """Return whether the file is ours and the start is still to come: no more is known."""
        await self._listen()
        here = await self._session.ask("read", path=self._path)
        if not isinstance(here, dict) or here.get("start_step") != request.steps[0]:
            return Reply("other", f"{self._path} was changed by somebody else")
        if self._points and self._points[-1].step >= request.steps[0]:
            return Reply("late", f"the job was at step {self._points[-1].step} when it was sent")
        return Reply("taken")

    async def progress(self, request: Request) -> Progress:
        """Return whether the log is past the range and every rank has left a capture."""
        await self._listen()
        now_s, step = time.monotonic(), self._points[-1].step if self._points else -1
        if self._began_s is None and step >= request.steps[0]:
            self._began_s = now_s
        has_ended = False
        if step > request.steps[-1]:
            there = await self._session.ask("captures", directory=self._target.root + request.directory)
            here = {one["rank"] for one in there if one["is_parsed"]}
            has_ended = ranks_of(self._target, request.ranks) <= here
        return Progress(self._began_s is not None, has_ended, self._began_s, now_s if has_ended else None)

    async def cancel(self) -> None:
        """Ask for nothing."""
        if self._writes:
            await self._session.ask("replace", path=self._path, text=self._off())

    async def put_back(self) -> None:
        """Leave the file as it was, but asking for nothing: the next job would take it when it starts."""
        await self.cancel()
        await self._session.ask("at_end", requests=[])

    async def _listen(self) -> None:
        pattern = self._options.step_pattern
        reply = await self._session.ask("numbers", path=self._options.step_log, pattern=pattern)
        # All lines of one look have its time: only the last of them was written just now.
        if reply:
            last = Point(float(reply[-1]["at_s"]) - self._session.clock_offset_s, int(reply[-1]["n"]))
            if not self._points or last.step > self._points[-1].step:
                self._points.append(last)
