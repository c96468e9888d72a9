"""Streams of columns that end in the middle, by a real sshd: what came whole stays, the rest comes later."""

from __future__ import annotations

import asyncio
import io
import shlex
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster_collect.transfer.pool import collect
from cluster_reduce.form import READY, SUFFIX
from cluster_run.ids import HostId
from cluster_run.manifest import HostOutcome
from tests.analysis.runs import write_small_run
from tests.collect.conftest import Start
from tests.collect.helpers import COLUMNS, OneHost, Recorder, no_leftovers
from tests.collect.transfer.test_columns import BEHIND_THE_SHELL, real_python
from tests.collect.transfer.test_fallbacks import found_first, only
from tests.commands import program

pytestmark = pytest.mark.slow  # a server for each, and hosts that hang

#: A loaded machine takes long to start a Python.
HANGS_S = 20.0
HANGS = replace(COLUMNS, progress_deadline_s=HANGS_S)
#: Without a compressor of its own, what a host has sent is known to the byte.
PLAIN = tuple(tool for tool in BEHIND_THE_SHELL if tool != "gzip")
#: Runs the reader, and lets its first worker do something else before its work.
_FIRST_WORKER = """
import os, sys, time
real, forked = os.fork, []
def fork():
    process = real()
    forked.append(process)
    if process == 0 and len(forked) == 1:
        {does}
    return process
os.fork = fork
exec(sys.argv[1])
"""
#: Now and then, as tests beside this one compute, too.
_COMPUTES = f"""end = time.monotonic() + {1.3 * HANGS_S}
        while time.monotonic() < end:
            sum(range(2_000_000))
            time.sleep(0.5)"""
_STANDS_STILL = "time.sleep(1000)"
#: What is run stands behind all options.
LAST = "for last; do :; done\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The profiler root of a host with four ranks."""
    run = write_small_run(tmp_path / "made", steps=2)
    return run / "cluster_profiler" / "1" / "profiler"


@pytest.fixture
def started(start: Start, tmp_path: Path) -> Callable[..., OneHost]:
    """Starts a host whose python3 is a script."""

    def with_python(script: str, tools: tuple[str, ...] = PLAIN) -> OneHost:
        programs = only(tmp_path / "bin", *tools, "tee", "rm")
        program(programs / "python3", script.replace("PYTHON", real_python()))
        return start(found_first(programs))

    return with_python


class Came:
    """A host that sends a part of its stream once, and is honest from then on."""

    def __init__(self, tmp_path: Path, then: str) -> None:
        self._sent, once = tmp_path / "sent", tmp_path / "once"
        once.touch()
        self.script = f"""
if rm {shlex.quote(str(once))} 2>/dev/null; then
  PYTHON "$@" | head -c 30000 | tee {shlex.quote(str(self._sent))}
  {then}
fi
exec PYTHON "$@"
"""

    def whole(self) -> set[str]:
        """The names of the files that came whole, and have more of the archive behind them."""
        sent = self._sent.read_bytes()
        assert sent.startswith(READY)
        names, last = [], ""
        with tarfile.open(fileobj=io.BytesIO(sent[len(READY) :]), mode="r:", ignore_zeros=False) as archive:
            try:
                for member in archive:
                    names.append(last)
                    last = member.name.removeprefix("./")
            except tarfile.ReadError:
                pass
        return set(names) - {""}


HANGS_THEN = "exec cat >/dev/null"


class Watch(Recorder):
    """Remembers what had come when the stream ended."""

    before: tuple[str, ...] = ()

    def retrying(self, host: HostId, reason: str, wait_s: float) -> None:
        super().retrying(host, reason, wait_s)
        self.before = tuple(self.stored)


def is_all_there(host: OneHost, outcome: HostOutcome) -> None:
    """All files came, the large ones as columns."""
    assert (outcome.state, outcome.reason, outcome.raw_because) == ("complete", "", "")
    assert no_leftovers(host.run)
    columns = [file for file in outcome.files if file.reduced_from_bytes is not None]
    assert {Path(file.source).name for file in columns} == {"communication.json", "communication_matrix.json"}
    for file in outcome.files:
        if file.reduced_from_bytes is None:
            assert (host.run / file.path).read_bytes() == (host.root / file.source).read_bytes()


def of_run(host: OneHost, stored: tuple[str, ...] | list[str]) -> set[str]:
    prefix = f"cluster_profiler/{host.spec.host}/profiler/"
    return {path.removeprefix(prefix) for path in stored}


@pytest.mark.parametrize(
    ("then", "why"),
    [
        (HANGS_THEN, "no answer for 20 s while waiting for its columns"),
        ("kill -9 $$", "the reader ended early"),
    ],
    ids=["hangs", "is killed"],
)
def test_what_came_before_a_reader_hung_or_was_killed_stays_and_the_rest_comes_as_columns(
    started: Callable[..., OneHost], tmp_path: Path, then: str, why: str
) -> None:
    came, watch = Came(tmp_path, then), Watch()
    host = started(came.script)
    outcome = host.collect(HANGS, watch)
    is_all_there(host, outcome)
    assert [why in reason for reason in watch.retries] == [True]
    assert of_run(host, watch.before) == came.whole()
    assert any(name.endswith(SUFFIX) for name in watch.before)
    assert len(watch.stored) == len(set(watch.stored)) == len(outcome.files)


class Interrupt(Watch):
    """Ends the call when the first columns are here."""

    task: asyncio.Future[object] | None = None

    def file_stored(self, host: HostId, path: str, size_bytes: int) -> None:
        super().file_stored(host, path, size_bytes)
        if self.task is not None and path.endswith(SUFFIX):
            self.task.cancel()


@pytest.mark.parametrize(
    ("failure", "limits"),
    [
        ("stalled", {"n_attempts": 1}),
        ("deadline", {"host_deadline_s": HANGS_S, "progress_deadline_s": 10 * HANGS_S}),
        ("", {}),
    ],
    ids=["hang", "host deadline", "Ctrl-C"],
)
def test_however_a_call_ends_what_came_whole_stays_and_the_next_one_fetches_the_rest(
    started: Callable[..., OneHost], tmp_path: Path, failure: str, limits: dict[str, Any]
) -> None:
    came, watch = Came(tmp_path, HANGS_THEN), Interrupt()
    host = started(came.script)
    options = replace(HANGS, **limits)
    if failure:
        outcome = host.collect(options, watch)
        assert (outcome.state, outcome.failure) == ("partial", failure)
        assert {file.path for file in outcome.files if file.state == "stored"} == set(watch.stored)
        assert {file.reason for file in outcome.files if file.state != "stored"} == {"not fetched"}
    else:

        async def interrupted() -> None:
            watch.task = asyncio.ensure_future(collect([host.spec], host.run, options, None, watch))
            with pytest.raises(asyncio.CancelledError):
                await watch.task

        asyncio.run(interrupted())
    assert set(host.landed()) == of_run(host, watch.stored) <= came.whole()
    assert watch.stored
    assert no_leftovers(host.run)
    rest = Recorder()
    outcome = host.collect(COLUMNS, rest)
    is_all_there(host, outcome)
    assert sorted([*watch.stored, *rest.stored]) == sorted(file.path for file in outcome.files)


def test_a_reader_that_computes_for_long_is_not_taken_for_one_that_hangs(
    started: Callable[..., OneHost],
) -> None:
    busy = _FIRST_WORKER.replace("{does}", _COMPUTES)
    host = started(LAST + f"exec PYTHON -E -s -S -B -c '{busy}' \"$last\"", BEHIND_THE_SHELL)
    watch = Watch()
    is_all_there(host, host.collect(HANGS, watch))
    assert watch.retries == []


def test_a_file_whose_reader_hangs_comes_as_it_is_and_the_others_that_came_stay(
    started: Callable[..., OneHost],
) -> None:
    stuck = _FIRST_WORKER.replace("{does}", _STANDS_STILL)
    host = started(LAST + f"exec PYTHON -E -s -S -B -c '{stuck}' \"$last\"", BEHIND_THE_SHELL)
    watch = Watch()
    outcome = host.collect(HANGS, watch)
    assert (outcome.state, outcome.raw_because) == ("complete", watch.retries[-1])
    assert len(watch.stored) == len(set(watch.stored)) == len(outcome.files)
    for file in outcome.files:
        assert (host.run / file.path).read_bytes() == (host.root / file.source).read_bytes()
