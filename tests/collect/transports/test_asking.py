"""How many hosts may owe an answer at once, told on a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from cluster_collect.transports.asking import Asking, Turn

#: Says who answers next, and when: takes when each host was asked, and the time.
Machine = Callable[[Mapping[int, float], float], tuple[int, float]]


def one_after_the_other(asked: Mapping[int, float], now_s: float) -> tuple[int, float]:
    """All are one machine, which takes a tenth of a second for each."""
    return min(asked), now_s + 0.1


def each_for_itself(asked: Mapping[int, float], now_s: float) -> tuple[int, float]:
    """Every host has a machine of its own; half of them take three times as long."""
    ends = {host: since_s + 0.1 * (1 + 2 * (host % 2)) for host, since_s in asked.items()}
    first = min(ends, key=lambda host: ends[host])
    return first, max(now_s, ends[first])


def most_at_once(n_hosts: int, machine: Machine) -> tuple[int, float]:
    """Ask all hosts; return how many owed an answer at once, and when the last one had answered."""
    now_s = 0.0
    asking = Asking(lambda: now_s)
    owing: dict[int, Turn] = {}
    asked: dict[int, float] = {}

    async def ask(host: int) -> None:
        owing[host] = await asking.turn()
        asked[host] = now_s

    async def scenario() -> tuple[int, float]:
        nonlocal now_s
        most = 0
        tasks = [asyncio.ensure_future(ask(host)) for host in range(n_hosts)]
        for _ in range(n_hosts):
            for _ in range(3):  # so that whoever was let in asks
                await asyncio.sleep(0)
            most = max(most, len(asked))
            host, now_s = machine(asked, now_s)
            del asked[host]
            owing.pop(host).answered()
        await asyncio.gather(*tasks)
        return most, now_s

    return asyncio.run(scenario())


def test_hosts_that_share_one_machine_are_not_asked_all_at_once() -> None:
    most, _ = most_at_once(200, one_after_the_other)
    assert most < 40


def test_hosts_that_share_nothing_are_soon_all_asked() -> None:
    most, last_s = most_at_once(1000, each_for_itself)
    assert most > 200
    assert last_s < 3  # eight at once would take 25 s


def test_a_host_that_sends_files_lets_others_wait_and_waits_for_nobody() -> None:
    async def scenario() -> None:
        asking = Asking()
        sending = [asking.at_once() for _ in range(20)]
        waiting = asyncio.ensure_future(asking.turn())
        await asyncio.sleep(0)
        assert not waiting.done()
        for turn in sending:
            turn.give_back()
            turn.give_back()
        (await waiting).give_back()
        assert [(await asking.turn()).give_back() for _ in range(9)] == [None] * 9

    asyncio.run(scenario())


def test_who_gives_up_waiting_takes_nobodys_turn() -> None:
    async def scenario() -> None:
        asking = Asking()
        turns = [await asking.turn() for _ in range(8)]
        gone, next_one = (asyncio.ensure_future(asking.turn()) for _ in range(2))
        await asyncio.sleep(0)
        turns[0].give_back()
        gone.cancel()  # its turn has come, and it has not heard of it
        await asyncio.wait_for(next_one, 5)
        assert gone.cancelled()

    asyncio.run(scenario())
