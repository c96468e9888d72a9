"""Strangers' captures: a rank alone whose job waits, and waiting inside kernels that count as computing."""

from __future__ import annotations

import pytest

from tests.cases.given import alarms, needs_cases, notes, said_of

pytestmark = needs_cases


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
