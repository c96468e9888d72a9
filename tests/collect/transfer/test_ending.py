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

from cluster_collect.spec import HostSpec
from cluster_collect.transfer.pool import collect
from cluster_run.ids import HostId
from cluster_run.manifest import read_manifest
from demo.sshd import SshLab, SshServer
from tests.collect.helpers import (
    FULL,
    PLAIN,
    Recorder,
    collected,
    file_of,
    host_tree,
    make_capture,
    no_leftovers,
    only_host,
    spec_for,
    tree,
)

pytestmark = pytest.mark.slow  # many servers are started

REPOSITORY = Path(__file__).parents[3]


def test_a_cancelled_collection_leaves_no_manifest_and_goes_on_from_there(
    lab: SshLab, server: SshServer, tmp_path: Path
) -> None:
    make_capture(tmp_path / "host", size_bytes=300_000, n_more=60)
    spec = spec_for(lab, server, tmp_path / "host")

    class Interrupt(Recorder):
        def file_stored(self, host: HostId, path: str, size_bytes: int) -> None:
            super().file_stored(host, path, size_bytes)
            if len(self.stored) == 10:
                task.cancel()

    first = Interrupt()
    options = replace(PLAIN, bandwidth_bytes_per_s=200_000)

    async def interrupted() -> None:
        nonlocal task
        task = asyncio.ensure_future(collect([spec], tmp_path / "run", options, None, first))
        with pytest.raises(asyncio.CancelledError):
            await task

    task: asyncio.Future[object] = asyncio.Future(loop=asyncio.new_event_loop())
    task.get_loop().close()
    asyncio.run(interrupted())
    assert not (tmp_path / "run" / "manifest.json").exists()
    assert no_leftovers(tmp_path / "run")

    second = Recorder()
    outcome = only_host(collected(spec, tmp_path / "run", PLAIN, second))
    assert outcome.state == "complete", outcome.reason
    assert set(first.stored).isdisjoint(second.stored)
    assert len(first.stored) + len(second.stored) == outcome.n_stored
    assert host_tree(tmp_path / "run") == tree(tmp_path / "host")


N_KILLS = 9


def killed_again_and_again(spec: HostSpec, run: Path, truth: dict[str, bytes], chance: random.Random) -> None:
    """Call it `N_KILLS` times and kill it each time; whatever lands is right, and nothing comes twice."""
    run.with_suffix(".json").write_text(json.dumps([asdict(spec)]))
    command = [sys.executable, "-m", "tests.collect.transfer.child", str(run.with_suffix(".json")), str(run)]
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
        landed = {name: content for name, content in host_tree(run).items() if ".part" not in name}
        assert {name for name, content in landed.items() if truth[name] != content} == set()
        assert not (run / "manifest.json").exists()
    watch = Recorder()
    outcome = only_host(collected(spec, run, PLAIN, watch))
    assert outcome.state == "complete", outcome.reason
    assert host_tree(run) == truth
    assert no_leftovers(run)
    everything = [*filter(None, seen), *watch.stored]
    assert len(everything) == len(set(everything))
    # A kill between files' landing and their announcement costs the announcement, not the files.
    assert len(everything) <= outcome.n_stored


@pytest.mark.parametrize("seed", [3, 4, 5])
def test_kill_9_at_27_moments_leaves_no_wrong_file_and_nothing_is_fetched_twice(
    lab: SshLab, server: SshServer, tmp_path: Path, seed: int
) -> None:
    make_capture(tmp_path / "host", size_bytes=150_000, n_more=900)
    spec = spec_for(lab, server, tmp_path / "host")
    killed_again_and_again(spec, tmp_path / "run", tree(tmp_path / "host"), random.Random(seed))


def test_a_journal_that_a_power_cut_made_a_liar_is_not_believed(
    lab: SshLab, server: SshServer, tmp_path: Path
) -> None:
    """A journal's file with the right size and time but another content is fetched again."""
    make_capture(tmp_path / "host")
    spec = spec_for(lab, server, tmp_path / "host")
    outcome = only_host(collected(spec, tmp_path / "run", FULL))
    file = file_of(outcome, "communication.json")
    (tmp_path / "run" / "manifest.json").unlink()
    line = json.dumps({"server_id": spec.server_id, **asdict(file)})
    (tmp_path / "run" / ".cluster-collect.journal").write_text(line + "\n" + line[:40])
    landed = tmp_path / "run" / file.path
    landed.write_bytes(bytes(file.size_bytes))
    os.utime(landed, ns=(file.mtime_ns, file.mtime_ns))
    collected(spec, tmp_path / "run", FULL)
    assert host_tree(tmp_path / "run") == tree(tmp_path / "host")


def test_a_line_of_the_journal_that_was_cut_short_costs_only_itself(
    lab: SshLab, server: SshServer, tmp_path: Path
) -> None:
    """The next call's first line must not become the rest of it."""
    make_capture(tmp_path / "host")
    spec = spec_for(lab, server, tmp_path / "host")
    journal = tmp_path / "run" / ".cluster-collect.journal"
    journal.parent.mkdir()
    journal.write_text('{"server_id": "server-1", "pa')

    class Interrupt(Recorder):
        def file_stored(self, host: HostId, path: str, size_bytes: int) -> None:
            lines.extend(journal.read_text().splitlines())

    lines: list[str] = []
    outcome = only_host(collected(spec, tmp_path / "run", FULL, Interrupt()))
    assert json.loads(lines[1])["path"] in {file.path for file in outcome.files}


def test_what_a_kill_left_of_our_own_files_is_removed_by_the_next_call(
    lab: SshLab, server: SshServer, tmp_path: Path
) -> None:
    make_capture(tmp_path / "host")
    run = tmp_path / "run"
    left = [run / ".host_ips_mapping.txt.0123456789ab.part"]
    left += [run / "cluster_profiler" / "1" / ".prepare.log.0123456789ab.part"]
    left += [run / "cluster_profiler" / "1" / "profiler" / ".part-1-1"]
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("half")
    collected(spec_for(lab, server, tmp_path / "host"), run, FULL)
    assert [path for path in left if path.exists()] == []


def test_the_old_manifest_is_out_of_sight_while_files_change_under_it(
    lab: SshLab, server: SshServer, tmp_path: Path
) -> None:
    capture = make_capture(tmp_path / "host")
    spec = spec_for(lab, server, tmp_path / "host")
    collected(spec, tmp_path / "run", FULL)
    (capture / "profiler_metadata.json").write_text("new")

    class Look(Recorder):
        def file_stored(self, host: HostId, path: str, size_bytes: int) -> None:
            super().file_stored(host, path, size_bytes)
            self.notes.append(str((tmp_path / "run" / "manifest.json").exists()))

    watch = Look()
    manifest = collected(spec, tmp_path / "run", FULL, watch)
    assert watch.notes[-1] == "False"
    assert read_manifest(tmp_path / "run" / "manifest.json") == manifest
