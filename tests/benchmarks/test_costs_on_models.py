"""What is quoted for hosts that launch late, on jobs of models that the analysis knows nothing of."""

from __future__ import annotations

import pytest

from benchmarks.detection import modelled


@pytest.mark.parametrize(
    ("source", "mode", "seed"),
    [
        ("streams", "plain", 21_008),  # its ranks wait for the latest of their tensor-parallel peers
        ("paths", "hard", 121_063),  # its ranks are three calls behind their data-parallel peers
    ],
)
def test_a_host_that_launches_late_costs_what_its_ranks_idle_together(
    source: str, mode: str, seed: int
) -> None:
    known, said = modelled.judge(source, mode, seed, "host, dispatch")
    (fault,) = known.faults
    (found,) = [one for one in said.findings if one.kind == "slow_host"]
    assert set(found.hosts) == set(fault.hosts)
    assert found.cost_ms_per_step == pytest.approx(fault.cost_ms, abs=0.01 * known.step_ms)
