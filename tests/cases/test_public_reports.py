"""Captures rebuilt from public bug reports: who is who, what is cut or unlike, and who waits."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_analysis.api import Run, analyse

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason=f"the rebuilt inputs are not at {CASES}")


def said_of(case: str, part: str | None = None) -> Run:
    """What the analysis says of a case, by its folder and the path in it."""
    return analyse(CASES / case, capture=part, scheduler="threads", workers=1)


def alarms(run: Run) -> list[tuple[str, tuple[int, ...], tuple[str, ...]]]:
    """Kind, ranks and hosts of what is told as a fault."""
    return [
        (one.kind, tuple(one.ranks), tuple(one.hosts))
        for one in run.document.findings
        if one.severity != "info"
    ]


def notes(run: Run) -> set[str]:
    """Kinds of what is to be known beside findings."""
    return {one.kind for one in run.document.notes}


@pytest.mark.parametrize("case", ["01b-vllm-rank-suffix-slow-host/prof", "02-localhost-everywhere/prof"])
def test_the_slow_host_is_found_where_names_do_not_tell_hosts(case: str) -> None:
    run = said_of(case)
    assert run.document.run.hosts == 4
    assert alarms(run) == [("slow_host", (8, 9, 10, 11), ("3",))]
    (finding,) = (one for one in run.document.findings if one.kind == "slow_host")
    assert finding.cost_ms_per_step == pytest.approx(59.7, abs=0.5)
    assert "hosts_by_devices" in notes(run)


def test_each_replica_of_a_rollout_is_reached_by_its_folder() -> None:
    steps = {}
    for replica in range(4):
        run = said_of("05-verl-rollout-replicas/prof", f"agent_loop_rollout_replica_{replica}")
        assert run.document.run.ranks == 2
        assert "several_captures_of_rank" not in {one.kind for one in run.document.problems}
        steps[replica] = run.document.run.step_ms
    assert steps[2] is not None
    assert steps[0] is not None
    assert steps[2] / steps[0] == pytest.approx(1.35, abs=0.02)


@pytest.mark.parametrize("form", ["prof", "minus1"])
def test_one_card_without_a_rank_is_rank_0_of_1(form: str) -> None:
    run = said_of(f"17-single-card-without-rank/{form}")
    assert (run.document.run.ranks, run.document.run.expected_ranks) == (1, 1)
    assert "only_capture_is_rank_0" in notes(run)


@pytest.mark.parametrize(("part", "step_ms"), [("prefill-pod", 5396), ("decode-pod", 3902)])
def test_prefill_and_decode_are_judged_each_whole(part: str, step_ms: float) -> None:
    run = said_of("32-prefill-and-decode-both-ranks-0-7/run", part)
    assert (run.document.run.ranks, run.document.run.hosts, alarms(run)) == (8, 1, [])
    assert run.document.run.step_ms == pytest.approx(step_ms, rel=0.01)


def test_without_a_name_one_of_prefill_and_decode_is_judged_whole_and_the_other_named() -> None:
    run = said_of("32-prefill-and-decode-both-ranks-0-7/run")
    assert (run.document.run.ranks, run.document.run.hosts, alarms(run)) == (8, 1, [])
    assert "several_captures" in notes(run)


@pytest.mark.parametrize("form", ["level0", "level1-wait-known", "level1-wait-zero"])
def test_a_rank_whose_job_has_others_that_are_not_here_blames_nobody(form: str) -> None:
    run = said_of(f"20-one-rank-first-collective-waits/{form}")
    assert (run.verdict, alarms(run)) == ("unknown", [])
    assert not [one.kind for one in run.document.findings if one.kind == "retransmission"]
    assert "one_rank_of_several" in notes(run)


@pytest.mark.parametrize("form", ["slow5", "slow5-with-allreduce"])
def test_a_slow_rank_that_others_wait_for_inside_fused_kernels_is_named_and_never_healthy(form: str) -> None:
    run = said_of(f"28-waiting-inside-fused-kernels/{form}")
    assert run.verdict != "healthy"
    assert {rank for _, ranks, _ in alarms(run) for rank in ranks} == {5}


def test_a_job_whose_fused_kernels_wait_for_nobody_is_healthy() -> None:
    run = said_of("28-waiting-inside-fused-kernels/healthy")
    assert (run.verdict, alarms(run)) == ("healthy", [])


@pytest.mark.parametrize("form", ["same-op-on-all", "half"])
def test_a_last_step_that_was_cut_is_left_out_and_told(form: str) -> None:
    run = said_of(f"12-last-step-cut/{form}")
    assert (run.verdict, alarms(run)) == ("healthy", [])
    assert run.document.run.steps == (10, 11, 12, 13)
    assert run.document.run.step_ms == pytest.approx(587, abs=1)
    assert "last_step_cut" in notes(run)


def test_ranks_that_recorded_more_iterations_are_not_called_slow() -> None:
    run = said_of("15-windows-of-unlike-length/prof")
    assert (run.verdict, alarms(run)) == ("unknown", [])
    assert "windows_unlike" in notes(run)
    computing_us = run.steps.sort_values("rank")["computing_us"]
    assert computing_us.max() / computing_us.min() < 1.01


def test_windows_of_one_length_are_compared_as_ever() -> None:
    run = said_of("15-windows-of-unlike-length/alike")
    assert (run.verdict, alarms(run)) == ("healthy", [])
