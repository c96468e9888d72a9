"""A watch: a fault that begins while it runs is named and told, the budget holds, and old captures go."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_collect.progress_events import ProgressListener
from cluster_collect.spec import CollectOptions
from cluster_live.collected import Hosts
from cluster_live.watch import MOST_SHARE, RECORD_NAME, Budget, watch
from tests.hook.http_server import mailbox
from tests.live.hosts import Cluster
from tests.live.test_file import LIVE


@dataclass(frozen=True)
class Silent:
    tracker = ProgressListener()

    def tick(self) -> None:
        """Show nothing."""


@given(st.floats(0.01, 3600.0), st.lists(st.tuples(st.floats(0.0, 600.0), st.floats(0.0, 60.0)), min_size=1))
def test_captures_stay_within_their_share_of_the_time_once_the_next_may_begin(
    every_s: float, rounds: list[tuple[float, float]]
) -> None:
    now_s = 0.0
    budget = Budget(now_s)
    for busy_s, more_s in rounds:
        began_s = now_s
        now_s += busy_s + more_s
        budget.spent(busy_s)
        now_s = max(now_s, budget.next_s(every_s, began_s))
        # With another capture like the last one it is still within.
        assert budget.busy_s + budget.last_s <= MOST_SHARE * (now_s + budget.last_s) * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.timeout(400)  # steps of a job that runs, on a machine that may have much else to do
def test_a_fault_that_begins_while_the_watch_runs_is_named_within_two_captures_and_told_once(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.add(2)
    cluster.job(n_ranks=4, environment=cluster.leaves()).start()
    address = tmp_path / "webhook"
    metrics = tmp_path / "metrics"
    metrics.mkdir()
    base = tmp_path / "watch"
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if "The job ran captured" in line:
            cluster.leaves("slow_rank:1.5@5")

    # A share of 1 % would have this test wait for minutes: each round is a watch of its own but the last two.
    live = replace(LIVE, every_s=0.1, keep=2, webhook_file=address, prometheus_dir=metrics)
    hosts = Hosts(cluster.specs(), CollectOptions(min_free_bytes=0))
    with mailbox() as box:
        address.write_text(box.url)
        watch(hosts, live, base, Silent(), say, n_rounds=1)
        assert box.received == []
        watch(hosts, live, base, Silent(), say, n_rounds=1)
        lines = [json.loads(line) for line in (base / RECORD_NAME).read_text().splitlines()]
        assert lines[0]["key"] == ["healthy"]
        assert lines[1]["key"][0] == "degraded"
        assert any("rank 5" in str(one) for one in lines[1]["key"]), lines
        ((_, told),) = box.received
        assert "rank 5" in json.loads(told)["line"]
        assert "cluster_analysis_" in next(metrics.glob("*.prom")).read_text()
        watch(hosts, live, base, Silent(), say, n_rounds=1)
        assert len(box.received) == 1, "it is no news twice, and a second process knows of the first"
    assert len(list(base.glob("live-2*"))) == 2
    assert [path for host in cluster.hosts for path in host.directory.rglob("*_ascend_pt")] == []
