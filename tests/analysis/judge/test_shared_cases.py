"""Small jobs rebuilt from strangers' files and from models: what must be said of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from cluster_analysis import pipeline
from cluster_analysis.__main__ import main
from cluster_analysis.judge.detection import Detection, detect
from cluster_analysis.options import AnalyseOptions
from cluster_run.kinds import FAULT_KINDS

CASES = Path(__file__).parents[4] / "shared" / "cases"


@contextmanager
def judged_case(name: str) -> Iterator[Detection]:
    """Give what is found in one of the cases; skip where they are not beside the repository."""
    if not (CASES / name).is_dir():
        pytest.skip(f"the case {name} is not beside the repository")
    options = AnalyseOptions(run=CASES / name, scheduler="threads", n_workers=1, write_report=False)
    with pipeline.examined(options) as examined:
        yield detect(examined.evidence, examined.topology)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "finding"),
    [
        pytest.param("bench-16/prof", "slow_host-3", id="a host far slower than three others"),
        pytest.param("bench-29/prof", "slow_rank-23", id="a device among unequal samples"),
        pytest.param("28-waiting-inside-fused-kernels/slow5", "slow_rank-5", id="no call is recorded"),
        pytest.param(
            "28-waiting-inside-fused-kernels/slow5-with-allreduce", "slow_rank-5", id="calls beside"
        ),
    ],
)
def test_the_fault_is_an_alarm(name: str, finding: str) -> None:
    with judged_case(name) as found:
        assert finding in [one.id for one in found.findings if one.is_alarm]


def test_nobody_is_slow_where_all_wait_inside_kernels_alike() -> None:
    with judged_case("28-waiting-inside-fused-kernels/healthy") as found:
        assert found.verdict == "healthy"


@pytest.mark.parametrize(
    ("form", "note"),
    [
        ("level0", "unread_communication"),  # no group says that others are missing
        ("level1-wait-known", "waited_for_others"),
        ("level1-wait-zero", "waited_for_others"),
    ],
)
def test_a_rank_alone_that_waits_in_its_first_collective_blames_nobody(form: str, note: str) -> None:
    with judged_case(f"20-one-rank-first-collective-waits/{form}") as found:
        assert found.verdict == "unknown"
        assert [one.id for one in found.findings if one.is_alarm] == []
        assert note in [one.kind for one in found.notes]


# Real captures: no device is blamed, and what cannot be told is said.
DATA = Path(__file__).parents[4] / "shared" / "data"
CAPTURES = [
    "qwen3-4ranks-pt",
    "gpt3-16ranks-pt",
    "resnet-2of8-pt-text",
    "resnet-2of8-pt-db",
    "mindspore-r1-4ranks",
]


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, Any]]:
    @cache
    def found(name: str) -> dict[str, Any]:
        """What is said of a capture, which is analysed once."""
        if not (DATA / name).is_dir():
            pytest.skip(f"the real captures are not at {DATA}")
        output = tmp_path_factory.mktemp("real") / "out"
        main([str(DATA / name), "--output", str(output), "--no-report", "-q"])
        document: dict[str, Any] = json.loads((output / "findings.json").read_text())
        return document

    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", CAPTURES)
def test_no_real_capture_blames_a_device_or_link(
    name: str, findings: Callable[[str], dict[str, Any]]
) -> None:
    document = findings(name)
    assert [one["id"] for one in document["findings"] if one["kind"] in FAULT_KINDS] == []
    assert document["verdict"] != "degraded"


def test_the_four_rank_job_has_an_uneven_stage(findings: Callable[[str], dict[str, Any]]) -> None:
    document = findings("qwen3-4ranks-pt")
    (finding,) = [one for one in document["findings"] if one["kind"] == "stage_imbalance"]
    assert "401 ms a step against 231 ms" in finding["summary"]
    assert finding["severity"] == "info"
    assert document["replay"]["error_share"] < 0.05


@pytest.mark.parametrize("name", ["resnet-2of8-pt-text", "resnet-2of8-pt-db"])
def test_two_of_eight_ranks_are_not_judged_and_the_others_are_mentioned(
    name: str, findings: Callable[[str], dict[str, Any]]
) -> None:
    document = findings(name)
    assert document["verdict"] == "unknown"
    assert any("2 of 8 ranks can be compared" in note for note in document["notes"])
