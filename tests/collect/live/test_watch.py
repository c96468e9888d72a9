"""A watch: a fault that begins while it runs is named and told, the budget holds, and old captures go."""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_collect.live.collected import Hosts, findings_of, taken
from cluster_collect.live.watch import MOST_SHARE, RECORD_NAME, Budget, Key, budget_of, told_after, watch
from cluster_collect.progress_events import ProgressListener
from cluster_collect.spec import CollectOptions, HostSpec
from cluster_run.errors import ClusterError
from cluster_run.ids import HostId, ServerId
from cluster_run.layout import ANALYSIS_OUTPUT_NAME
from tests.collect.live.hosts import Cluster
from tests.collect.live.test_file import LIVE
from tests.collect.live.test_traps import captures
from tests.hook.http_server import mailbox

#: Steps of jobs that run, on a machine that may have much else to do.
pytestmark = pytest.mark.timeout(400)


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
    cluster.add(2)
    # Short steps leave hosts that wait for a processor far apart.
    cluster.job(n_ranks=4, step_s=0.2, environment=cluster.leaves()).start()
    address = tmp_path / "webhook"
    metrics = tmp_path / "metrics"
    metrics.mkdir()
    base = tmp_path / "watch"
    said: list[str] = []

    def say(line: str) -> None:
        said.append(line)
        if "The job ran captured" in line:
            cluster.leaves("slow_rank:1.5@5")

    def watched() -> None:
        # A share of 1 % would have this test wait for minutes: all earlier rounds were long ago.
        record = base / RECORD_NAME
        if record.exists():
            record.write_text(re.sub('"at": "[^"]*"', '"at": "2026-01-01T00:00:00Z"', record.read_text()))
        watch(hosts, live, base, Silent(), say, n_rounds=1)

    live = replace(LIVE, every_s=0.1, keep=2, webhook_file=address, prometheus_dir=metrics)
    hosts = Hosts(cluster.specs(), CollectOptions(min_free_bytes=0))
    with mailbox() as box:
        address.write_text(box.url)
        watched()
        assert box.received == []
        watched()
        lines = [json.loads(line) for line in (base / RECORD_NAME).read_text().splitlines()]
        assert lines[0]["key"] == ["healthy"]
        assert lines[1]["key"][0] == "degraded"
        assert any("rank 5" in str(one) for one in lines[1]["key"]), lines
        ((_, told),) = box.received
        assert "rank 5" in json.loads(told)["line"]
        assert "cluster_analysis_" in next(metrics.glob("*.prom")).read_text()
        watched()
        assert len(box.received) == 1, "it is no news twice, and a second process knows of the first"
    assert len(list(base.glob("live-2*"))) == 2
    assert [path for host in cluster.hosts for path in host.directory.rglob("*_ascend_pt")] == []


def test_what_an_earlier_call_of_the_watch_captured_counts(tmp_path: Path) -> None:
    for ago_s, is_due in ((60.0, False), (790.0, False), (810.0, True)):
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - ago_s))
        lines = ({"at": at, "busy_s": 4.0}, {"at": at, "busy_s": 0.0}, {"at": "?"}, ["no round"])
        (tmp_path / RECORD_NAME).write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        assert (budget_of(tmp_path).next_s(1.0, -math.inf) <= time.monotonic()) is is_due


def test_where_parsing_fails_the_capture_counts_and_stays_and_that_of_other_hosts_goes(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.add(2)
    cluster.job(n_ranks=1, of_hosts={1: {"SIMULATED": "/nowhere"}}).start()
    hosts = Hosts(cluster.specs(), CollectOptions(min_free_bytes=0))
    spent: list[float] = []
    live = replace(LIVE, every_s=0.1)
    with pytest.raises(ClusterError, match="parsing failed"):
        asyncio.run(taken(hosts, live, tmp_path / "all", ProgressListener(), print, spent.append))
    assert spent[0] > 0
    before = [len(captures(host)) for host in cluster.hosts]
    some = replace(live, quorum=1)
    asyncio.run(taken(hosts, some, tmp_path / "some", ProgressListener(), print, spent.append))
    assert len(spent) == 2
    assert [len(captures(host)) for host in cluster.hosts] == [before[0], before[1] + 1]


def failing_hosts(tmp_path: Path) -> Hosts:
    """Return one host that nobody answers for, whatever else runs on this machine."""
    spec = HostSpec(
        host=HostId("1"),
        server_id=ServerId("node0"),
        address="127.0.0.1",
        port=1,
        profiler_root=str(tmp_path / "nothing"),
    )
    return Hosts([spec], CollectOptions(min_free_bytes=0))


def failed_rounds(tmp_path: Path, n_rounds: int = 1, keep: int = 3) -> list[str]:
    """Watch a host that nobody answers for, and return what was said."""
    said: list[str] = []
    live = replace(LIVE, every_s=0.0, keep=keep)
    watch(failing_hosts(tmp_path), live, tmp_path / "watch", Silent(), said.append, n_rounds)
    return said


def directory(base: Path, name: str, is_judged: bool) -> str:
    """Make the run directory of an earlier round, and return its name."""
    (base / name / ANALYSIS_OUTPUT_NAME).mkdir(parents=True)
    if is_judged:
        findings_of(base / name).write_text("{}")
    return name


def test_rounds_that_failed_push_no_capture_out(tmp_path: Path) -> None:
    base = tmp_path / "watch"
    good = [directory(base, f"live-2025010{day}-000000", is_judged=True) for day in range(1, 5)]
    closer = [directory(base, f"{name}-suspects", is_judged=False) for name in good]
    failed = [directory(base, f"live-2025020{day}-000000", is_judged=False) for day in range(1, 4)]
    failed_rounds(tmp_path)
    left = sorted(path.name for path in base.glob("live-*") if path.is_dir())
    assert left == sorted([*good[1:], *closer[1:], failed[-1]])


def test_captures_from_before_a_clock_was_set_back_go_before_later_ones(tmp_path: Path) -> None:
    base = tmp_path / "watch"
    in_order = [directory(base, f"live-2026010{day}-000000", is_judged=True) for day in (8, 9, 1, 2)]
    lines = (json.dumps({"key": ["healthy"], "line": f"See {base}/{name}/report.html"}) for name in in_order)
    (base / RECORD_NAME).write_text("".join(f"{line}\n" for line in lines))
    directory(base, "live-20260103-000000", is_judged=True)
    failed_rounds(tmp_path, keep=3)
    left = sorted(path.name for path in base.glob("live-*") if path.is_dir())
    assert left == sorted(in_order[1:]), "what the record does not know is from before it"


H, U, A, AB, B = ("healthy",), ("unknown",), ("degraded", "a"), ("degraded", "a", "b"), ("degraded", "b")


@pytest.mark.parametrize(
    ("rounds", "told_at"),
    [
        ([H, U, H, U, H], []),  # chance
        ([H, U, U, H, H], [2, 4]),
        ([H, A, H, A, H, A], [1]),
        ([H, A, H, H], [1, 3]),
        ([A, AB, A, B, A, AB], [0, 1]),
        ([A, AB, A, A, A], [0, 1, 3]),
        ([("failed",), A, A], [0, 1]),
        ([U, H, U, H, H], [0, 4]),
    ],
)
def test_a_new_alarm_is_told_at_once_and_all_else_when_two_captures_in_a_row_say_it(
    rounds: list[Key], told_at: list[int]
) -> None:
    told: Key = ("healthy",)
    before: Key | None = None
    at: list[int] = []
    for number, key in enumerate(rounds):
        already, told = told, told_after(told, before, key)
        at += [number] if told != already else []
        before = key
    assert at == told_at


def test_a_round_that_failed_says_what_to_do(tmp_path: Path) -> None:
    host = failing_hosts(tmp_path)
    with pytest.raises(ClusterError) as told:
        asyncio.run(taken(host, LIVE, tmp_path / "run", ProgressListener(), print))
    assert told.value.advice
    (said,) = (line for line in failed_rounds(tmp_path) if "not analysed" in line)
    for words in (told.value.message, told.value.advice):
        assert " ".join(words.split()) in " ".join(said.split())


def test_the_lines_of_the_rounds_are_replaced_as_a_whole(tmp_path: Path) -> None:
    base = tmp_path / "watch"
    base.mkdir()
    (base / RECORD_NAME).write_text("one\ntwo\nthree\n")
    os.link(base / RECORD_NAME, tmp_path / "as it was")
    failed_rounds(tmp_path)
    lines = (base / RECORD_NAME).read_text().splitlines()
    assert lines[:2] == ["two", "three"]
    assert json.loads(lines[2])["key"] == ["failed"]
    assert (tmp_path / "as it was").read_text() == "one\ntwo\nthree\n"


@pytest.mark.parametrize("in_the_way", [RECORD_NAME, ".untold"])
def test_a_directory_that_cannot_be_written_ends_no_watch(tmp_path: Path, in_the_way: str) -> None:
    base = tmp_path / "watch"
    base.mkdir()
    if in_the_way == RECORD_NAME:
        (base / in_the_way).mkdir()
    else:
        (base / in_the_way).write_text("")
    said = failed_rounds(tmp_path, n_rounds=2)
    assert sum("not analysed" in line for line in said) == 2
    assert sum(line.startswith("warning: ") and in_the_way in line for line in said) == 2


def test_news_that_could_not_be_told_are_told_by_a_later_round(tmp_path: Path) -> None:
    base = tmp_path / "watch"
    base.mkdir()
    (base / ".untold").write_text("")
    failed_rounds(tmp_path, n_rounds=1)
    first = json.loads((base / RECORD_NAME).read_text())["told"]
    (base / ".untold").unlink()
    failed_rounds(tmp_path, n_rounds=1)
    last = json.loads((base / RECORD_NAME).read_text().splitlines()[-1])["told"]
    assert (first, last) == (["healthy"], ["failed"])
