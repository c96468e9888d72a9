"""Files of r1.x count idle time as computing: what varies may be a pause, and nobody knows which it is."""

from __future__ import annotations

import numpy as np
import pytest

from cluster_analysis.judge.detection import Detection, detect
from tests.analysis.totals import evidence_of_computing, on_hosts, peers_agree

SLOW = 5
WHERE = on_hosts(16, 16)


def judged(slow: dict[int, float], *, knows_idle: bool) -> Detection:
    """Judge a job one rank of which takes so many times as long in some of eight steps."""
    computing = peers_agree(16, 8)
    for step, factor in slow.items():
        computing[SLOW, step] *= factor
    idle = np.full(computing.shape, 1.0 if knows_idle else 0.0)
    return detect(evidence_of_computing(computing, WHERE, idle), WHERE)


@pytest.mark.parametrize("slow", [{3: 1.3}, {3: 1.3, 6: 1.6}], ids=["one step", "two unlike steps"])
@pytest.mark.parametrize("knows_idle", [True, False])
def test_what_may_be_pauses_is_no_slow_device(slow: dict[int, float], *, knows_idle: bool) -> None:
    assert any(one.is_alarm for one in judged(slow, knows_idle=knows_idle).findings) == knows_idle


def test_what_lasts_is_told_as_either() -> None:
    (alarm,) = [
        one for one in judged(dict.fromkeys(range(8), 1.3), knows_idle=False).findings if one.is_alarm
    ]
    assert (alarm.ranks, alarm.cause) == ((SLOW,), "unknown")
    assert [one.kind for one in alarm.facts] == ["rank_computing", "computing_or_idle", "cost_is_bound"]
