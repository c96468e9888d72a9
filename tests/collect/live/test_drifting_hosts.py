"""Hosts whose steps drift: every capture holds identical steps, and a host that is lost is named."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.collect.live.hosts import Cluster
from tests.collect.live.test_file import LIVE, captured
from tests.collect.live.test_traps import monitor

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

N_HOSTS = 6


def test_hosts_that_drift_are_captured_at_the_same_steps_and_a_lost_one_is_named(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.add(N_HOSTS)
    cluster.job(n_ranks=1, step_s=0.3).start()
    time.sleep(2)
    for number, lost in enumerate((None, 3)):
        if lost is not None:
            os.kill(monitor(cluster.hosts[lost]), signal.SIGSTOP)
        run = tmp_path / f"run{number}"
        result = captured(cluster, run, replace(LIVE, quorum=N_HOSTS - 1)).captured
        wanted = {} if lost is None else {str(lost + 1): "no_step"}
        assert {host: why.word for host, why in result.lost.items()} == wanted
        files = list(run.rglob("step_trace_time.csv"))
        steps = {tuple(line.split(",")[1] for line in path.read_text().splitlines()[1:]) for path in files}
        assert len(files) == N_HOSTS - len(wanted)
        assert steps == {tuple(map(str, result.steps))}
