"""One DDP job on two of 8 ranks, once as text and once as databases."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cluster_analysis.discovery.discover import discover
from cluster_analysis.judging import judged
from cluster_analysis.options import AnalyseOptions
from cluster_analysis.pipeline import examined
from cluster_analysis.sources.db.profiler_db import read_task_steps
from cluster_analysis.sources.db.task_links_db import read_task_links
from cluster_analysis.sources.errors import unheard
from cluster_analysis.sources.text.step_trace_csv import COLUMNS
from cluster_analysis.trace.calls import calls_of
from tests.analysis.one_rank import read_rank
from tests.analysis.real.captures import DATA, needs_captures, read
from tests.analysis.said import summary
from tests.analysis.sources.hand_made_databases import changed

pytestmark = needs_captures


def test_stored_step_times_of_resnet_are_those_recomputed_from_its_tasks() -> None:
    capture, tables = read("resnet-2of8-pt-db")
    for source in capture.sources:
        recomputed = read_task_steps(Path(source.files["profiler_db"]), source.rank, False, unheard)
        assert recomputed is not None
        for column in COLUMNS:
            (stored,), (computed,) = (
                tables[source.rank].steps[column].to_pylist(),
                recomputed[column].to_pylist(),
            )
            assert computed == pytest.approx(stored, abs=0.001), column


def test_resnet_as_text_and_as_database_has_tables_of_one_shape() -> None:
    # Two runs of one job: the same operators, kernels and links, other times.
    text, database = read("resnet-2of8-pt-text")[1], read("resnet-2of8-pt-db")[1]
    for rank in (0, 1):
        for name in ("steps", "collectives", "links", "packets", "operators"):
            left, right = getattr(text[rank], name), getattr(database[rank], name)
            assert left.schema == right.schema
            assert left.num_rows == right.num_rows, name
        for columns in (["op_type", "core_type", "n_calls"],):
            left, right = (
                sorted(map(str, one[rank].operators.select(columns).to_pylist())) for one in (text, database)
            )
            assert left == right
        sizes = [sorted(one[rank].collectives["hccs_bytes"].to_pylist()) for one in (text, database)]
        assert sizes[0] == pytest.approx(sizes[1])


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("UPDATE CommAnalyzerBandwidth SET hccl_op_name = 'x'", {"left_out"}),
        ("UPDATE CommAnalyzerBandwidth SET group_name = '' WHERE rowid % 3 = 1", {"left_out"}),
        ("UPDATE CommAnalyzerBandwidth SET step = NULL", {"left_out"}),
        ("DELETE FROM CommAnalyzerBandwidth", {"left_out"}),
        ("DROP TABLE CommAnalyzerBandwidth", {"left_out"}),
        ("UPDATE CommAnalyzerTime SET hccl_op_name = 'x' WHERE rowid = 1", {"left_out"}),
        ("UPDATE CommAnalyzerMatrix SET group_name = 'x'", {"no_link_in_it", "no_operator_of_links"}),
        (
            "UPDATE CommAnalyzerMatrix SET group_name = NULL WHERE rowid % 3 = 1",
            {"no_operator_of_links", "links_differ"},
        ),
        ("DELETE FROM CommAnalyzerMatrix", {"no_link_in_it"}),
    ],
)
def test_what_one_table_of_resnet_says_of_operators_that_no_other_names_is_told(
    tmp_path: Path, damage: str, told: set[str]
) -> None:
    shutil.copytree(DATA / "resnet-2of8-pt-db", tmp_path / "run")
    source = discover(tmp_path / "run").sources[0]
    assert not read_rank(source).problems
    assert changed(Path(source.files["analysis_db"]), damage)
    (problem,) = read_rank(source).problems
    assert {one.kind for one in (problem.why, *problem.also)} == told
    assert problem.file == "analysis.db"


def test_time_stamps_of_resnet_keep_the_digits_of_the_text() -> None:
    _, tables = read("resnet-2of8-pt-text")
    assert tables[0].collectives["start_ns"][0].as_py() == 1736408883732241500


def test_kernels_summed_from_their_details_are_those_of_the_statistic() -> None:
    capture, tables = read("resnet-2of8-pt-text")
    source = capture.sources[0]
    files = {role: path for role, path in source.files.items() if role != "op_statistic"}
    from_details = read_rank(type(source)(source.rank, source.kind, files, 1)).operators.to_pylist()
    statistic = {(row["op_type"], row["core_type"]): row for row in tables[0].operators.to_pylist()}
    assert len(from_details) == len(statistic) == 33
    for row in from_details:
        expected = statistic[row["op_type"], row["core_type"]]
        assert row["n_calls"] == expected["n_calls"]
        assert row["total_us"] == pytest.approx(expected["total_us"], abs=0.01)
        assert row["max_us"] == pytest.approx(expected["max_us"], abs=0.001)


def test_links_of_resnet_summed_from_its_tasks_are_the_totals_of_its_matrix() -> None:
    capture, tables = read("resnet-2of8-pt-db")
    for source in capture.sources:
        from_tasks = read_task_links(Path(source.files["profiler_db"]), source.rank, unheard)
        assert from_tasks is not None
        sums: dict[tuple[int, int, str], list[float]] = {}
        for row in from_tasks.to_pylist():
            one = sums.setdefault((row["src_local"], row["dst_local"], row["transport"]), [0.0, 0.0])
            one[0] += row["size_bytes"]
            one[1] += row["time_us"]
        totals = [row for row in tables[source.rank].links.to_pylist() if row["variant"] == "total"]
        assert len(totals) == len(sums) == 8
        for row in totals:
            size, time = sums[row["src_local"], row["dst_local"], row["transport"]]
            assert size == pytest.approx(row["size_bytes"])
            assert time == pytest.approx(row["time_us"], rel=1e-3)


def test_sizes_of_resnet_are_known_from_count_and_type_where_no_transport_tells_them() -> None:
    capture, _ = read("resnet-2of8-pt-db")
    source = capture.sources[0]
    files = {"profiler_db": source.files["profiler_db"]}
    tables = read_rank(type(source)(source.rank, source.kind, files, 1))
    calls = calls_of(tables.collectives)
    assert [round(size / 1e6, 1) for size in calls.size_bytes] == [16.4, 67.1, 151.0, 9.9]


@pytest.mark.parametrize(
    ("form", "left_out", "confidence", "said"),
    [
        ("text", "", "high", "The data loader takes 3.5 ms of that, copying the batch to the device 7.1 ms"),
        ("text", "trace_view.json", "low", "The data loader was not timed"),
        ("db", "", "medium", "copying the batch to the device 5.1 ms"),
    ],
)
def test_time_before_the_first_operator_is_the_inputs_only_where_the_data_loader_was_timed(
    form: str, left_out: str, confidence: str, said: str, tmp_path: Path
) -> None:
    run_directory = tmp_path / "run"
    shutil.copytree(DATA / f"resnet-2of8-pt-{form}", run_directory, ignore=shutil.ignore_patterns(left_out))
    with examined(AnalyseOptions(run_directory, tmp_path / "out")) as run:
        (found,) = (one for one in judged(run).document.findings if one.kind == "input_bound")
    assert (found.confidence, said in summary(found)) == (confidence, True), summary(found)


def test_level_0_as_text_has_its_operators_from_the_kernels() -> None:
    capture, whole = read("resnet-2of8-pt-text")
    source = capture.sources[0]
    files = {role: path for role, path in source.files.items() if role not in ("communication", "matrix")}
    rows = read_rank(type(source)(source.rank, source.kind, files, 1)).collectives
    by_start = whole[source.rank].collectives.sort_by("start_ns")
    assert rows["op_type"].to_pylist() == by_start["op_type"].to_pylist() == ["allreduce"] * 4
    assert rows["elapse_us"].to_pylist() == pytest.approx(by_start["elapse_us"].to_pylist(), rel=1e-3)
    assert rows["hccs_bytes"].null_count == len(rows)


@pytest.mark.parametrize("form", ["text", "db"])
def test_transfers_of_two_of_eight_ranks_last_no_longer_than_their_links_were_busy(
    form: str, tmp_path: Path
) -> None:
    with examined(AnalyseOptions(DATA / f"resnet-2of8-pt-{form}", tmp_path)) as run:
        result = judged(run)
    matched = result.tables["matched"].to_pylist()
    assert max(row["transfer_us"] for row in matched) < 9_000
    assert max(row["max_wait_us"] for row in matched) > 70_000
    (found,) = (one for one in result.document.findings if one.kind == "exposed_communication")
    assert "ranks without files" in summary(found)
    assert (found.cost_ms_per_step, found.cost_high_ms) == (None, None)  # six of eight ranks are not there
