"""Our own end: cancelled, killed, or by a power cut; what is there is right, and the next call goes on."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from cluster_collect.transfer.pool import collect
from cluster_run.ids import HostId
from cluster_run.manifest import read_manifest
from tests.collect.helpers import PLAIN, OneHost, Recorder, file_of, make_capture, no_leftovers, tree

pytestmark = pytest.mark.slow  # many servers are started

REPOSITORY = Path(__file__).parents[3]


def test_a_cancelled_collection_leaves_no_manifest_and_goes_on_from_there(host: OneHost) -> None:
    make_capture(host.root, 1, size_bytes=300_000, n_more=60)

    class Interrupt(Recorder):
        def file_stored(self, host: HostId, path: str, size_bytes: int) -> None:
            super().file_stored(host, path, size_bytes)
            if len(self.stored) == 10:
                task.cancel()

    first = Interrupt()
    options = replace(PLAIN, bandwidth_bytes_per_s=200_000)

    async def interrupted() -> None:
        nonlocal task
        task = asyncio.ensure_future(collect([host.spec], host.run, options, None, first))
        with pytest.raises(asyncio.CancelledError):
            await task

    task: asyncio.Future[object] = asyncio.Future(loop=asyncio.new_event_loop())
    task.get_loop().close()
    asyncio.run(interrupted())
    assert not (host.run / "manifest.json").exists()
    assert no_leftovers(host.run)
    second = Recorder()
    outcome = host.collect_all(PLAIN, second)
    assert set(first.stored).isdisjoint(second.stored)
    assert len(first.stored) + len(second.stored) == outcome.files.n_stored


N_KILLS = 8


def test_kill_9_at_8_moments_leaves_no_wrong_file_and_nothing_is_fetched_twice(host: OneHost) -> None:
    """Whatever lands is right at every moment, and nothing comes twice."""
    make_capture(host.root, 1, size_bytes=150_000, n_more=30 * N_KILLS)
    truth, chance = tree(host.root), random.Random(3)
    specs = host.run.with_suffix(".json")
    specs.write_text(json.dumps([asdict(host.spec)]))
    command = [sys.executable, "-m", "tests.collect.transfer.child", str(specs), str(host.run)]
    seen: list[str] = []
    for _ in range(N_KILLS):
        process = subprocess.Popen([*command, "150000"], stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)
        assert process.stdout is not None
        if chance.random() < 0.3:
            time.sleep(0.6 * chance.random())  # anywhere, from the first import to the listing
        else:
            seen += [process.stdout.readline().strip() for _ in range(chance.randrange(1, 30))]
        process.send_signal(signal.SIGKILL)
        seen += process.stdout.read().split("\n")[:-1]
        process.wait()
        process.stdout.close()
        landed = {name: content for name, content in host.landed().items() if ".part" not in name}
        assert {name for name, content in landed.items() if truth[name] != content} == set()
        assert not (host.run / "manifest.json").exists()
    watch = Recorder()
    outcome = host.collect_all(PLAIN, watch)
    everything = [*filter(None, seen), *watch.stored]
    assert len(everything) == len(set(everything))
    # A kill between files' landing and their announcement costs the announcement, not the files.
    assert len(everything) <= outcome.files.n_stored


def test_a_journal_that_a_power_cut_made_a_liar_is_not_believed(host: OneHost) -> None:
    """A journal's file with the right size and time but another content is fetched again."""
    file = file_of(host.collect(), "communication.json")
    (host.run / "manifest.json").unlink()
    line = json.dumps({"server_id": host.spec.server_id, **asdict(file)})
    (host.run / ".cluster-collect.journal").write_text(line + "\n" + line[:40])
    landed = host.run / file.path
    landed.write_bytes(bytes(file.size_bytes))
    os.utime(landed, ns=(file.mtime_ns, file.mtime_ns))
    host.collect_all()


def test_a_line_of_the_journal_that_was_cut_short_costs_only_itself(host: OneHost) -> None:
    """The next call's first line must not become the rest of it."""
    journal = host.run / ".cluster-collect.journal"
    journal.parent.mkdir()
    journal.write_text('{"server_id": "server-1", "pa')

    class Interrupt(Recorder):
        def file_stored(self, host: HostId, path: str, size_bytes: int) -> None:
            lines.extend(journal.read_text().splitlines())

    lines: list[str] = []
    outcome = host.collect(watch=Interrupt())
    assert json.loads(lines[1])["path"] in {file.path for file in outcome.files}


def test_what_a_kill_left_of_our_own_files_is_removed_by_the_next_call(host: OneHost) -> None:
    of_host = host.run / "cluster_profiler" / "1"
    left = [host.run / ".host_ips_mapping.txt.0123456789ab.part", of_host / ".prepare.log.0123456789ab.part"]
    left += [of_host / "profiler" / ".part-1-1"]
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("half")
    host.collect()
    assert [path for path in left if path.exists()] == []


def test_the_old_manifest_is_out_of_sight_while_files_change_under_it(host: OneHost) -> None:
    host.collect()
    next(host.root.rglob("profiler_metadata.json")).write_text("new")
    manifest = host.run / "manifest.json"

    class Look(Recorder):
        def file_stored(self, host: HostId, path: str, size_bytes: int) -> None:
            self.notes.append(str(manifest.exists()))

    watch = Look()
    outcome = host.collect(watch=watch)
    assert watch.notes[-1] == "False"
    assert read_manifest(manifest).hosts == (outcome,)
