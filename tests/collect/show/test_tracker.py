"""What is counted and said while a collection runs."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection

import pytest

from cluster_collect.progress_events import ProgressListener
from cluster_collect.show.progress import display
from cluster_collect.show.tracker import Tracker, Verbosity
from cluster_collect.spec import HostSpec
from cluster_run.ids import HostId, ServerId
from cluster_run.manifest import CollectedFile, FileList, HostOutcome, HostState
from cluster_run.said.chinese import translated
from tests.chinese import english_in

SPECS = [
    HostSpec(HostId(str(number)), ServerId(f"node{number}"), address=f"10.0.0.{number}")
    for number in range(1, 9)
]
STORED = FileList([CollectedFile("p", "s", 1000, 0, "", "stored")])


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def tracked(
    verbosity: Verbosity, lines_for: Collection[HostState] = ("complete", "partial", "failed")
) -> tuple[Tracker, list[str], Clock]:
    said: list[str] = []
    clock = Clock()
    say: Callable[[str], None] = said.append
    return Tracker(SPECS, verbosity, say, clock, lines_for), said, clock


def work(watch: ProgressListener) -> None:
    for spec in SPECS[:3]:
        watch.host_started(spec.host)
    watch.noted(HostId("1"), "tar+zstd")
    watch.plan_known(HostId("1"), 2, 2000)
    watch.bytes_received(HostId("1"), 1000)
    watch.file_stored(HostId("1"), "a\x1b/b", 1000)
    watch.retrying(HostId("2"), "no answer", 4.0)
    watch.host_finished(HostOutcome(HostId("1"), ServerId("node1"), "complete", STORED, seconds=1.0))
    watch.host_finished(HostOutcome(HostId("2"), ServerId("node2"), "failed", reason="no answer"))


ALWAYS = ["node2: no answer; trying again in 4.0 s", "node2: failed: no answer"]
COMPLETE = "node1: complete, 1 file, 1.0 kB in 1.0 s"


@pytest.mark.parametrize(
    ("verbosity", "lines"),
    [
        (Verbosity.QUIET, []),
        (Verbosity.NORMAL, [ALWAYS[0], COMPLETE, ALWAYS[1]]),
        (
            Verbosity.NOTES,
            ["node1: tar+zstd", "node1: 2 files, 2.0 kB to fetch", ALWAYS[0], COMPLETE, ALWAYS[1]],
        ),
        (
            Verbosity.FILES,
            [
                "node1: tar+zstd",
                "node1: 2 files, 2.0 kB to fetch",
                "node1: stored a\\x1b/b (1.0 kB)",
                ALWAYS[0],
                COMPLETE,
                ALWAYS[1],
            ],
        ),
    ],
)
def test_each_verbosity_says_its_lines(verbosity: Verbosity, lines: list[str]) -> None:
    tracker, said, _ = tracked(verbosity)
    work(tracker)
    assert said == lines


def test_beside_a_bar_only_failures_get_a_line() -> None:
    tracker, said, _ = tracked(Verbosity.NORMAL, lines_for=("partial", "failed"))
    work(tracker)
    assert said == ALWAYS


def test_how_much_there_is_is_said_once_when_all_hosts_are_listed() -> None:
    tracker, said, _ = tracked(Verbosity.NORMAL)
    for spec in SPECS[:7]:
        tracker.plan_known(spec.host, 10, 1_000_000)
    assert said == []
    tracker.host_finished(HostOutcome(SPECS[7].host, ServerId("node8"), "failed", reason="down"))
    assert said == ["to fetch: 70 files, 7.0 MB from 7 hosts", "node8: failed: down"]
    tracker.plan_known(SPECS[0].host, 1, 1)
    assert len(said) == 2


def test_how_much_there_was_is_not_said_when_a_late_host_made_it_old_news() -> None:
    tracker, said, _ = tracked(Verbosity.NORMAL)
    for spec in SPECS[:7]:
        tracker.plan_known(spec.host, 1, 1000)
        tracker.file_stored(spec.host, "a", 1000)
    tracker.host_finished(HostOutcome(SPECS[7].host, ServerId("node8"), "failed", reason="down"))
    assert said == ["node8: failed: down"]


def test_a_look_gets_no_line_for_a_host() -> None:
    tracker, said, _ = tracked(Verbosity.NORMAL, lines_for=())
    work(tracker)
    assert said == ALWAYS[:1]


def test_the_status_line_has_hosts_files_bytes_rate_and_time_left() -> None:
    tracker, _, clock = tracked(Verbosity.NORMAL)
    assert tracker.status_line() == "0 of 8 hosts done"
    work(tracker)
    clock.now_s += 4
    line = tracker.status_line()
    assert line == "2 of 8 hosts done, 1 of 2 files, 1.0 kB of 2.0 kB, 250 B/s, about 4.0 s left"


def test_each_collection_of_a_watch_counts_from_0() -> None:
    tracker, said, clock = tracked(Verbosity.NORMAL)
    work(tracker)
    clock.now_s += 600
    tracker.collection_begins(8)
    before = len(said)
    work(tracker)
    clock.now_s += 4
    assert tracker.status_line().startswith("2 of 8 hosts done, 1 of 2 files, 1.0 kB of 2.0 kB, 250 B/s")
    assert said[before:] == said[:before]


def test_the_last_hosts_are_named_by_the_status_line() -> None:
    tracker, _, clock = tracked(Verbosity.NORMAL)
    work(tracker)
    for spec in SPECS[3:]:
        tracker.host_started(spec.host)
    tracker.host_finished(HostOutcome(HostId("3"), ServerId("node3"), "complete"))
    clock.now_s += 4
    assert tracker.status_line().endswith("B/s, about 4.0 s left, waiting for node[4-8]")
    assert not english_in(translated(f"collecting: {tracker.status_line()}", "zh"))


def test_the_outcomes_are_kept() -> None:
    tracker, _, _ = tracked(Verbosity.QUIET)
    work(tracker)
    assert {host: outcome.state for host, outcome in tracker.outcomes.items()} == {
        "1": "complete",
        "2": "failed",
    }


def test_a_stream_hears_how_far_a_collection_is_once_it_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cluster_collect.show.progress.STATUS_INTERVAL_S", 0.0)
    stream = io.StringIO()
    with display(SPECS, Verbosity.NORMAL, stream) as shown:
        shown.tick()
        assert not stream.getvalue()
        shown.tracker.host_started(HostId("1"))
        shown.tick()
        shown.tracker.host_finished(
            HostOutcome(HostId("1"), ServerId("node1"), "complete", STORED, seconds=1.0)
        )
        shown.tick()
    assert stream.getvalue().splitlines() == ["collecting: 0 of 8 hosts done", COMPLETE]


def test_a_stream_that_is_no_terminal_gets_plain_lines() -> None:
    stream = io.StringIO()
    with display(SPECS, Verbosity.NORMAL, stream) as shown:
        work(shown.tracker)
        shown.tick()
    assert stream.getvalue().splitlines() == [ALWAYS[0], COMPLETE, ALWAYS[1]]
