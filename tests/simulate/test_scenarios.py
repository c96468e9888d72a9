"""How scenarios are written, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_run.errors import UsageError
from cluster_simulate.api import Fault, JobSpec, parse_scenario, simulate
from cluster_simulate.options import SCENARIO_HELP


def test_every_example_of_the_help_can_be_parsed() -> None:
    examples = [line.split()[0] for line in SCENARIO_HELP.splitlines() if line.startswith("  ")]
    assert len(examples) >= 15
    assert len({parse_scenario(text).kind for text in examples}) == 14


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("slow_rank:1.25@5", Fault("slow_rank", 1.25, ranks=(5,), cause="compute")),
        ("slow_rank:1.25@rank=5", Fault("slow_rank", 1.25, ranks=(5,), cause="compute")),
        ("slow_rank@2-3", Fault("slow_rank", 1.25, ranks=(2, 3), cause="compute")),
        ("slow_host:1.05@2", Fault("slow_host", 1.05, hosts=(1,), cause="dispatch")),
        ("slow_link:2@3-11", Fault("slow_link", 2.0, links=((3, 11), (11, 3)), cause="bandwidth")),
        (
            "slow_link:2@3-11,dir=one",
            Fault("slow_link", 2.0, links=((3, 11),), cause="bandwidth", direction="one"),
        ),
        ("slow_uplink:3@1+4", Fault("slow_uplink", 3.0, hosts=(0, 3), cause="bandwidth")),
        ("stage_imbalance:1.4", Fault("stage_imbalance", 1.4)),
    ],
)
def test_a_scenario_says_what_where_and_how_much(text: str, wanted: Fault) -> None:
    assert parse_scenario(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "slow_moon:2", "slow_rank:fast", "slow_rank:-1", "slow_rank:nan", "slow_rank:1.2@five",
        "slow_link:2@3",
        "slow_rank:1.2,cause=magic", "slow_rank:1.2,pattern=weekly", "slow_rank:1.2,duty=2",
        "slow_rank:1.2,mood=bad",
        "slow_rank:1.3@5,every=3", "slow_rank:1.3@5,duty=0.3", "slow_rank:1.3,op=cube,cause=input",
        "slow_nic:3@5,dir=one", "slow_link:2@3-11,via=hccs", "slow_host_pair:2@1-2,dir=tx",
        "stage_imbalance:1.4,pattern=trend",
        "stage_imbalance:1.4@3", "periodic_pause:80@5,every=0", "",
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError):
        parse_scenario(text)


@given(text=st.text(max_size=40))
def test_no_text_is_worse_than_a_usage_error(text: str) -> None:
    errors: list[UsageError] = []
    for prefix in ("", "slow_rank:", "slow_link:2@", "slow_host@", "slow_nic:3,"):
        try:
            parse_scenario(prefix + text)
        except UsageError as error:
            errors.append(error)
    assert all(error.message for error in errors)


@pytest.mark.parametrize(
    "text",
    ["slow_rank:1.2@99", "slow_link:2@3-3", "slow_host:1.1@9", "slow_host_pair:2@1-1", "expert_imbalance"],
)
def test_a_place_the_job_does_not_have_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        simulate(JobSpec(tp=2, pp=2, dp=2), [parse_scenario(text)], 1)


@pytest.mark.parametrize("values", [{"tp": 0}, {"dp": 3, "ep": 2}, {"pp": 4, "vpp": 2, "microbatches": 6}])
def test_a_layout_that_cannot_run_is_refused(values: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        JobSpec(**values)  # type: ignore[arg-type]


def test_a_link_fault_without_links_is_refused() -> None:
    with pytest.raises(UsageError, match="no such link"):
        simulate(JobSpec(tp=1, pp=1, dp=1), [parse_scenario("slow_nic:3")], 1)
