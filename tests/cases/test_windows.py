"""Strangers' captures: a last step cut by the end of the recording, and windows of unlike length."""

from __future__ import annotations

import pytest

from tests.cases.given import alarms, needs_cases, notes, said_of

pytestmark = needs_cases


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
