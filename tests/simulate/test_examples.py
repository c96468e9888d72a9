"""The examples of `cluster-simulate --help` are worth trying: each costs time at the default sizes."""

import re
from functools import cache

import pytest

from cluster_simulate.api import JobSpec, SimulatedJob
from cluster_simulate.job.events import simulate
from cluster_simulate.job.faults import parse_scenario
from cluster_simulate.options import SCENARIO_HELP, build_parser, spec_of

EXAMPLES = re.findall(r"^  ([a-z_]+:\S+)  ? *", SCENARIO_HELP, re.MULTILINE)


def test_help_has_an_example_of_every_kind():
    assert len(EXAMPLES) == len([line for line in SCENARIO_HELP.splitlines() if line.startswith("  ")])


@cache
def healthy(spec: JobSpec) -> SimulatedJob:
    return simulate(spec, (), seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_of_the_help_costs_time_at_default_sizes(example):
    sizes = ["--ep", "2"] if example.startswith("expert") else []
    spec = spec_of(build_parser("cluster-simulate").parse_args(["out", *sizes]))
    with_it = simulate(spec, [parse_scenario(example)], seed=1)
    assert len(with_it.faults) == 1
    assert with_it.step_ms > healthy(spec).step_ms + 0.1
