"""Kernels as evidence for why a device is slow; synthetic and simulated."""

from __future__ import annotations

import pytest

from tests.analysis.jobs import SMALL, judged
from tests.analysis.said import summary


@pytest.mark.parametrize(
    ("scenario", "words"),
    [
        ("slow_rank:1.2", "All kinds of kernels are slower"),
        ("slow_rank:1.3,op=vector", "Only its vector kernels are slower"),
        ("slow_rank:1.3,op=cube", "Only its matrix kernels are slower"),
    ],
)
def test_a_slow_device_names_the_kernels_that_are_slower(scenario: str, words: str) -> None:
    (finding,) = judged(SMALL, scenario).alarms
    assert words in summary(finding)
    assert any(row.metric.startswith("kernel_") for row in finding.evidence)


def test_a_late_start_says_nothing_of_kernels() -> None:
    (finding,) = judged(SMALL, "slow_rank:1.1,cause=input").alarms
    assert "kernels" not in summary(finding)
