from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster_analysis.judging import judged
from cluster_analysis.options import AnalyseOptions
from cluster_analysis.pipeline import examined
from cluster_analysis.tables.model import Selection
from cluster_analysis.tables.rank_tables import RankTables
from cluster_analysis.tables.schema import rows_of
from tests.analysis.one_rank import metadata_of, read_rank
from tests.analysis.said import notes_of, reason, summary
from tests.analysis.sources.builders import source_of

HEAD = "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail"
#: Ticks of 10 ns; total = interval + forward-backward + tail.
STEP_1 = "1,1000000,3000000,2000000,1000000,2900000,0,1900000,100000"
STEP_2 = "2,3000000,5000000,2000000,3100000,4900000,100000,1800000,100000"
STEP_3 = "3,5000000,7200000,2200000,5200000,7100000,200000,1900000,100000"
AVERAGE = "-,4000000,6100000,2100000,4150000,6000000,150000,1850000,100000"
LINKS = {"0-1": {"SDMA": [0.5, 4096.0, 99e9]}, "0-0": {"RDMA": [0.25, 8.0, 1.0, 0.1]}}


def trace(*lines: str, head: str = HEAD) -> str:
    return "\n".join([head, *lines]) + "\n"


def read(root: Path, text: str | None = None, **files: str) -> RankTables:
    roles = {
        "r1_hccl": "hccl_raw_2.csv",
        "r1_cluster_analyse": "ascend_cluster_analyse_pipeline-parallel_2_8_2.csv",
        "r1_flops": "flops_summary_2.json",
        "r1_aicore": "aicore_intermediate_2_type.csv",
    }
    paths = {}
    if text is not None:
        paths["r1_step_trace"] = root / "step_trace_raw_2_detail_time.csv"
        paths["r1_step_trace"].write_text(text)
    for role, content in files.items():
        paths[role] = root / roles[role]
        paths[role].write_text(content)
    return read_rank(source_of(root, 2, "mindspore_r1/text", **paths))


def hccl(*rows: tuple[str, object], as_python: bool = False) -> str:
    head = "step_num,communication_cost,wait_cost,link_info,communication_operator_cost"
    encode = repr if as_python else json.dumps
    lines = []
    for step, operators in rows:
        link_text, cost_text = (encode(one).replace('"', '""') for one in (LINKS, operators))
        lines.append(f'{step},1.5,2.5,"{link_text}","{cost_text}"')
    return "\n".join([head, *lines]) + "\n"


OPERATORS = {
    "stream_41_0_AllReduce-op4582": ["1", 0.75, 0.5, LINKS],
    "stream_48_0_Receive-op663": ["1", 0.5, 0.5, {"0-0": {"SDMA": [0.5, 100.0, 1.0]}}],
    "stream_50_0_AllGather-op7": ["1", 0.0, 0.5, {}],
}


def test_a_tick_is_10_ns(tmp_path: Path) -> None:
    tables = read(tmp_path, trace(STEP_1, STEP_2, STEP_3, AVERAGE))
    second = tables.iterations.to_pylist()[1]
    assert second == {
        "rank": 2,
        "step": 2,
        "total_us": 20_000.0,
        "interval_us": 1_000.0,
        "forward_backward_us": 18_000.0,
        "tail_us": 1_000.0,
    }
    assert tables.problems == ()


def test_the_average_row_is_no_step_and_agrees_silently_where_it_leaves_the_first_out(tmp_path: Path) -> None:
    tables = read(tmp_path, trace(STEP_1, STEP_2, STEP_3, AVERAGE))
    assert tables.steps["step"].to_pylist() == [1, 2, 3]
    assert tables.iterations["step"].to_pylist() == [1, 2, 3, None]
    assert not any("average row" in note for note in notes_of(tables))


def test_iterations_are_those_of_the_steps_that_are_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "step_trace_raw_2_detail_time.csv"
    path.write_text(trace(STEP_1, STEP_2, STEP_3, AVERAGE))
    source = source_of(tmp_path, 2, "mindspore_r1/text", r1_step_trace=path)
    tables = read_rank(source, Selection(steps=frozenset({2})))
    assert [tables.steps["step"].to_pylist(), tables.iterations["step"].to_pylist()] == [[2], [2]]


def test_an_average_over_all_steps_agrees_too_as_2_x_writes_it(tmp_path: Path) -> None:
    over_all = "-,3000000,5066667,2066667,3100000,4966667,100000,1866667,100000"
    tables = read(tmp_path, trace(STEP_1, STEP_2, STEP_3, over_all))
    assert not any("average row" in note for note in notes_of(tables))


def test_an_average_that_disagrees_with_the_rows_is_noted_and_not_used(tmp_path: Path) -> None:
    tables = read(tmp_path, trace(STEP_1, STEP_2, STEP_3, "-,1,1,9000000,1,1,5000000,3000000,1000000"))
    note = next(note for note in notes_of(tables) if "average row" in note)
    assert "50.00000 / 30.00000 / 10.00000 ms" in note
    assert "1.50000 / 18.50000 / 1.00000 ms" in note
    assert tables.steps["preparing_us"].to_pylist() == [0.0, 1_000.0, 2_000.0]


def test_the_zero_average_of_a_single_step_is_no_step_0(tmp_path: Path) -> None:
    tables = read(tmp_path, trace(STEP_1, "0,0,0,0,0,0,0,0,0"))
    assert tables.steps["step"].to_pylist() == [1]
    assert not any("average row" in note for note in notes_of(tables))


def test_an_inference_trace_without_bp_point_and_tail_is_read(tmp_path: Path) -> None:
    head = "step_num,start_point,end_point,total,fp_point,iteration_interval,fp"
    tables = read(tmp_path, trace("1,0,2000000,2000000,100000,100000,1900000", head=head))
    (step,) = tables.iterations.to_pylist()
    assert (step["interval_us"], step["forward_backward_us"], step["tail_us"]) == (1_000.0, 19_000.0, 0.0)


@pytest.mark.parametrize(
    "columns", [("X", "X_start_point", "X_end_point"), ("X_start_point", "X_end_point", "X")]
)
def test_both_column_orders_of_operators_are_read_by_name(tmp_path: Path, columns: tuple[str, ...]) -> None:
    name = "stream_36_0_AllReduce-op4542"
    values = {"X": "12345", "X_start_point": "2000000", "X_end_point": "2012345"}
    head = ",".join([HEAD, *(column.replace("X", name) for column in columns)])
    row = ",".join([STEP_1, *(values[column] for column in columns)])
    (op,) = read(tmp_path, trace(row, head=head)).collectives.to_pylist()
    assert (op["elapse_us"], op["start_ns"]) == (123.45, 20_000_000)
    assert (op["group"], op["op_name"], op["op_type"]) == (
        "op:AllReduce-op4542",
        "AllReduce-op4542",
        "allreduce",
    )


def test_an_operator_that_did_not_run_in_a_step_has_zeros_and_is_left_out(tmp_path: Path) -> None:
    head = f"{HEAD},stream_1_0_Send-op5,stream_1_0_Send-op5_start_point,stream_1_0_Send-op5_end_point"
    tables = read(tmp_path, trace(f"{STEP_1},0,0,0", f"{STEP_2},100,3000000,3000100", head=head))
    assert tables.collectives["step"].to_pylist() == [2]


def test_a_point_to_point_operator_names_no_group(tmp_path: Path) -> None:
    head = f"{HEAD},stream_1_0_Send-op5,stream_1_0_Send-op5_start_point,stream_1_0_Send-op5_end_point"
    (op,) = read(tmp_path, trace(f"{STEP_1},100,3000000,3000100", head=head)).collectives.to_pylist()
    assert (op["group"], op["is_p2p"]) == ("", True)


def test_a_step_that_is_not_the_sum_of_its_parts_is_left_out_and_told(tmp_path: Path) -> None:
    tables = read(tmp_path, trace(STEP_1, STEP_2.replace("1800000", "8800000"), STEP_3))
    assert tables.steps["step"].to_pylist() == [1, 3]
    assert [reason(problem) for problem in tables.problems] == [
        "left out: 1 step whose entry contradicts itself"
    ]


def test_gpu_operators_of_one_name_do_not_shadow_each_other(tmp_path: Path) -> None:
    head = ",".join([HEAD, *["AllReduce", "AllReduce_start_point", "AllReduce_end_point"] * 2])
    tables = read(tmp_path, trace(f"{STEP_1},100,2000000,2000100,200,2100000,2100200", head=head))
    assert sorted(tables.collectives["elapse_us"].to_pylist()) == [1.0, 2.0]


def test_bandwidth_is_size_over_time_and_never_the_sum_in_the_file(tmp_path: Path) -> None:
    tables = read(tmp_path, trace(STEP_1), r1_hccl=hccl(("1", OPERATORS)))
    link = next(row for row in tables.links.to_pylist() if row["dst_local"] == 1)
    assert (link["size_bytes"], link["time_us"]) == (4_096_000.0, 500.0)
    assert (link["src_local"], link["transport"], link["variant"], link["step"]) == (0, "SDMA", "op", 1)


def test_an_operator_carried_what_its_links_to_other_ranks_moved(tmp_path: Path) -> None:
    """Of operators without sizes, the larger ones had lost packets."""
    operators = ("stream_41_0_AllReduce-op4582", "stream_50_0_AllGather-op7")
    head = ",".join(
        [HEAD, *(f"{one}{end}" for one in operators for end in ("", "_start_point", "_end_point"))]
    )
    lines = trace(f"{STEP_1},100,2000000,2000100,200,2100000,2100200", head=head)
    carried = read(tmp_path, lines, r1_hccl=hccl(("1", OPERATORS))).collectives
    assert dict(zip(carried["op_name"].to_pylist(), carried["payload_bytes"].to_pylist(), strict=True)) == {
        "AllReduce-op4582": 4_096_000.0,
        "AllGather-op7": None,
    }


def test_the_average_row_of_hccl_raw_is_not_read(tmp_path: Path) -> None:
    tables = read(tmp_path, trace(STEP_1), r1_hccl=hccl(("1", OPERATORS), ("-", OPERATORS)))
    assert set(tables.links["step"].to_pylist()) == {1}
    assert tables.links.num_rows == 3


def test_a_step_that_hccl_raw_holds_twice_counts_once_and_is_told(tmp_path: Path) -> None:
    tables = read(tmp_path, trace(STEP_1), r1_hccl=hccl(("1", OPERATORS), ("1", OPERATORS)))
    assert tables.links.num_rows == 3
    assert [reason(problem) for problem in tables.problems] == [
        "left out: 1 row of steps that it has more than once"
    ]


def test_rows_written_as_python_are_read_like_json(tmp_path: Path) -> None:
    as_json = read(tmp_path, trace(STEP_1), r1_hccl=hccl(("1", OPERATORS)))
    as_python = read(tmp_path, trace(STEP_1), r1_hccl=hccl(("1", OPERATORS), as_python=True))
    assert as_python.links.equals(as_json.links)
    assert as_python.problems == ()


def test_rows_of_the_2_x_writer_with_empty_rdma_are_read(tmp_path: Path) -> None:
    operators = {
        "stream_41_0_AllReduce-op1": ["1", 860.0, 1000.0, {"0-1": {"SDMA": [0.5, 4096.0, 8.192], "RDMA": []}}]
    }
    tables = read(tmp_path, trace(STEP_1), r1_hccl=hccl(("1", operators)))
    (link,) = tables.links.to_pylist()
    assert (link["size_bytes"], link["time_us"]) == (4_096_000.0, 500.0)


def test_a_row_of_hccl_raw_that_is_neither_json_nor_python_is_told(tmp_path: Path) -> None:
    text = hccl(("1", OPERATORS), ("2", OPERATORS))
    broken = text[: text.rindex("AllReduce")].rstrip() + '"\n'
    tables = read(tmp_path, trace(STEP_1), r1_hccl=broken)
    assert set(tables.links["step"].to_pylist()) == {1}
    assert [(problem.file, reason(problem)) for problem in tables.problems] == [
        ("hccl_raw_2.csv", "left out: 1 entry that cannot be read")
    ]


ANALYSED = (
    "computation_time,communication_alone_time,stage_time,receive_alone_time,"
    "collective_communication_alone_time"
)


def test_rows_of_the_cluster_analysis_are_the_steps_in_order_and_the_last_is_a_mean(tmp_path: Path) -> None:
    text = f"{ANALYSED}\n13.5,6.5,15,5,1.5\n14,6,16,4,2\n13.75,6.25,15.5,4.5,1.75\n"
    tables = read(tmp_path, trace(STEP_1, STEP_2), r1_cluster_analyse=text)
    assert tables.steps["computing_us"].to_pylist() == [13_500.0, 14_000.0]
    assert tables.steps["bubble_us"].to_pylist() == [5_000.0, 4_000.0]
    assert tables.steps["preparing_us"].to_pylist() == [0.0, 1_000.0]


def test_idle_time_is_in_the_computing_of_the_cluster_analysis_so_free_is_zero_and_the_parts_add_up(
    tmp_path: Path,
) -> None:
    tables = read(tmp_path, trace(STEP_1), r1_cluster_analyse=f"{ANALYSED}\n13.5,6.5,15,5,1.5\n")
    (step,) = tables.steps.to_pylist()
    parts = ("computing_us", "communication_not_overlapped_us", "free_us")
    assert sum(step[name] for name in parts) == step["stage_us"] + step["bubble_us"]


def test_columns_of_the_cluster_analysis_count_by_position_because_names_vary(tmp_path: Path) -> None:
    tables = read(tmp_path, trace(STEP_1), r1_cluster_analyse="computation,communication\n13.5,6.5\n")
    assert tables.steps["communication_not_overlapped_us"].to_pylist() == [6_500.0]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("0,6.5,15,5,1.5", "left out: 1 row in which the device computed nothing"),
        ("13.5,-6.5,15,5,1.5", "left out: 1 value below 0, or larger than any can be"),
        ("13.5,9.5,15,5,1.5", "left out: 1 step whose entry contradicts itself"),
    ],
)
def test_a_step_of_the_cluster_analysis_that_was_not_measured_is_told(
    tmp_path: Path, row: str, told: str
) -> None:
    text = f"{ANALYSED}\n{row}\n14,6,16,4,2\n13.75,6.25,15.5,4.5,1.75\n"
    tables = read(tmp_path, trace(STEP_1, STEP_2), r1_cluster_analyse=text)
    assert [reason(problem) for problem in tables.problems] == [told]
    known = ("step", "computing_us", "communication_not_overlapped_us")
    assert (2, 14_000.0, 6_000.0) in rows_of(tables.steps, *known)
    assert all(None in one for one in rows_of(tables.steps, *known) if one[0] == 1)


def test_a_cluster_analysis_of_another_number_of_steps_is_left_out_and_told(tmp_path: Path) -> None:
    text = f"{ANALYSED}\n" + "13.5,6.5,15,5,1.5\n" * 4
    tables = read(tmp_path, trace(STEP_1, STEP_2), r1_cluster_analyse=text)
    assert tables.steps["computing_us"].to_pylist() == [None, None]
    assert [reason(problem) for problem in tables.problems] == ["it has 3 steps where the step trace has 2"]


def test_stages_and_ranks_are_in_the_name_of_the_cluster_analysis(tmp_path: Path) -> None:
    tables = read(tmp_path, trace(STEP_1), r1_cluster_analyse=f"{ANALYSED}\n13.5,6.5,15,5,1.5\n")
    assert (metadata_of(tables).parallel.pp, metadata_of(tables).world_size) == (2, 8)


def test_a_rank_without_a_step_trace_says_so(tmp_path: Path) -> None:
    tables = read(tmp_path, r1_hccl=hccl(("1", OPERATORS)))
    assert [reason(problem) for problem in tables.problems] == ["no step times"]
    assert tables.links.num_rows == 3


def test_the_earliest_hccl_raw_without_operators_gives_the_links_of_the_step(tmp_path: Path) -> None:
    link_text = json.dumps(LINKS).replace('"', '""')
    text = f'step_num,communication_cost,wait_cost,link_info\n1,1.5,2.5,"{link_text}"\n'
    tables = read(tmp_path, trace(STEP_1), r1_hccl=text)
    assert {(row["group"], row["op_type"], row["size_bytes"]) for row in tables.links.to_pylist()} == {
        ("", "unknown", 4_096_000.0),
        ("", "unknown", 8_000.0),
    }


def test_the_cluster_analysis_alone_numbers_its_steps_by_row(tmp_path: Path) -> None:
    name = "ascend_cluster_analyse_data-parallel_1_2_0.csv"
    path = tmp_path / name
    path.write_text("computation_time,communication_alone_time\n13.8,164.4\n14.8,165.4\n14.3,164.9\n")
    tables = read_rank(source_of(tmp_path, 0, "mindspore_r1/text", r1_cluster_analyse=path))
    found = [(row["step"], row["computing_us"], row["preparing_us"]) for row in tables.steps.to_pylist()]
    assert (found, tables.problems) == ([(1, 13800.0, None), (2, 14800.0, None)], ())


R1_HEAD = "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail\n"


def test_a_step_trace_with_its_mean_alone_gives_the_mean_step_and_its_interval(tmp_path: Path) -> None:
    mean = "-,1000,13047000,13046000,9036000,13036000,9035000,4000000,11000"  # the writer ends no last line
    (tmp_path / "step_trace_raw_0_detail_time.csv").write_text(R1_HEAD + mean)
    with examined(AnalyseOptions(tmp_path)) as run:
        result = judged(run)
    assert result.document.run.step_ms == pytest.approx(130.46)
    (interval,) = (one for one in result.document.findings if one.kind == "input_bound")
    assert interval.evidence[0].value == pytest.approx(90_350.0)
    assert "69 % of the step" in summary(interval)
    assert not result.document.problems


def test_a_cut_last_step_that_is_not_the_sum_of_its_parts_is_told(tmp_path: Path) -> None:
    whole = "1,1000,3001000,3000000,1000,2901000,0,2900000,100000\n"
    (tmp_path / "step_trace_raw_0_detail_time.csv").write_text(
        R1_HEAD + whole + whole.replace("1,1", "2,1", 1)[:-4]
    )
    with examined(AnalyseOptions(tmp_path)) as run:
        result = judged(run)
    assert result.document.run.steps == (1,)
    assert any("may be cut off" in reason(one) for one in result.document.problems)
