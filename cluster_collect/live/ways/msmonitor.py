"""msMonitor's daemon on a host: it passes a text on to the process of a job that reads for all ranks there.

It reports one status of the job's profiler for the whole host, once a second, at a step.
"""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import Mapping

from cluster_collect.faults import RemoteFailureError
from cluster_collect.live.common_start import Point
from cluster_collect.live.host.processes import SHARED
from cluster_collect.live.options import LiveOptions
from cluster_collect.live.session import Session
from cluster_collect.live.ways.msmonitor_wire import Daemon, client_context, framed, links
from cluster_collect.live.ways.protocol import Progress, Reading, Reply, Request
from cluster_collect.live.whose import Target

PORT = 1778
#: The job tells its step once a second, and at a step: two tellings of long steps may be minutes apart.
_LOOK_S = 0.25
_READ_DEADLINE_S = 200.0
_PEEK_S = 2.5
#: How often torch_npu's monitor asks the daemon: every 2 s until step 11, then as long as that step took.
_EARLY_STEP, _EARLY_POLL_S, _LEAST_POLL_S, _LONGEST_POLL_S = 11, 2.0, 1.0, 50.0


def text_of(request: Request) -> str:
    """Return a request as the daemon passes it on: one setting a line."""
    ranks = "None" if request.ranks is None else ",".join(map(str, sorted(request.ranks)))
    parses = str(request.parses).lower()
    values: Mapping[str, object] = {
        "ACTIVITIES_LOG_FILE": request.directory,
        "PROFILE_START_ITERATION": 0,
        "PROFILE_START_STEP": request.start,
        "ACTIVITIES_ITERATIONS": request.n_steps,
        "WARMUP_ITERATIONS": request.warmup,
        "PROFILE_RECORD_SHAPES": "false",
        "PROFILE_PROFILE_MEMORY": "false",
        "PROFILE_WITH_STACK": "false",
        "PROFILE_WITH_FLOPS": "false",
        "PROFILE_WITH_MODULES": "false",
        "PROFILE_ACTIVITIES": "CPU,NPU",
        "PROFILE_ANALYSE": parses,
        "PROFILE_ASYNC_MODE": parses,
        "PROFILE_PROFILER_LEVEL": request.level,
        "PROFILE_AIC_METRICS": "AiCoreNone",
        "PROFILE_L2_CACHE": "false",
        "PROFILE_OP_ATTR": "false",
        "PROFILE_MSPROF_TX": "false",
        "PROFILE_GC_DETECT_THRESHOLD": "None",
        "PROFILE_DATA_SIMPLIFICATION": "true",
        "PROFILE_EXPORT_TYPE": "Text",
        "PROFILE_IS_RANK": str(request.ranks is not None).lower(),
        "PROFILE_RANK_LIST": ranks,
    }
    return "\n".join(f"{name}={value}" for name, value in values.items())


class MsMonitorWay:
    """A job that asks the daemon of its host."""

    has_steps = True
    directory = ""

    def __init__(self, session: Session, target: Target, options: LiveOptions) -> None:
        self._session = session
        self._pids = [one.inner_pid for one in ([target.monitor] if target.monitor else target.ranks)]
        self._daemon = Daemon(session, options.port or PORT, client_context(options.certificates))
        self._points: list[Point] = []
        self._began_s: float | None = None
        self._ended_s: float | None = None
        self._has_sent = False

    async def hold(self, owner: str) -> str:
        """Lock the daemon, by a file that is no more than that."""
        await self._session.lock(SHARED, f".cluster-live-{self._daemon.port}.lock", owner)
        return str(self._session.host)

    async def pending(self) -> str:
        """Return what the daemon says that others wait for."""
        status = await self._daemon.status()
        if status.state in ("Ready", "Running"):
            return f"the daemon has a capture of steps {status.start}–{status.stop}, {status.state.lower()}"
        if status.monitor == "Running":
            return "npu-monitor runs, and the daemon refuses captures beside it"
        if status.state == "Uninitialized":
            raise RemoteFailureError(
                "the daemon has heard of no job", "is its HOME that of the job? They meet at ~/dynolog.sock"
            )
        return ""

    async def peek(self) -> Reading:
        """Return the steps of a short time."""
        return await self._watch(_PEEK_S)

    async def read(self, directory: str, ranks: frozenset[int]) -> Reading:
        """Watch the step until it has changed twice: nothing is asked of the job."""
        reading = await self._watch(_READ_DEADLINE_S, n_wanted=3)
        if len(reading.points) < 2:
            raise RemoteFailureError(
                f"its step did not change for {_READ_DEADLINE_S:g} s",
                "does the job make steps? In MindSpore only dp.step() tells them",
            )
        return reading

    async def _watch(self, longest_s: float, n_wanted: int = 100) -> Reading:
        self._points.clear()
        end_s = time.monotonic() + longest_s
        while len(self._points) < n_wanted and time.monotonic() < end_s:
            step = (await self._daemon.status()).step
            if step >= 0 and (not self._points or step > self._points[-1].step):
                self._points.append(Point(time.monotonic(), step))
            await asyncio.sleep(_LOOK_S)
        return Reading(tuple(self._points[1:] if len(self._points) > 2 else self._points), self._poll_s())

    def _poll_s(self) -> float:
        if len(self._points) < 2 or self._points[0].step <= _EARLY_STEP:
            return _EARLY_POLL_S
        first, last = self._points[0], self._points[-1]
        step_s = (last.at_s - first.at_s) / (last.step - first.step)
        return min(_LONGEST_POLL_S, max(_LEAST_POLL_S, step_s))

    async def send(self, request: Request) -> Reply:
        """Send the text to the process that reads for the job, and to no other."""
        self._began_s = self._ended_s = None
        answer = await self._send(text_of(request))
        if answer.state == "taken":
            self._has_sent = True
            await self._undo_at_end()
        return answer

    async def _send(self, text: str) -> Reply:
        reply = await self._daemon.ask(self._request(text))
        if reply.get("status") == "failed" or reply.get("commandStatus") != "effective":
            status = await self._daemon.status()
            return Reply(
                "refused",
                f"the daemon says {reply.get('commandStatus') or reply.get('status')!s}: "
                f"trace {status.state}, monitor {status.monitor}; "
                f"it knows none of the processes {self._pids}, or npu-monitor runs",
            )
        if reply.get("activityProfilersBusy"):
            return Reply("busy", "an earlier text waits at the daemon, and ours was dropped")
        matched = reply.get("processesMatched") or []
        if len(matched) != 1:
            return Reply("other", f"the daemon gave the text to {len(matched)} processes: {matched}")
        return Reply("silent")

    async def _undo_at_end(self) -> None:
        """Have the program on the host cancel when we are gone; TLS it cannot speak: our key stays here."""
        if self._daemon.context is not None:
            return
        frame = framed(self._request(text_of(_NOTHING)))
        data = base64.b64encode(frame).decode()
        talk = {
            "do": "talk",
            "link": next(links),
            "port": self._daemon.port,
            "data": data,
            "wants": True,
            "ends": True,
        }
        await self._session.ask("at_end", requests=[talk])

    async def verify(self, request: Request) -> Reply:
        """Return whether the job is ready for this start, as it tells once a second."""
        status = await self._daemon.status()
        if status.state in ("Ready", "Running"):
            if status.start == request.start:
                return Reply("taken")
            return Reply("other", f"the job waits for step {status.start}, which somebody else has asked for")
        if status.step > request.start:
            return Reply("late", f"the job was at step {status.step} before it was ready for {request.start}")
        return Reply("silent", f"the job is at step {status.step}, and not ready for {request.start}")

    async def progress(self, request: Request) -> Progress:
        """Return the progress: a short capture is over before it is ever reported as running."""
        status = await self._daemon.status()
        now_s = time.monotonic()
        if self._began_s is None and status.step >= request.start:
            self._began_s = now_s
            await self._session.ask("at_end", requests=[])
        if self._ended_s is None and status.step >= request.end and status.state == "Idle":
            self._ended_s = now_s
        return Progress(self._began_s is not None, self._ended_s is not None, self._began_s, self._ended_s)

    async def cancel(self) -> None:
        """Send a start that is past, as often as the daemon still holds an earlier text."""
        end_s = time.monotonic() + self._poll_s() + 2.0
        while self._has_sent and time.monotonic() < end_s:
            if (await self._send(text_of(_NOTHING))).state != "busy":
                break
            await asyncio.sleep(_LOOK_S)
        self._has_sent = False

    async def put_back(self) -> None:
        """Nothing was changed that stays."""
        await self._session.ask("at_end", requests=[])

    def _request(self, text: str) -> Mapping[str, object]:
        # More processes than there can be: the daemon counts those of the whole host.
        return {
            "fn": "setKinetOnDemandRequest",
            "config": text,
            "job_id": 0,
            "pids": self._pids,
            "process_limit": 64,
        }


_NOTHING = Request("", 0, 1, 0, "./", "Level0")
