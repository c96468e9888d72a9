"""Whose job a capture would be of: in doubt nothing is sent."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_collect.live.options import LINES, WayName
from cluster_collect.live.outcome import Lost
from cluster_collect.live.sight import JobName, Memory, MemoryFile, Process, Sight
from cluster_collect.live.whose import Decision, decide
from cluster_run.ids import HostId
from cluster_run.said.chinese import translated
from tests.chinese import english_in

MEMORY = Memory("0:40:7", "DynamicProfileNpuShm2026112801", False, 1000.0)
JOB_A, JOB_B = JobName("41", "", "10.0.0.1:29500"), JobName("42", "", "10.0.0.9:29500")


def rank(number: int, job: JobName = JOB_A, pid: int | None = None, **changes: object) -> Process:
    pid = pid or 100 + number
    made = Process(
        pid=pid,
        parent=10,
        inner_pid=pid,
        name="python",
        started_s=1001.0,
        job=job,
        rank=number,
        n_ranks=4,
        configuration=f"/cfg/{job.scheduler}",
        asks_daemon=False,
        directory="/work",
        command=("python", "train.py"),
        root="",
        memory=MEMORY,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def monitor_of(one: Process, parent: int | None = None) -> Process:
    return replace(one, pid=one.pid + 500, parent=parent or one.pid, name="DynMonitorProc")


def sight(*processes: Process, host: str = "1") -> Sight:
    return Sight(HostId(host), 1000, processes)


def reasons(decision: Decision) -> set[str]:
    assert not set(decision.targets) & set(decision.refusals)
    assert set(decision.refusals) == {HostId("1"), HostId("2")}
    return {refusal.reason for refusal in decision.refusals.values()}


def refused(*processes: Process, wanted: str = "") -> Lost:
    decision = decide([sight(*processes)], wanted)
    assert decision.targets == {}
    return decision.refusals[HostId("1")]


def test_one_job_with_one_monitor_is_fit() -> None:
    decision = decide([sight(rank(0), rank(1), monitor_of(rank(0)))])
    target = decision.targets[HostId("1")]
    assert [one.rank for one in target.ranks] == [0, 1]
    assert (target.way, target.configuration) == ("file", "/cfg/41")


def test_jobs_that_share_a_memory_file_are_refused_even_if_one_is_named() -> None:
    both = (rank(0), rank(1), monitor_of(rank(0)), rank(0, JOB_B, 300), rank(1, JOB_B, 301))
    assert "jobs share one memory file" in refused(*both).reason
    assert "jobs share one memory file" in refused(*both, wanted="41").reason
    assert "42" in refused(*both, wanted="41").reason


def test_a_job_of_the_same_name_in_the_same_memory_is_seen_by_its_ranks_or_its_configuration() -> None:
    twin = replace(rank(0, pid=300), configuration="/cfg/other")
    assert "different configurations" in refused(rank(0), monitor_of(rank(0)), twin).reason
    assert "rank 0 is there twice" in refused(rank(0), monitor_of(rank(0)), rank(0, pid=300)).reason


def test_an_orphaned_monitor_is_named_with_the_way_to_end_it() -> None:
    orphan = monitor_of(rank(0, JOB_B, 300), parent=1)
    why = refused(rank(0), rank(1), orphan)
    assert "the monitor of a job that was killed" in why.reason
    assert f"kill {orphan.pid}" in why.advice


def test_memory_that_is_older_than_all_ranks_is_a_dead_jobs() -> None:
    old = replace(MEMORY, made_s=10.0)
    ranks = [rank(number, memory=old) for number in range(2)]
    assert "older than every rank" in refused(*ranks, monitor_of(ranks[0])).reason


@pytest.mark.parametrize("is_deleted", [False, True])
def test_without_a_monitor_nobody_would_hear(is_deleted: bool) -> None:
    memory = replace(MEMORY, is_deleted=is_deleted)
    ranks = [rank(number, memory=memory) for number in range(2)]
    processes = (*ranks, monitor_of(ranks[0])) if is_deleted else tuple(ranks)
    expected = "was removed while its job ran" if is_deleted else "0 processes read configurations"
    assert expected in refused(*processes).reason


def test_two_jobs_apart_on_one_host_need_a_name_and_the_name_is_enough() -> None:
    other = [rank(number, JOB_B, 300 + number, memory=replace(MEMORY, id="0:41:7")) for number in range(2)]
    processes = (rank(0), rank(1), monitor_of(rank(0)), *other, monitor_of(other[0]))
    assert "several jobs wait for captures here" in refused(*processes).reason
    for wanted in ("42", "301", "/cfg/42", "10.0.0.9:29500"):
        assert decide([sight(*processes)], wanted).targets[HostId("1")].job == JOB_B


def test_hosts_with_different_jobs_are_all_refused() -> None:
    a = sight(rank(0), monitor_of(rank(0)))
    b = sight(rank(1, JOB_B), monitor_of(rank(1, JOB_B)), host="2")
    (why,) = reasons(decide([a, b]))
    assert why.startswith("the hosts run different jobs")
    assert set(decide([a, b], "42").targets) == {HostId("2")}


def test_two_jobs_that_call_themselves_the_same_are_told_apart_by_their_ranks() -> None:
    a = sight(rank(0), monitor_of(rank(0)))
    b = sight(rank(0), monitor_of(rank(0)), host="2")
    (why,) = reasons(decide([a, b]))
    assert "two jobs that call themselves the same" in why


def test_a_job_that_was_not_started_for_it_gets_the_two_lines() -> None:
    assert "PROF_CONFIG_PATH" in refused().advice
    bare = rank(0, configuration="")
    assert "neither PROF_CONFIG_PATH nor" in refused(bare, monitor_of(bare)).reason


@pytest.mark.parametrize("way", get_args(WayName))
def test_the_two_lines_are_told_as_they_are_typed_with_their_comments_in_both_languages(way: WayName) -> None:
    (refusal,) = decide([sight()], via=way).refusals.values()
    assert refusal.advice.split("\n  ")[1:] == [*LINES[way]]
    asked, *lines = translated(refusal.advice, "zh").split("\n  ")
    parts = [line.partition("    # ") for line in lines]
    assert [typed for typed, *_ in parts] == [line.partition("    # ")[0] for line in LINES[way]]
    assert not english_in("\n".join((asked, *(comment for *_, comment in parts))))


def test_memory_of_another_user_is_doubt_and_not_nobody() -> None:
    hidden = Sight(HostId("1"), 1000, (), (MemoryFile(MEMORY.name, 1001),))
    assert "is of user 1001" in decide([hidden]).refusals[HostId("1")].reason


@given(st.lists(st.tuples(st.sampled_from([JOB_A, JOB_B]), st.booleans(), st.booleans()), max_size=6))
def test_a_target_never_holds_processes_of_two_jobs(groups: list[tuple[JobName, bool, bool]]) -> None:
    processes: list[Process] = []
    for number, (job, is_apart, has_monitor) in enumerate(groups):
        memory = replace(MEMORY, id=f"0:4{number}:7") if is_apart else MEMORY
        one = rank(number, job, 100 + 10 * number, memory=memory)
        processes += [one, monitor_of(one)] if has_monitor else [one]
    for wanted in ("", "41", "42"):
        for target in decide([sight(*processes)], wanted).targets.values():
            assert len({one.job for one in target.ranks}) == 1
            memory_ids = {one.memory.id for one in target.ranks if one.memory}
            sharing = [one for one in processes if one.memory and one.memory.id in memory_ids]
            assert {one.job for one in sharing} == {target.job}
            assert not wanted or target.job.scheduler == wanted
