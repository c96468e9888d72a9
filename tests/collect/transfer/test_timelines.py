"""A timeline is read on its host and comes as columns or not at all, however large it is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster_analysis.discovery.discover import discover
from cluster_collect.show.context import Surroundings
from cluster_collect.show.summary import collection_text
from cluster_collect.spec import UNREAD, CollectOptions
from cluster_reduce.form import SUFFIX
from cluster_run.manifest import CollectedFile, HostOutcome
from tests.analysis.one_rank import read_rank
from tests.analysis.runs import write_small_run
from tests.analysis.sources.test_trace_view import EVENTS
from tests.collect.helpers import COLUMNS, QUICK, Recorder, local_host

TIMELINE = "trace_view.json"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The profiler root of a host with four ranks, and a timeline of each."""
    run = write_small_run(tmp_path / "source", steps=1)
    root = run / "cluster_profiler" / "1" / "profiler"
    for output in root.rglob("ASCEND_PROFILER_OUTPUT"):
        (output / TIMELINE).write_text(json.dumps(EVENTS * 50))
    return root


def outcome_of(
    root: Path, run: Path, options: CollectOptions = COLUMNS, watch: Recorder | None = None
) -> HostOutcome:
    outcome = local_host(root, run).collect(options, watch)
    assert (outcome.state, outcome.reason) == ("complete", "")
    return outcome


def problems_of(run: Path) -> list[Any]:
    return [one for source in discover(run).sources for one in read_rank(source).problems]


def timelines(outcome: HostOutcome) -> list[CollectedFile]:
    return [file for file in outcome.files if file.source.endswith(TIMELINE)]


def test_a_timeline_comes_as_columns_and_says_what_the_file_says(root: Path, tmp_path: Path) -> None:
    outcome = outcome_of(root, tmp_path / "run")
    sizes = {file.reduced_from_bytes for file in timelines(outcome)}
    assert sizes == {next(root.rglob(TIMELINE)).stat().st_size}
    assert all(file.size_bytes < 1_000 for file in timelines(outcome))
    outcome_of(root, tmp_path / "full", replace(QUICK, what=("full",)))
    counters = [
        [read_rank(source).figures["counters"] for source in discover(run).sources]
        for run in (tmp_path / "run", tmp_path / "full")
    ]
    assert counters[0] == counters[1]
    assert "idle_us" in counters[0][0]["metric"].to_pylist()


def test_without_columns_no_timeline_comes(root: Path, tmp_path: Path) -> None:
    assert timelines(outcome_of(root, tmp_path / "run", replace(QUICK, what=("analysis",)))) == []


def test_a_database_beside_it_says_the_same_so_the_timeline_is_not_read(root: Path, tmp_path: Path) -> None:
    output = next(root.rglob(TIMELINE)).parent
    (output / "ascend_pytorch_profiler_0.db").write_bytes(b"")
    assert len(timelines(outcome_of(root, tmp_path / "run"))) == 3


def test_a_damaged_timeline_costs_itself_and_is_a_problem_of_the_analysis(root: Path, tmp_path: Path) -> None:
    path = next(root.rglob(TIMELINE))
    path.write_bytes(path.read_bytes()[:-100])
    outcome = outcome_of(root, tmp_path / "run")
    assert len(timelines(outcome)) == 4
    assert all(file.path.endswith(TIMELINE + SUFFIX) for file in timelines(outcome))
    problems = problems_of(tmp_path / "run")
    assert [(one.file, one.why.kind) for one in problems] == [(TIMELINE, "not_read_on_host")]


@pytest.mark.parametrize(
    ("changes", "why"),
    [({"columns_memory_bytes": 1 << 20}, "memory"), ({"columns_deadline_s": 0.01}, "deadline")],
)
def test_what_a_host_has_no_time_or_memory_for_is_told(
    root: Path, tmp_path: Path, changes: dict[str, float], why: str
) -> None:
    for path in root.rglob(TIMELINE):
        path.write_text(json.dumps(EVENTS * 800))
    outcome_of(root, tmp_path / "run", replace(COLUMNS, **changes))  # type: ignore[arg-type]
    problems = problems_of(tmp_path / "run")
    assert {one.file for one in problems} == {TIMELINE}
    assert all(why in str(one.why["detail"]) for one in problems)


@pytest.mark.slow
def test_a_later_call_with_more_memory_reads_those_for_which_there_was_none(
    root: Path, tmp_path: Path
) -> None:
    paths = list(root.rglob(TIMELINE))
    for path in paths:
        path.write_text(json.dumps(EVENTS * 800))
    paths[0].write_bytes(paths[0].read_bytes()[:-100])
    # A damaged one stays so, however much memory there is.
    for memory_bytes, n_unread, n_asked in (
        (1 << 20, 4, None),
        (1 << 20, 4, 4),
        (1 << 31, 0, 4),
        (1 << 31, 0, 0),
    ):
        told = Recorder()
        outcome = outcome_of(
            root, tmp_path / "run", replace(COLUMNS, columns_memory_bytes=memory_bytes), told
        )
        assert sum(file.reason == UNREAD for file in timelines(outcome)) == n_unread
        assert n_asked is None or told.n_planned == [n_asked]
        text = collection_text([outcome], Surroundings(tmp_path / "run"))
        assert ("had no time or memory to read 4 timelines" in text) == bool(n_unread)
    problems = problems_of(tmp_path / "run")
    assert [one.why["detail"] for one in problems] == ["cut off, or damaged"]


def test_it_never_comes_whole_from_a_host_that_runs_no_reader(root: Path, tmp_path: Path) -> None:
    options = replace(COLUMNS, columns_devices=".*", while_running=False)
    outcome = outcome_of(root, tmp_path / "run", options)
    assert "uses" in outcome.raw_because
    assert {file.state for file in outcome.files if file not in timelines(outcome)} == {"stored"}
    assert {(file.state, "or not at all" in file.reason) for file in timelines(outcome)} == {
        ("skipped", True)
    }
    assert not list((tmp_path / "run").rglob(TIMELINE + "*"))


def test_a_timeline_that_fits_nowhere_here_is_read_all_the_same(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    largest = max(path.stat().st_size for path in root.rglob("*") if path.name != TIMELINE)
    for path in root.rglob(TIMELINE):
        path.write_text(json.dumps(EVENTS * (1 + largest // 1000)))
    monkeypatch.setattr("cluster_collect.store.writer.RunWriter.room_bytes", lambda _: largest + 1)
    assert len(timelines(outcome_of(root, tmp_path / "run"))) == 4


def test_a_rank_that_is_kept_raw_has_its_timeline_whole(root: Path, tmp_path: Path) -> None:
    outcome = outcome_of(root, tmp_path / "run", replace(COLUMNS, whole_ranks=frozenset({2})))
    whole = [file for file in timelines(outcome) if file.reduced_from_bytes is None]
    assert len(whole) == 1
    assert (tmp_path / "run" / whole[0].path).read_bytes() == next(root.rglob(TIMELINE)).read_bytes()


def test_a_second_call_reads_none_again_and_whole_files_take_their_place(root: Path, tmp_path: Path) -> None:
    outcome_of(root, tmp_path / "run")
    assert local_host(root, tmp_path / "run").planned(replace(COLUMNS, verify=True)) == 0
    outcome = outcome_of(root, tmp_path / "run", replace(QUICK, what=("full",)))
    assert {file.reduced_from_bytes for file in timelines(outcome)} == {None}
    assert not list((tmp_path / "run").rglob(TIMELINE + SUFFIX))


def test_a_small_one_that_cannot_be_read_there_comes_as_it_is(root: Path, tmp_path: Path) -> None:
    path = next(root.rglob(TIMELINE))
    path.write_text("[")
    outcome = outcome_of(root, tmp_path / "run")
    assert [file.size_bytes for file in timelines(outcome) if file.reduced_from_bytes is None] == [1]
