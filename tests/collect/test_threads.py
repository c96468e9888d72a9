"""Calls from threads into the loop."""

from __future__ import annotations

import asyncio
import gc

import pytest

from cluster_collect.threads import in_loop


def test_a_loop_that_has_ended_leaves_no_coroutine_that_nobody_awaits() -> None:
    """As where a signal ends a call while a thread still receives; a warning would fail this test."""
    loop = asyncio.new_event_loop()
    loop.close()
    made: list[int] = []

    async def work() -> None:
        made.append(1)

    with pytest.raises(RuntimeError):
        in_loop(loop, work)
    gc.collect()
    assert not made
