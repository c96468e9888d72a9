"""Caps, bounds, deadlines and the lock, without a network."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_collect.entries import same_mtime, unsafe_because
from cluster_collect.faults import RunLockedError, StalledError, UnwritableError
from cluster_collect.spec import Server, parse_server
from cluster_collect.store.run_files import LOCK_NAME, locked
from cluster_collect.transfer.retry import backoff_s
from cluster_collect.transports.bounds import BURST_S, BandwidthCap, Bounds
from cluster_collect.watchdog import Watchdog


@given(st.lists(st.integers(1, 300_000), min_size=1, max_size=200), st.integers(10_000, 10_000_000))
def test_a_cap_is_kept_over_time_whatever_the_pieces(pieces: list[int], rate: int) -> None:
    now = 0.0
    cap = BandwidthCap(rate, clock=lambda: now)
    for piece in pieces:
        now += cap.pause_after(piece)
    assert now >= sum(pieces) / rate - BURST_S - 1e-6
    assert now <= sum(pieces) / rate + 1e-6


def test_a_cap_does_not_save_up_for_later() -> None:
    now = 0.0
    cap = BandwidthCap(1000, clock=lambda: now)
    now = 3600.0
    assert cap.pause_after(1250) == pytest.approx(1.0)


@given(st.integers(1, 100))
def test_waits_grow_to_their_bound_and_are_spread(attempt: int) -> None:
    wait_s = backoff_s(attempt, 1.0, 60.0)
    assert 0.0 <= wait_s <= min(60.0, 2.0 ** (attempt - 1))


def test_no_more_handshakes_than_allowed_at_a_gateway_or_in_all() -> None:
    async def most(bounds: Bounds, gateways: list[str]) -> int:
        running = most_running = 0

        async def one(gateway: str) -> None:
            nonlocal running, most_running
            async with bounds.handshake(gateway):
                running += 1
                most_running = max(most_running, running)
                await asyncio.sleep(0)
                running -= 1

        await asyncio.gather(*(one(gateway) for gateway in gateways))
        return most_running

    assert asyncio.run(most(Bounds(100, 5, 1), ["gate"] * 50)) == 5
    assert asyncio.run(most(Bounds(7, 5, 1), [f"host{n}" for n in range(50)])) == 7


def test_a_slot_given_back_early_lets_the_next_host_start_and_is_not_freed_twice() -> None:
    async def scenario() -> list[str]:
        bounds = Bounds(1, 1, 1)
        events: list[str] = []

        async def quiet() -> None:
            async with bounds.transfer() as slot:
                slot.give_back()
                slot.give_back()
                await asyncio.sleep(0.05)
                events.append("quiet")

        async def quick(name: str) -> None:
            async with bounds.transfer():
                events.append(f"{name} in")
                await asyncio.sleep(0)
                events.append(f"{name} out")

        await asyncio.gather(quiet(), quick("a"), quick("b"))
        return events

    assert asyncio.run(scenario()) == ["a in", "a out", "b in", "b out", "quiet"]


def test_silence_ends_work_and_progress_keeps_it_alive() -> None:
    async def scenario() -> None:
        watchdog = Watchdog(0.2)

        async def busy() -> str:
            for _ in range(8):
                await asyncio.sleep(0.05)
                watchdog.progress()
            return "done"

        assert await watchdog.guard(busy(), "working") == "done"
        quiet: list[str] = []
        silent = Watchdog(0.1, quiet_s=0.02, when_quiet=lambda: quiet.append("quiet"))
        with pytest.raises(StalledError, match=r"no answer for 0\.1 s while sleeping"):
            await silent.guard(asyncio.sleep(60), "sleeping")
        assert quiet == ["quiet"]

    asyncio.run(scenario())


def test_the_lock_names_its_owner_and_ends_with_the_process(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from cluster_collect.store.run_files import locked\n"
        "with locked(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    with pytest.raises(RunLockedError, match=f"process {process.pid} on "), locked(tmp_path):
        raise AssertionError("two owners")
    process.kill()
    process.wait()
    process.stdout.close()
    assert (tmp_path / LOCK_NAME).exists()
    with locked(tmp_path):
        pass
    assert not (tmp_path / LOCK_NAME).exists()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UnwritableError, match="file/run"), locked(tmp_path / "file" / "run"):
        raise AssertionError("locked a file")


@pytest.mark.parametrize(
    ("text", "jump"),
    [
        ("bastion", Server(None, "bastion", None)),
        ("me@bastion:2222", Server("me", "bastion", 2222)),
        ("ssh://me@bastion", Server("me", "bastion", None)),
        ("[fe80::1]:22", Server(None, "fe80::1", 22)),
        ("fe80::1", Server(None, "fe80::1", None)),
        ("bastion:" + "9" * 5000, Server(None, "bastion:" + "9" * 5000, None)),
    ],
)
def test_jump_hosts_are_read(text: str, jump: Server) -> None:
    assert parse_server(text) == jump


@given(st.binary(max_size=60))
def test_a_path_that_is_called_safe_stays_below_its_directory(path: bytes) -> None:
    if not unsafe_because(path):
        assert os.path.normpath(os.path.join(b"/base", path)).startswith(b"/base/")
        assert b"\0" not in path


def test_whole_seconds_are_compared_where_one_side_knows_no_more() -> None:
    assert same_mtime(5_000_000_000, 5_999_999_999)
    assert not same_mtime(5_000_000_001, 5_999_999_999)
    assert not same_mtime(5_000_000_000, 6_000_000_000)
