"""Runs on a host as long as somebody holds its standard input: answers requests, one line of JSON each.

Whatever was begun here is undone when its other end is gone: the requests given with `at_end` are carried out
then, so that neither Ctrl-C nor a lost connection leaves a capture pending in somebody's job.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from cluster_collect.live.host import captures, links, processes, profiler_logs, settings

#: A request is a few kB; more than this is none.
MAX_LINE_BYTES = 1 << 20


class Agent:
    """The requests of one controller, and what is to be done when it is gone."""

    def __init__(self) -> None:
        self._files = settings.Files()
        self._logs = profiler_logs.Logs()
        self._at_end: list[dict[str, Any]] = []
        self._requests: dict[str, Callable[..., Any]] = {
            "clock": time.time,
            "look": processes.look,
            "lock": self._files.lock,
            "replace": self._files.replace,
            "put_back": self._files.put_back,
            "read": settings.read,
            "events": self._logs.events,
            "numbers": self._logs.numbers,
            "captures": captures.captures,
            "parse": captures.parse,
            "make": captures.make,
            "remove": captures.remove,
            "talk": links.talk,
            "post": links.post,
            "sleep": _sleep,
            "at_end": self._remember,
        }

    def _remember(self, requests: list[dict[str, Any]]) -> None:
        self._at_end = requests

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Carry out one request; what goes wrong is an answer, too."""
        try:
            arguments = {name: value for name, value in request.items() if name != "do"}
            return {"answer": self._requests[request["do"]](**arguments)}
        except settings.HeldError as error:
            return {"held": str(error)}
        except Exception as error:  # the caller gets any error as an answer
            return {"error": _said(error)}

    def end(self) -> None:
        """Undo what was begun; if one thing fails, the others are still undone."""
        for request in self._at_end:
            self.answer(request)
        self._files.unlock()


def _said(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return f"{type(error).__name__}: {error}" if type(error) is not ValueError else str(error)


def _sleep(secs: float) -> None:
    time.sleep(secs)


def main() -> int:
    """Answer until standard input ends; return the exit code."""
    # A terminal's Ctrl-C goes to all of its processes: ours ends on request, or when its connection closes.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    agent = Agent()
    try:
        _serve(agent)
    finally:
        agent.end()
    return 0


def _serve(agent: Agent) -> None:
    waiting = b""
    _say({"answer": "ready"})
    while True:
        line, newline, rest = waiting.partition(b"\n")
        if not newline:
            piece = os.read(0, 1 << 16)
            waiting += piece
            if not piece or len(waiting) > MAX_LINE_BYTES:
                return
            continue
        waiting = rest
        _say(agent.answer(json.loads(line.decode())))


def _say(answer: dict[str, Any]) -> None:
    line = json.dumps(answer, ensure_ascii=True).encode() + b"\n"
    try:
        while line:
            line = line[os.write(1, line) :]
    except OSError:
        return  # the caller is gone: the end of standard input follows
