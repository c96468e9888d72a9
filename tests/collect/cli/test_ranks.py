"""Some ranks only: of an inventory, and of a run directory once more. Real hosts with simulated captures."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from cluster_analysis.cli import main as analyse
from cluster_collect.selection.suspects import read_suspects
from cluster_reduce.form import SUFFIX
from cluster_run.errors import ExitCode
from cluster_run.manifest import CollectedFile, read_manifest
from tests.analysis.runs import write_small_run
from tests.collect.helpers import rank_table

from .conftest import Hosts, run_collect

COLUMNS = ("--what", "columns", "--columns-as-root")
N_RANKS = 8


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two hosts with four ranks each; rank 3 is slow. Each capture has a file that is for people."""
    run = write_small_run(tmp_path_factory.mktemp("ranks") / "run", steps=3)
    for output in run.rglob("ASCEND_PROFILER_OUTPUT"):
        (output / "trace_view.json").write_text("[]")
    return run


@pytest.fixture
def two_hosts(hosts: Hosts, simulated: Path) -> Hosts:
    for number, name in enumerate(("alpha", "beta"), start=1):
        root = hosts.add(name)
        shutil.rmtree(root)
        shutil.copytree(simulated / "cluster_profiler" / str(number) / "profiler", root)
    return hosts


def files_of(run: Path) -> dict[int, list[CollectedFile]]:
    """The files of each rank, as the manifest has them; they are there."""
    ranks: dict[str, int] = {}
    found: dict[int, list[CollectedFile]] = {}
    files = [file for host in read_manifest(run / "manifest.json").hosts for file in host.files]
    for file in files:
        if Path(file.path).name.startswith("profiler_info_"):
            ranks[Path(file.path).parent.name] = int(Path(file.path).stem.rpartition("_")[2])
    for file in files:
        assert (run / file.path).stat().st_size == file.size_bytes
        (capture,) = set(Path(file.path).parts) & set(ranks)
        found.setdefault(ranks[capture], []).append(file)
    return found


def is_whole(files: list[CollectedFile]) -> bool:
    names = {Path(file.path).name for file in files}
    return "trace_view.json" in names and not any(name.endswith(SUFFIX) for name in names)


def whole_ranks(run: Path) -> set[int]:
    return {rank for rank, files in files_of(run).items() if is_whole(files)}


def analysed(run: Path) -> dict[str, Any]:
    """The findings, without what differs from call to call."""
    assert analyse([str(run), "-q", "--no-report", "--no-insight"]) in (ExitCode.DONE, ExitCode.INCOMPLETE)
    document: dict[str, Any] = json.loads((run / "cluster_analysis_output" / "findings.json").read_text())
    document["run"] = {key: value for key, value in document["run"].items() if key != "analysed"}
    return document


@pytest.mark.slow
def test_suspects_of_a_run_come_whole_from_the_hosts_that_hold_them_and_change_no_finding(
    two_hosts: Hosts,
) -> None:
    run = two_hosts.directory / "run"
    assert two_hosts.collect("--output", "run", *COLUMNS).returncode == 0
    assert whole_ranks(run) == set()
    before = analysed(run)
    suspects = read_suspects(run / "cluster_analysis_output" / "findings.json")
    assert (suspects.named, len(suspects.peers)) == ((3,), 2)
    assert suspects.ranks <= {0, 1, 2, 3}, "peers are of the same stage, which is on the first host"
    two_hosts.lab.stop(two_hosts.servers["beta"])
    elsewhere = two_hosts.directory / "elsewhere"
    elsewhere.mkdir()
    result = run_collect(["--like", str(run), "--ranks", "suspects", "--what", "full"], elsewhere)
    assert result.returncode == 0, result.stderr + result.stdout
    assert "suspects: 3; peers to compare with: " in result.stderr
    assert whole_ranks(run) == suspects.ranks
    assert sorted(files_of(run)) == list(range(N_RANKS)), "the lines of all others stay in the manifest"
    assert read_manifest(run / "manifest.json").what == ("columns",)
    assert analysed(run) == before
    two_hosts.lab.stop(two_hosts.servers["alpha"])
    failed = run_collect(["--like", str(run), "--ranks", "0-7", "--what", "full", "--attempts=1"], elsewhere)
    assert failed.returncode == 3
    assert whole_ranks(run) == suspects.ranks, "nothing that was there is lost"
    assert {host.state for host in read_manifest(run / "manifest.json").hosts} == {"complete"}
    assert analysed(run) == before, "and the data are as whole as they were"


@pytest.mark.slow
def test_ranks_that_stay_whole_come_so_beside_columns_and_a_second_call_fetches_nothing(
    two_hosts: Hosts,
) -> None:
    arguments = ("--output", "run", *COLUMNS, "--keep-raw", "1-2,6")
    result = two_hosts.collect(*arguments)
    assert result.returncode == 0, result.stderr
    run = two_hosts.directory / "run"
    assert whole_ranks(run) == {1, 2, 6}
    reduced = [file for files in files_of(run).values() for file in files if file.reduced_from_bytes]
    assert len(reduced) == 2 * (N_RANKS - 3)
    stored = {path: path.stat().st_ino for path in (run / "cluster_profiler").rglob("*") if path.is_file()}
    assert two_hosts.collect(*arguments).returncode == 0
    assert {path: path.stat().st_ino for path in stored} == stored
    ranks = analysed(run)["run"]["ranks"]
    assert ranks == N_RANKS, "a rank is read once, in whatever form it lies there"


@pytest.mark.slow
def test_like_a_run_into_another_directory_only_the_ranks_that_are_named(two_hosts: Hosts) -> None:
    for entry in two_hosts.entries:
        entry["profiler_root"] = str(entry["profiler_root"]).replace("/data/", "/$PLACE/")
    first = two_hosts.collect("--output", "run", *COLUMNS, environment={"PLACE": "data"})
    assert first.returncode == 0, first.stderr
    newer = next((two_hosts.directory / "data" / "beta").glob("*_ascend_pt"))
    shutil.copytree(newer, newer.with_name("newer_20990101000000_ascend_pt"))
    result = run_collect(
        ["--like", "run", "--ranks", "4-5", "--what", "full", "--output", "some"], two_hosts.directory
    )
    assert result.returncode == 0, result.stderr
    some = two_hosts.directory / "some"
    assert whole_ranks(some) == set(files_of(some)) == {4, 5}
    assert not list(some.rglob("newer_*")), "what was written after the run is not of it"
    assert [path.name for path in (some / "cluster_profiler").iterdir()] == ["2"]
    assert whole_ranks(two_hosts.directory / "run") == set()


@pytest.mark.slow
def test_ranks_of_an_inventory_are_fetched_alone_and_one_that_nobody_has_is_named(two_hosts: Hosts) -> None:
    result = two_hosts.collect("--output", "run", "--ranks", "2,77", "--what", "full")
    assert result.returncode == 3
    assert "missing: no capture of rank 77" in result.stdout
    assert set(files_of(two_hosts.directory / "run")) == {2}
    asked = two_hosts.collect("--ranks", "2", "--what", "full", "--dry-run", "--json")
    assert asked.returncode == 0, asked.stderr
    sources = [file["source"] for host in json.loads(asked.stdout)["hosts"] for file in host["files"]]
    assert {source.split("/")[0] for source in sources} == {
        file.source.split("/")[0] for file in files_of(two_hosts.directory / "run")[2]
    }


def test_a_run_without_a_file_is_not_said_to_be_analysed_next(two_hosts: Hosts) -> None:
    result = two_hosts.collect("--output", "run", "--ranks", "77", "--what", "full")
    assert result.returncode == 3
    assert "0 files" in result.stdout
    assert "next:" not in result.stderr


@pytest.mark.slow
def test_a_run_that_cannot_be_asked_again_is_said_to_be_so(two_hosts: Hosts) -> None:
    assert two_hosts.collect("--output", "run", *COLUMNS).returncode == 0
    run = two_hosts.directory / "run"
    for ranks, said in {
        "99": "it has no capture of rank 99, only of 0-7",
        "suspects": "there are no findings yet",
    }.items():
        result = run_collect(["--like", "run", "--ranks", ranks], two_hosts.directory)
        assert (result.returncode, said in result.stderr) == (1, True), result.stderr
    two_hosts.inventory.rename(two_hosts.directory / "moved.yaml")
    result = run_collect(["--like", "run", "--ranks", "1"], two_hosts.directory)
    assert (result.returncode, "hosts.yaml: the inventory does not exist" in result.stderr) == (1, True)
    assert "  → name where it is now: --inventory FILE" in result.stderr
    nowhere = run_collect(["--like", "nowhere", "--ranks", "1"], two_hosts.directory)
    assert (nowhere.returncode, "nowhere: no run directory" in nowhere.stderr) == (1, True), nowhere.stderr
    moved = ["--like", "run", "--ranks", "1", "--inventory", "moved.yaml", "--what", "full"]
    assert run_collect(moved, two_hosts.directory).returncode == 0
    assert whole_ranks(run) == {1}
    document = json.loads((run / "manifest.json").read_text())
    (run / "manifest.json").write_text(json.dumps({**document, "origin": None}))
    result = run_collect(["--like", "run", "--ranks", "1"], two_hosts.directory)
    assert (result.returncode, "does not say how its hosts were named" in result.stderr) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--ranks", "suspects", "--hosts", "a"], "--like RUN names the run directory"),
        (["--keep-raw", "suspects", "--hosts", "a"], "they are not known yet"),
        (["--keep-raw", "1", "--what", "full", "--hosts", "a"], "whole already"),
        (["--ranks", "3-1", "--hosts", "a"], "--ranks: not a range"),
        (["--ranks", "1"], "or --like RUN"),
    ],
)
def test_what_cannot_be_meant_of_ranks_is_told_at_once(
    tmp_path: Path, arguments: list[str], said: str
) -> None:
    result = run_collect(arguments, tmp_path)
    assert result.returncode == 2
    assert said in result.stderr


def test_the_rank_table_tells_the_rank_of_a_bare_capture_and_again_for_a_run(tmp_path: Path) -> None:
    for host in ("one", "two"):
        for device in range(2):
            folder = tmp_path / host / f"PROF_00000{device}_1" / f"device_{device}"
            folder.mkdir(parents=True)
            (folder / f"info.json.{device}").write_text("{}")
            (folder / "raw.data").write_text(f"of {host}, device {device}")
    rank_table(tmp_path / "hccl.json", {"one": [0, 1], "two": [2, 3]})
    lines = [f"  - local: {tmp_path / host}\n    server_id: {host}\n" for host in ("one", "two")]
    (tmp_path / "hosts.yaml").write_text("version: 1\nrank_table: hccl.json\nhosts:\n" + "".join(lines))
    run = tmp_path / "run"
    result = run_collect(["--inventory", "hosts.yaml", "--output", "run", "--ranks", "3"], tmp_path)
    assert result.returncode == 0, result.stderr + result.stdout
    assert [path.name for path in run.rglob("info.json*")] == ["info.json.1"]
    assert not list(run.rglob("raw.data"))
    missing = run_collect(["--inventory", "hosts.yaml", "--output", "run", "--ranks", "3,4"], tmp_path)
    assert (missing.returncode, "4" in missing.stdout) == (3, True)
    again = run_collect(["--like", "run", "--ranks", "3", "--what", "full"], tmp_path)
    assert again.returncode == 0, again.stderr + again.stdout
    assert [path.read_text() for path in run.rglob("raw.data")] == ["of two, device 1"]
