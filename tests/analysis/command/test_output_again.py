"""Our own output read again: as a baseline, as a page, as a result of the API."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import cluster_analysis as ca
from cluster_analysis.cli import main
from cluster_analysis.kept.loaded import load_result
from cluster_run.errors import InputError
from cluster_simulate.cli import main as simulate
from tests.analysis.command.places import SIZES


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A healthy run of which the output alone is left, and one with a slow rank."""
    folder = tmp_path_factory.mktemp("again")
    assert simulate([str(folder / "raw"), *SIZES, "-q"]) == 0
    assert main([str(folder / "raw"), "--output", str(folder / "kept"), "--no-insight", "-q"]) == 0
    shutil.rmtree(folder / "raw")
    assert simulate([str(folder / "slow"), *SIZES, "--scenario", "slow_rank:1.3@5", "-q"]) == 0
    return folder / "kept", folder / "slow"


def test_what_was_written_is_read_back_as_it_was(runs: tuple[Path, Path], tmp_path: Path) -> None:
    _, slow = runs
    live = ca.analyse(slow)
    assert main([str(slow), "--output", str(tmp_path), "--no-insight", "-q"]) == 0
    again = load_result(tmp_path)
    assert again.document == live.document
    for name, table in live.tables.items():
        assert again.tables[name].equals(table), name
    assert again.topology.hosts == dict(again.topology.hosts)
    assert {one.group: one.ranks for one in again.topology.groups.values()} == {
        one.group: one.ranks for one in live._result.topology.groups.values() if len(one.ranks) > 1
    }


def test_our_own_output_is_a_baseline(runs: tuple[Path, Path], tmp_path: Path) -> None:
    kept, slow = runs
    code = main([str(slow), "--baseline", str(kept), "--output", str(tmp_path), "--no-insight", "-q"])
    assert code == 0
    found = json.loads((tmp_path / "comparison.json").read_text())
    assert [one["kind"] for one in found["new"]] == ["slow_rank"]
    certain = {one["name"] for one in found["changes"] if one["is_certain"]}
    assert {"step", "rank 5"} <= certain


def test_a_directory_that_is_no_output_is_refused_with_what_to_keep(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"keep findings\.json and tables/"):
        load_result(tmp_path)


def test_a_damaged_table_is_named(runs: tuple[Path, Path], tmp_path: Path) -> None:
    shutil.copytree(runs[0], tmp_path / "cut")
    (tmp_path / "cut" / "tables" / "steps.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"steps\.parquet: not a readable table"):
        load_result(tmp_path / "cut")
