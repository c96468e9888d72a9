"""Hosts that hang, drip or go on for ever: each is given up, and none holds up the others."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest

from cluster_collect.spec import CollectOptions
from tests.collect.conftest import Start
from tests.collect.helpers import FULL, OneHost, Recorder, collected, tree
from tests.collect.liar import LISTING, TOOLS, Liar, met

pytestmark = pytest.mark.slow  # many servers are started


def drip(channel: paramiko.Channel, data: bytes) -> None:
    """Send a byte now and then, until the collector hangs up."""
    while True:
        for position in range(len(data)):
            channel.sendall(data[position : position + 1])
            time.sleep(0.05)


@pytest.mark.parametrize("phase", ["listing", "files"])
def test_a_host_that_drips_is_given_up(tmp_path: Path, keys: tuple[Path, Path], phase: str) -> None:
    class Dripping(Liar):
        def answer(self, channel: paramiko.Channel, marker: bytes) -> None:
            if phase == "listing":
                channel.sendall(TOOLS + b"listing\0")
                drip(channel, b"f 1 1.0 a_ascend_pt/x\0")
            super().answer(channel, marker)

    options = replace(FULL, n_attempts=2, listing_deadline_s=1.0, progress_deadline_s=1.0)
    liar = Dripping(LISTING, lambda channel, marker: drip(channel, b"x" * 512))
    outcome = met(tmp_path, keys, liar, options=options)
    assert (outcome.state, outcome.failure) == ("failed", "stalled")


def test_a_shell_that_hangs_after_the_login_is_not_tried_as_often_as_one_that_answers(start: Start) -> None:
    watch = Recorder()
    options = replace(FULL, n_attempts=5, listing_deadline_s=4.0, give_up_s=8.0)
    outcome = start({"ForceCommand": "sleep 600"}).collect(options, watch)
    assert (outcome.state, outcome.failure) == ("failed", "stalled")
    assert len(watch.retries) == 1


def test_a_host_that_hangs_is_given_up_within_a_minute_by_default() -> None:
    options = CollectOptions()
    waits_s = [options.backoff_first_s * 2**attempt for attempt in range(options.n_attempts - 1)]
    for deadline_s in (
        options.connect_deadline_s,
        options.login_deadline_s,
        options.listing_deadline_s,
        options.progress_deadline_s,
    ):
        n_attempts = min(options.n_attempts, math.ceil(options.give_up_s / deadline_s))
        assert n_attempts * deadline_s + sum(waits_s[: n_attempts - 1]) <= 60


@pytest.mark.parametrize("kind", ["deadline_s", "host_deadline_s"])
def test_a_deadline_ends_what_hangs_and_keeps_what_came(host: OneHost, start: Start, kind: str) -> None:
    hung = start({"ForceCommand": "sleep 600"}, number=2)
    options = replace(FULL, listing_deadline_s=500.0, progress_deadline_s=500.0, **{kind: 30.0})
    first, second = collected([host.spec, hung.spec], host.run, options).hosts
    assert first.state == "complete", first.reason
    assert host.landed() == tree(host.root)
    assert (second.state, second.failure) == ("failed", "deadline")
    assert "not finished within the 30 s" in second.reason
