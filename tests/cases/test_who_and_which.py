"""Strangers' captures: who is which host, and which captures are one job."""

from __future__ import annotations

import pytest

from tests.cases.given import alarms, needs_cases, notes, said_of

pytestmark = needs_cases


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
