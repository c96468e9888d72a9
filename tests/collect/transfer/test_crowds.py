"""Many hosts at once: none is blamed for what this machine, or the others, keep from it."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from cluster_collect.watchdog import Watchdog
from cluster_run.ids import HostId, ServerId
from tests.collect.conftest import Start
from tests.collect.helpers import FULL, OneHost, collected, make_capture


def test_time_in_which_this_process_reads_nothing_is_no_silence_of_a_host() -> None:
    async def scenario() -> str:
        loop = asyncio.get_running_loop()
        answer = loop.create_future()

        async def waited() -> str:
            loop.call_later(0.2, answer.set_result, "answered")
            loop.call_later(0.1, time.sleep, 1.5)  # busy with other hosts, or without a processor
            await answer
            await asyncio.sleep(0.2)
            return "answered"

        return await Watchdog(1.0).guard(waited(), "waiting")

    assert asyncio.run(scenario()) == "answered"


@contextmanager
def one_by_one(seconds: float) -> Iterator[int]:
    """A port that keeps every caller for some time, one after the other, in the order of their calls."""

    def serve() -> None:
        while True:
            caller, _ = listener.accept()
            with caller:
                if caller.recv(1) == b"x":  # the test's own
                    return
                time.sleep(seconds)

    with socket.create_server(("127.0.0.1", 0), backlog=200) as listener:
        port = listener.getsockname()[1]
        serving = threading.Thread(target=serve)
        serving.start()
        try:
            yield port
        finally:
            with socket.create_connection(("127.0.0.1", port)) as last:
                last.send(b"x")
            serving.join()


@pytest.mark.slow
def test_hosts_that_one_machine_serves_one_by_one_are_all_collected(start: Start, tmp_path: Path) -> None:
    """Asked all at once, the last shell starts long after the time that a silent host is given."""
    roots = [tmp_path / f"root{number}" for number in range(50)]
    for number, root in enumerate(roots):
        make_capture(root, number, 1000)
    with one_by_one(0.25) as port:
        waiting = f"exec 3<>/dev/tcp/127.0.0.1/{port}; printf h >&3; cat <&3"
        shell = f"bash -c '{waiting}; exec 3<&-; eval \"$SSH_ORIGINAL_COMMAND\"'"
        host = start({"ForceCommand": shell, "MaxStartups": "100"})
        specs = [
            host.having(host=HostId(str(n)), server_id=ServerId(str(n)), profiler_root=str(root)).spec
            for n, root in enumerate(roots, 1)
        ]
        options = replace(FULL, listing_deadline_s=8.0, n_attempts=1, n_jobs=50)
        manifest = collected(specs, host.run, options)
    assert {(one.state, one.reason) for one in manifest.hosts} == {("complete", "")}


@pytest.mark.slow
def test_hosts_that_hang_hold_up_nobody(host: OneHost, start: Start) -> None:
    hung = start({"ForceCommand": "sleep 600"})
    specs = [hung.having(host=HostId(str(n)), server_id=ServerId(f"hung-{n}")).spec for n in range(2, 14)]
    options = replace(FULL, listing_deadline_s=60.0, deadline_s=30.0, n_attempts=1)
    first, *others = collected([host.spec, *specs], host.run, options).hosts
    assert {one.failure for one in others} == {"deadline"}
    assert first.state == "complete", first.reason
