"""The jobs detectors are judged by: every one can be simulated, and they are as varied as they say."""

from __future__ import annotations

import pytest

from cluster_simulate.api import parse_scenario, simulate, tables, truth
from cluster_simulate.job.catalogue import FAULTS, LAYOUTS, draw_case


@pytest.mark.parametrize("hardness", ["plain", "hard"])
def test_a_seed_always_draws_the_same_case(hardness: str) -> None:
    for seed in range(20):
        assert draw_case(seed, hardness) == draw_case(seed, hardness)  # type: ignore[arg-type]


@pytest.mark.parametrize("hardness", ["plain", "hard"])
def test_cases_cover_all_layouts_and_faults_and_two_of_five_are_healthy(hardness: str) -> None:
    cases = [draw_case(seed, hardness) for seed in range(400)]  # type: ignore[arg-type]
    assert {case.name.partition(":")[0] for case in cases} == set(LAYOUTS)
    assert {fault.kind for case in cases for fault in case.faults} >= {
        parse_scenario(scenarios[0]).kind for scenarios in FAULTS.values()
    }
    healthy = sum(case.is_healthy for case in cases) / len(cases)
    assert 0.33 < healthy < 0.47
    assert {case.spec.noise.family for case in cases} == (
        {"lognormal"} if hardness == "plain" else {"lognormal", "ar1"}
    )


@pytest.mark.parametrize("hardness", ["plain", "hard"])
@pytest.mark.parametrize("seed", range(8))
def test_any_case_can_be_simulated_and_read(hardness: str, seed: int) -> None:
    case = draw_case(seed, hardness)  # type: ignore[arg-type]
    job = simulate(case.spec, case.faults, seed)
    found = tables(job)
    assert len(found) == case.spec.n_ranks - len(case.spec.healthy.missing_ranks)


@pytest.mark.slow
@pytest.mark.parametrize("hardness", ["plain", "hard"])
@pytest.mark.parametrize("seed", range(100, 125))
def test_no_fault_of_a_case_makes_its_job_faster(hardness: str, seed: int) -> None:
    case = draw_case(seed, hardness)  # type: ignore[arg-type]
    for fault in truth(simulate(case.spec, case.faults, seed)).faults:
        # Data drawn anew have no sign, and more operators meet other congestion.
        if fault.kind not in ("data_imbalance", "expert_imbalance", "small_packets"):
            assert fault.cost_ms_per_step >= -1e-9
