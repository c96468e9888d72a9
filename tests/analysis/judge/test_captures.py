"""Real captures: no device is blamed, and what cannot be told is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cluster_analysis.__main__ import main
from cluster_run.kinds import FAULT_KINDS

DATA = Path(__file__).parents[4] / "shared" / "data"
CAPTURES = [
    "qwen3-4ranks-pt",
    "gpt3-16ranks-pt",
    "resnet-2of8-pt-text",
    "resnet-2of8-pt-db",
    "mindspore-r1-4ranks",
]


def findings(name: str, output: Path) -> dict[str, Any]:
    if not (DATA / name).is_dir():
        pytest.skip(f"the real captures are not at {DATA}")
    main([str(DATA / name), "--output", str(output), "--no-report", "-q"])
    document: dict[str, Any] = json.loads((output / "findings.json").read_text())
    return document


@pytest.mark.parametrize("name", CAPTURES)
def test_no_real_capture_blames_a_device_or_link(name: str, tmp_path: Path) -> None:
    document = findings(name, tmp_path / "out")
    assert [one["id"] for one in document["findings"] if one["kind"] in FAULT_KINDS] == []
    assert document["verdict"] != "degraded"


def test_the_four_rank_job_has_an_uneven_stage(tmp_path: Path) -> None:
    document = findings("qwen3-4ranks-pt", tmp_path / "out")
    (finding,) = [one for one in document["findings"] if one["kind"] == "stage_imbalance"]
    assert "401 ms a step against 231 ms" in finding["summary"]
    assert finding["severity"] == "info"
    assert document["replay"]["error_share"] < 0.05


@pytest.mark.parametrize("name", ["resnet-2of8-pt-text", "resnet-2of8-pt-db"])
def test_two_of_eight_ranks_are_not_judged_and_the_others_are_mentioned(name: str, tmp_path: Path) -> None:
    document = findings(name, tmp_path / "out")
    assert document["verdict"] == "unknown"
    assert any("2 of 8 ranks were read" in note for note in document["notes"])
