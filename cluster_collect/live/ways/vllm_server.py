"""vLLM's endpoints: every API server gets the order to profile at once. Its start options say how long.

Servers share no step: each counts its own iterations from the request on.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from cluster_collect.faults import RemoteFailureError
from cluster_collect.live.host.processes import SHARED
from cluster_collect.live.options import LiveOptions
from cluster_collect.live.session import Session
from cluster_collect.live.sight import Process
from cluster_collect.live.ways.protocol import Progress, Reading, Reply, Request
from cluster_collect.live.whose import Target
from cluster_run.files import json_of

_PORT = 8000
_DEADLINE_S = 20.0
_STOP_DEADLINE_S = 600.0


class VllmWay:
    """The API servers of one host."""

    has_steps = False

    def __init__(self, session: Session, target: Target, options: LiveOptions) -> None:
        self._session = session
        self._ports = [options.port or _port(one) for one in target.ranks]
        self._started: list[int] = []
        self._began_s = 0.0
        self.directory = _profile_directory(target.ranks[0])

    async def hold(self, owner: str) -> str:
        """Lock the servers, by a file that is no more than that."""
        if not self.directory.startswith("/"):
            raise RemoteFailureError(
                "the server does not say where it writes profiles",
                "start it with --profiler-config and an absolute torch_profiler_dir",
            )
        await self._session.lock(SHARED, f".cluster-live-vllm-{self._ports[0]}.lock", owner)
        return str(self._session.host)

    async def pending(self) -> str:
        """Nothing tells whether somebody profiles; a second start is refused by the server."""
        return ""

    async def peek(self) -> Reading:
        """Servers tell no step."""
        return Reading((), 0.0)

    async def read(self, directory: str, ranks: frozenset[int]) -> Reading:
        """Servers tell no step."""
        raise RemoteFailureError("API servers tell no step")

    async def send(self, request: Request) -> Reply:
        """Have all servers of the host begin."""
        self._began_s = time.monotonic()
        stops = [
            {"do": "post", "port": port, "path": "/stop_profile", "longest_s": _STOP_DEADLINE_S}
            for port in self._ports
        ]
        await self._session.ask("at_end", requests=stops)
        for port in self._ports:
            reply = await self._session.ask("post", port=port, path="/start_profile", longest_s=_DEADLINE_S)
            if reply["status"] != 200:
                return Reply("refused", _why(port, reply["status"], str(reply["text"])))
            self._started.append(port)
        return Reply("taken")

    async def verify(self, request: Request) -> Reply:
        """An answer of 200 was all there is to know."""
        return Reply("taken")

    async def progress(self, request: Request) -> Progress:
        """Stop what the servers have not stopped by themselves; that waits until their files are written."""
        await self.cancel()
        return Progress(True, True, self._began_s, time.monotonic())

    async def cancel(self) -> None:
        """Have them end; one that has done its iterations says so and has nothing to do."""
        while self._started:
            port = self._started.pop()
            await self._session.ask(
                "post",
                deadline_s=_STOP_DEADLINE_S + _DEADLINE_S,
                port=port,
                path="/stop_profile",
                longest_s=_STOP_DEADLINE_S,
            )

    async def put_back(self) -> None:
        """Nothing was changed that stays."""
        await self._session.ask("at_end", requests=[])


def _port(server: Process) -> int:
    text = _option(server.command, "--port")
    return int(text) if text.isdecimal() else _PORT


def _profile_directory(server: Process) -> str:
    """Return where the server writes: its start options say so, and cannot be changed later."""
    try:
        document = json_of(_option(server.command, "--profiler-config") or "{}")
    except ValueError:
        document = {}
    reply = document.get("torch_profiler_dir", "") if isinstance(document, dict) else ""
    return str(reply or server.profile_directory)


def _option(command: Sequence[str], name: str) -> str:
    for number, word in enumerate(command):
        if word == name and number + 1 < len(command):
            return command[number + 1]
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return ""


def _why(port: int, status: int, text: str) -> str:
    if status == 404:
        return f"the server on port {port} has no /start_profile: it was started without --profiler-config"
    return f"the server on port {port} answered {status}: {text[:200]}"
