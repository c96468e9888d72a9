"""cluster-simulate as its users see it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from cluster_simulate.api import JobSpec, SimulatedJob
from cluster_simulate.cli import main
from cluster_simulate.job.events import simulate
from cluster_simulate.job.faults import parse_scenario
from cluster_simulate.options import SCENARIO_HELP, build_parser, spec_of

SMALL = ["--tp", "2", "--pp", "2", "--dp", "1", "--microbatches", "2", "--steps", "2"]


def test_it_writes_a_run_and_tells_what_each_fault_costs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    assert main([str(run), *SMALL, "--scenario", "slow_rank:1.5@1", "--scenario", "slow_link:3@0-1"]) == 0
    assert (run / "manifest.json").is_file()
    told = capsys.readouterr().out
    assert "slow_rank ×1.5 ranks 1: costs" in told
    assert "slow_link ×3 links 0-1,1-0: costs" in told
    assert str(tmp_path / "run.truth.json") in told


def test_json_is_the_truth_beside_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "run"), "--tp", "2", "--pp", "1", "--dp", "2", "--steps", "2", "--json"]) == 0
    assert capsys.readouterr().out == (tmp_path / "run.truth.json").read_text()


@pytest.mark.parametrize("form", ["text", "db", "r1"])
@pytest.mark.parametrize("framework", ["pt", "ms"])
def test_every_form_can_be_asked_for(tmp_path: Path, form: str, framework: str) -> None:
    assert main([str(tmp_path / "run"), *SMALL, "-q", "--form", form, "--framework", framework]) == 0


def test_a_bad_scenario_is_a_usage_error_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path / "run"), "--scenario", "slow_moon:2"]) == 2
    assert capsys.readouterr().err.startswith("cluster-simulate: no such scenario: 'slow_moon'")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "option",
    [
        "--seed=-1",
        "--tp=0",
        "--missing-records=2",
        "--forward-ms=nan",
        "--stage-work=1,0",
        "--sequence-sigma=-1",
    ],
)
def test_a_number_that_cannot_be_is_a_usage_error_that_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    assert main([str(tmp_path / "run"), "--pp", "2", option]) == 2
    assert option.partition("=")[0] in capsys.readouterr().err


def test_an_existing_run_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "run"), *SMALL, "-q"]) == 0
    assert main([str(tmp_path / "run"), *SMALL, "-q"]) == 1
    assert "something already" in capsys.readouterr().err


def test_missing_ranks_and_steps_are_missing_from_the_files(tmp_path: Path) -> None:
    run = tmp_path / "run"
    options = ["--missing-ranks", "1", "--missing-steps", "10"]
    assert main([str(run), *SMALL, *options, "-q"]) == 0
    captures = sorted(path.name.split("_")[1] for path in run.rglob("*_ascend_pt"))
    assert captures == ["21000", "21002", "21003"]
    for path in run.rglob("communication.json"):
        assert '"step11"' in path.read_text()
        assert '"step10"' not in path.read_text()


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
