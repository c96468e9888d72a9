"""`--all-parts`: each job of a tree with a report of its own, and one page that leads to them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster_analysis.cli import main
from tests.analysis.sources.builders import write_capture


@pytest.fixture
def two_jobs(tmp_path: Path) -> Path:
    for role in ("actor", "rollout <1>"):
        for rank in range(2):
            write_capture(tmp_path / "prof" / role, rank, f"n_{rank}_2025112610053020{rank}_ascend_pt")
    return tmp_path / "prof"


def test_each_part_has_findings_and_the_page_leads_to_all(
    two_jobs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(two_jobs), "--all-parts", "--json", "-q", "--scheduler", "threads"])
    shown = json.loads(capsys.readouterr().out)
    assert sorted(shown["parts"]) == ["actor", "rollout <1>"]
    assert {one["run"]["ranks"] for one in shown["parts"].values()} == {2}
    output = two_jobs / "cluster_analysis_output"
    index = json.loads((output / "parts.json").read_text())
    page = (output / "report.html").read_text()
    assert [one["folder"] for one in index["parts"]] == ["parts/actor", "parts/rollout-1"]
    for part in index["parts"]:
        assert (output / part["folder"] / "findings.json").is_file()
        assert f'href="{part["folder"]}/report.html"' in page
    assert "rollout &lt;1&gt;" in page


def test_judging_one_part_later_leaves_the_others_and_tells_that_they_are_older(
    two_jobs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(two_jobs), "--all-parts", "-q", "--no-insight", "--scheduler", "threads"])
    main([str(two_jobs), "--part", "actor", "--no-insight", "--scheduler", "threads"])
    assert "From an earlier call, and not renewed: parts/\n" in capsys.readouterr().err
    output = two_jobs / "cluster_analysis_output"
    assert (output / "parts").is_dir()
    assert (output / "parts.json").is_file()
    assert json.loads((output / "findings.json").read_text())["run"]["command"].endswith("--part actor")


def test_judging_all_parts_later_tells_that_the_findings_of_one_are_older(
    two_jobs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main([str(two_jobs), "--part", "actor", "-q", "--no-insight", "--scheduler", "threads"])
    main([str(two_jobs), "--all-parts", "--no-insight", "--scheduler", "threads"])
    assert "From an earlier call, and not renewed: tables/, findings.json\n" in capsys.readouterr().err


def test_all_parts_and_one_part_exclude_each_other(
    two_jobs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(two_jobs), "--all-parts", "--part", "actor"]) == 2
    assert "leave one of them out" in capsys.readouterr().err
