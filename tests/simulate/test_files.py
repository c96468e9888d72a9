"""Written files: what the readers make of them is the job; same seed, same bytes; the form of real files."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from benchmarks.detection.simulated_tables import tables
from cluster_analysis.discovery.discover import discover
from cluster_analysis.tables.rank_tables import RankTables
from cluster_analysis.tables.schema import PEER_VARIANT
from cluster_run import layout
from cluster_run.errors import InputError, UsageError
from cluster_run.ids import Rank
from cluster_run.manifest import read_manifest
from cluster_run.ranktable import parse_rank_table
from cluster_simulate.api import JobSpec, parse_scenario, simulate, truth_path, write_run
from cluster_simulate.job.layout import double_hash
from tests.analysis.one_rank import metadata_of, read_rank
from tests.simulate.jobs import VARIETY

REAL = Path(__file__).resolve().parents[3] / "shared/data"
SORTED_BY = {
    "steps": ["step"],
    "collectives": ["step", "start_ns", "op_name"],
    "links": ["step", "group", "op_type", "variant", "dst_local"],
    "operators": ["op_type"],
    "packets": ["step", "group", "transport", "packet_bytes"],
}
#: Files have two to three decimals.
US_APART = 2e-3


def frame(tables_of_ranks: Mapping[Rank, RankTables], name: str) -> pd.DataFrame:
    """Return one table of all ranks with plain text columns, in order, without what only a topology knows.

    Whom each message is for is told by databases alone, in links that nobody measured.
    """
    parts = [getattr(tables_of_ranks[rank], name) for rank in sorted(tables_of_ranks)]
    plain = pa.concat_tables(parts).unify_dictionaries().to_pandas()
    for column in plain.columns:
        if isinstance(plain[column].dtype, pd.CategoricalDtype):
            plain[column] = plain[column].astype(object)
    if "variant" in plain.columns:
        plain = plain[plain["variant"] != PEER_VARIANT]
    ordered = plain.sort_values(["rank", *SORTED_BY[name]]).reset_index(drop=True)
    return ordered.drop(columns=["src_rank", "dst_rank"], errors="ignore")


def read_run(run: Path) -> dict[Rank, RankTables]:
    """Return what the readers make of a run."""
    return {source.rank: read_rank(source) for source in discover(run, None).sources}


def assert_same(found: Mapping[Rank, RankTables], wanted: Mapping[Rank, RankTables]) -> None:
    assert found.keys() == wanted.keys()
    for name in SORTED_BY:
        pd.testing.assert_frame_equal(
            frame(found, name), frame(wanted, name), check_dtype=False, rtol=1e-9, atol=US_APART
        )


# That text and databases read back as the job, tests/analysis/test_one_job_two_forms.py says.
def test_the_r1_form_holds_the_same_job_by_device(tmp_path: Path) -> None:
    job = simulate(VARIETY["plain"], (), 3)
    write_run(job, tmp_path / "run", "r1", "ms")
    wanted = tables(job, "ms")
    sources = discover(tmp_path / "run", None).sources
    assert [source.rank for source in sources] == list(range(8))
    for source in sources:
        read = read_rank(source)
        assert read.problems == ()
        steps = read.iterations.to_pandas().dropna(subset=["step"])
        parts = steps.interval_us + steps.forward_backward_us + steps.tail_us
        np.testing.assert_allclose(parts, steps.total_us)
        expected = wanted[source.rank]
        whole = (job.times.end_us - job.times.first_task_us)[:, source.rank]
        np.testing.assert_allclose(steps.forward_backward_us + steps.tail_us, whole, rtol=1e-4, atol=0.05)
        found = np.sort(read.collectives["elapse_us"].to_numpy())
        np.testing.assert_allclose(found, np.sort(expected.collectives["elapse_us"].to_numpy()), atol=0.011)


def test_r1_averages_are_those_of_all_steps_but_the_first(tmp_path: Path) -> None:
    write_run(simulate(VARIETY["plain"], (), 3), tmp_path / "run", "r1")
    for path in (tmp_path / "run").rglob("step_trace_raw_*_detail_time.csv"):
        table = pd.read_csv(path)
        assert list(table.step_num) == ["1", "2", "3", "-"]
        figures = table.drop(columns="step_num")
        np.testing.assert_allclose(figures.iloc[3], figures.iloc[1:3].mean(), atol=0.5)
        assert (table.iteration_interval[0], table.start_point[1]) == (0, table.end_point[0])


def test_r1_splits_a_step_into_what_it_computed_and_what_it_waited_for(tmp_path: Path) -> None:
    write_run(simulate(VARIETY["plain"], (), 3), tmp_path / "run", "r1")
    paths = list((tmp_path / "run").rglob("ascend_cluster_analyse_pipeline-parallel_2_8_*.csv"))
    assert len(paths) == 8
    for path in paths:
        table = pd.read_csv(path)
        whole = table.computation_time + table.communication_alone_time
        np.testing.assert_allclose(whole, table.stage_time + table.receive_alone_time, atol=2e-4)
        collective = table.communication_alone_time - table.receive_alone_time
        np.testing.assert_allclose(collective, table.collective_communication_alone_time, atol=2e-4)


@pytest.mark.parametrize(
    ("detail", "missing"),
    [
        ("no_matrix", ["communication_matrix.json"]),
        ("totals", ["communication.json", "communication_matrix.json"]),
    ],
)
def test_less_detail_means_fewer_files_and_the_same_tables_without_them(
    tmp_path: Path, detail: str, missing: list[str]
) -> None:
    job = simulate(dataclasses.replace(VARIETY["plain"], detail=detail, declares_groups=False), (), 3)
    write_run(job, tmp_path / "run")
    names = {path.name for path in (tmp_path / "run").rglob("*")}
    assert not names & set(missing)
    found = read_run(tmp_path / "run")
    assert_same(found, tables(job))
    assert not [group for one in found.values() for group in metadata_of(one).groups]


def test_a_retransmission_is_marked_in_the_database(tmp_path: Path) -> None:
    job = simulate(VARIETY["plain"], [parse_scenario("retransmission:4000@0-4")], 3)
    write_run(job, tmp_path / "run", "db")
    marked = {}
    for path in (tmp_path / "run").rglob("ascend_pytorch_profiler_*.db"):
        with contextlib.closing(sqlite3.connect(path)) as connection:
            (marked[path.stem],) = connection.execute("SELECT SUM(retry) FROM COMMUNICATION_OP").fetchone()
    assert {name for name, count in marked.items() if count} >= {"ascend_pytorch_profiler_0"}
    assert sum(marked.values()) <= 2


@pytest.mark.parametrize("form", ["text", "db"])
def test_several_processes_write_the_same_bytes_as_one(tmp_path: Path, form: str) -> None:
    job = simulate(VARIETY["data only"], (), 5)
    for name, n_processes in (("one", 1), ("three", 3)):
        write_run(job, tmp_path / name, form, "pt", n_processes)  # type: ignore[arg-type]
    files = [path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file()]
    for path in files:
        assert (tmp_path / "one" / path).read_bytes() == (tmp_path / "three" / path).read_bytes(), path


@pytest.mark.parametrize("form", ["text", "db", "r1"])
def test_the_same_seed_gives_the_same_bytes(tmp_path: Path, form: str) -> None:
    for name in ("one", "two"):
        job = simulate(VARIETY["plain"], [parse_scenario("slow_rank:1.2")], 5)
        write_run(job, tmp_path / name, form, "pt")  # type: ignore[arg-type]
    files = [path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file()]
    assert len(files) >= 8 * 3
    for path in files:
        assert (tmp_path / "one" / path).read_bytes() == (tmp_path / "two" / path).read_bytes(), path
    assert truth_path(tmp_path / "one").read_bytes() == truth_path(tmp_path / "two").read_bytes()


def test_json_files_are_one_line_as_json_dumps_writes_it(tmp_path: Path) -> None:
    write_run(simulate(VARIETY["rough"], (), 5), tmp_path / "run")
    files = list((tmp_path / "run").rglob("communication*.json"))
    assert len(files) == 7 * 2
    for path in files:
        text = path.read_text()
        assert json.dumps(json.loads(text)) == text


def test_the_run_directory_is_what_the_collector_leaves(tmp_path: Path) -> None:
    run = tmp_path / "run"
    write_run(simulate(VARIETY["plain"], (), 5), run)
    table = parse_rank_table((run / layout.RANK_TABLE_NAME).read_text(), layout.RANK_TABLE_NAME)
    assert len(table.places) == 8
    mapping = dict(line.split() for line in (run / layout.MAPPING_NAME).read_text().splitlines())
    assert mapping == {server: str(n) for n, server in enumerate(table.server_ids, 1)}
    manifest = read_manifest(run / layout.MANIFEST_NAME)
    listed = {file.path: file.size_bytes for host in manifest.hosts for file in host.files}
    kept = {layout.RANK_TABLE_NAME, layout.MAPPING_NAME, layout.MANIFEST_NAME}
    there = {
        path.relative_to(run).as_posix(): path.stat().st_size
        for path in run.rglob("*")
        if path.is_file() and path.name not in kept
    }
    assert listed == there


def test_the_truth_lies_beside_the_run_and_nowhere_in_it(tmp_path: Path) -> None:
    run = tmp_path / "run"
    answer = write_run(simulate(VARIETY["plain"], [parse_scenario("slow_rank:1.25@3")], 5), run)
    written = json.loads((tmp_path / "run.truth.json").read_text())
    assert written["faults"][0]["ranks"] == [3]
    assert written["faults"][0]["cost_ms_per_step"] == answer.faults[0].cost_ms_per_step
    assert not [path for path in run.rglob("*") if "truth" in path.name]


def test_a_directory_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="something already"):
        write_run(simulate(VARIETY["alone"], (), 5), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_r1_files_cannot_hold_batched_operators(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no batchSendRecv"):
        write_run(simulate(VARIETY["batch"], (), 5), tmp_path / "run", "r1")


def test_operator_names_end_in_the_hash_of_their_group(tmp_path: Path) -> None:
    job = simulate(VARIETY["plain"], (), 5)
    for name, hash_ in zip(job.groups.names, job.groups.hashes, strict=True):
        assert str(double_hash(name)) == hash_
    # A pair that a real capture shows.
    assert double_hash("90.91.105.46%enp189s0f0_60000_0_1736410538306028") == 17148521525495523210


def shape(value: object) -> object:
    """Return the keys of a JSON value with an example of what is below them."""
    if isinstance(value, dict):
        return {key: shape(one) for key, one in value.items()}
    return type(value).__name__ if isinstance(value, str | list) else "number"


def test_entries_have_the_keys_of_a_real_capture(tmp_path: Path) -> None:
    real = REAL / "qwen3-4ranks-pt/rank_0_ascend_pt/ASCEND_PROFILER_OUTPUT"
    if not real.is_dir():
        pytest.skip("the real captures are not on this machine")
    write_run(simulate(JobSpec(tp=1, pp=2, dp=2, p2p="batch", steps=1), (), 1), tmp_path / "run")
    ours = next((tmp_path / "run").rglob("*21000*ascend_pt")) / "ASCEND_PROFILER_OUTPUT"

    def entry(folder: Path, file: str, level: str, start: str) -> object:
        step = next(iter(json.loads((folder / file).read_text()).values()))
        return next(shape(one) for key, one in step[level].items() if key.startswith(start))

    for level, start in (("p2p", "hcom_batchSendRecv"), ("collective", "hcom_allReduce")):
        wanted, found = (entry(one, "communication.json", level, start) for one in (real, ours))
        for part in ("Communication Time Info", "Communication Bandwidth Info"):
            assert list(found[part]) == list(wanted[part])  # type: ignore[index]
    for level, start in (("p2p", "batchsendrecv-top1"), ("collective", "reduce-total")):
        wanted, found = (entry(one, "communication_matrix.json", level, start) for one in (real, ours))
        assert next(iter(found.values())).keys() == next(iter(wanted.values())).keys()  # type: ignore[attr-defined]
    for file in ("step_trace_time.csv", "op_statistic.csv", "api_statistic.csv"):
        heads = [(folder / file).read_text().splitlines()[0] for folder in (real, ours)]
        assert heads[0] == heads[1]
