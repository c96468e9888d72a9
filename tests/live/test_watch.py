"""A watch: a fault that begins while it runs is named and told, the budget holds, and old captures go."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_collect.progress_events import ProgressListener
from cluster_collect.spec import CollectOptions
from cluster_live.collected import Hosts
from cluster_live.watch import MOST_SHARE, RECORD_NAME, Budget, watch
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
def test_a_fault_that_begins_while_the_watch_runs_is_named_within_two_captures_and_told_once(
    cluster: Cluster, tmp_path: Path
) -> None:
    simulated = tmp_path / "job.json"
    spec = {"tp": 2, "pp": 1, "dp": 4, "ranks_per_host": 4, "forward_ms": 20.0}
    simulated.write_text(json.dumps({"spec": spec, "faults": []}))
    cluster.add(2)
    cluster.job(n_ranks=4, environment={"SIMULATED": str(simulated)}).start()
    told: list[dict[str, object]] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            told.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = tmp_path / "webhook"
    address.write_text(f"http://127.0.0.1:{server.server_port}/")
    metrics = tmp_path / "metrics"
    metrics.mkdir()
    base = tmp_path / "watch"
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if "The job ran captured" in line and "slow_rank" not in simulated.read_text():
            simulated.write_text(json.dumps({"spec": spec, "faults": ["slow_rank:1.5@5"]}))
            time.sleep(0.1)

    # A share of 1 % would have this test wait for minutes: each round is a watch of its own but the last two.
    live = replace(LIVE, every_s=0.1, keep=2, webhook_file=address, prometheus_dir=metrics)
    hosts = Hosts(cluster.specs(), CollectOptions(min_free_bytes=0))
    watch(hosts, live, base, Silent(), say, n_rounds=1)
    assert told == [], told[0]["line"]
    watch(hosts, live, base, Silent(), say, n_rounds=1)
    lines = [json.loads(line) for line in (base / RECORD_NAME).read_text().splitlines()]
    assert lines[0]["key"] == ["healthy"]
    assert lines[1]["key"][0] == "degraded"
    assert any("rank 5" in str(one) for one in lines[1]["key"]), lines
    assert len(told) == 1
    assert "rank 5" in str(told[0]["line"])
    assert "cluster_analysis_" in next(metrics.glob("*.prom")).read_text()
    watch(hosts, live, base, Silent(), say, n_rounds=1)
    assert len(told) == 1, "it is no news a second time, and a second process knows of the first"
    server.shutdown()
    server.server_close()
    assert len(list(base.glob("live-2*"))) == 2
    assert [path for host in cluster.hosts for path in host.directory.rglob("*_ascend_pt")] == []
