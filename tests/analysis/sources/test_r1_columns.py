"""Columns of r1.x files give the tables and problems of the files themselves, whatever is in them."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_analysis.sources.columns.r1_trace import trace_of
from cluster_analysis.sources.errors import BadFileError, unheard
from cluster_analysis.sources.r1.costs import read_r1_costs
from cluster_analysis.sources.r1.input_pipeline import (
    read_device_fetches,
    read_device_queue,
    read_host_processors,
)
from cluster_analysis.sources.r1.kernels import read_r1_kernels
from cluster_analysis.sources.r1.strategy import read_strategy
from cluster_analysis.sources.rank import read_rank
from cluster_reduce.form import SUFFIX, UnfitError
from cluster_reduce.r1_trace import reduce_r1_trace
from tests.analysis.runs import real
from tests.analysis.sources.builders import source_of
from tests.analysis.sources.twins import as_columns, assert_twins, columns_of_file

TRACE = (
    "step_num,start_point,end_point,total,fp_point,bp_point,iteration_interval,fp_and_bp,tail,"
    "stream_48_0_Send-op1,stream_48_0_Send-op1_start_point,stream_48_0_Send-op1_end_point,"
    "AllReduce-op2_start_point,AllReduce-op2_end_point,AllReduce-op2\n"
    "1,1000,3000,2000,1000,2900,0,1900,100,50,1100,1150,1200,1300,100\n"
    "2,3000,5100,2100,3100,5000,100,1900,100,60,3200,3260,0,0,0\n"
    "-,2000,4050,2050,2050,3950,50,1900,100,55,2150,2205,600,650,50\n"
)
OPERATOR = (
    '""{name}"": [""1"", 0.5, 0.1, {{""0-1"": {{""SDMA"": [0.0023, 4.096, 1728270.04]}}, ""0-0"": {{}}}}]'
)
HCCL = (
    "step_num,communication_cost,wait_cost,link_info,communication_operator_cost\n"
    '1,2.6,270.25055999999995,"{""1-0"": {""SDMA"": [2.5209099999999998, 52706.81599999999, 217.1], '
    '""RDMA"": [7.3, 168000, 3.5, 0.0]}}",'
    f'"{{{OPERATOR.format(name="stream_41_0_AllReduce-op4582")}, {OPERATOR.format(name="Send-op7")}}}"\n'
    '2,2.5,1e-05,"{}","{""stream_49_0_Send-op610"": [""2"", 0.0, 0.53, {}]}"\n'
    '-,2.55,135.0,"{}","{}"\n'
)
FILES = {"r1_step_trace": "step_trace_raw_0_detail_time.csv", "r1_hccl": "hccl_raw_0.csv"}


def has_same_as_columns(root: Path, role: str, text: str) -> bool:
    """Whether a host makes columns of this text; they must give what the file gives."""
    path = root / FILES[role]
    path.with_name(path.name + SUFFIX).unlink(missing_ok=True)
    path.write_bytes(text.encode())
    return assert_twins(source_of(root, 0, "mindspore_r1/text", **{role: path}), role)


@pytest.mark.parametrize(
    ("old", "new", "has_columns"),
    [
        ("", "", True),
        ("2,3000", "2,03000", False),
        ("2,3000", "2,-3000", False),
        ("2,3000", "2,3e3", False),
        ("2,3000", "2,", False),
        ("2,3000", "2,3000,1", False),
        ("2,3000", "two,3000", True),
        ("2,3000", "1,3000", True),
        ("\n", "\r\n", False),
        ("fp_point", '"fp_point"', False),
        ("fp_point", "start_point", True),
        ("Send-op1_end_point", "Other_end_point", True),
        ("AllReduce-op2,", "", True),
        ("55,2150,2205,600,650,50\n", "55,2150,2205,600,650,50", False),
        ("tail", "täil", True),
    ],
)
def test_a_step_trace_gives_the_same_as_columns_or_travels_as_it_is(
    tmp_path: Path, old: str, new: str, has_columns: bool
) -> None:
    assert has_same_as_columns(tmp_path, "r1_step_trace", TRACE.replace(old, new)) == has_columns


@pytest.mark.parametrize(
    ("old", "new", "has_columns"),
    [
        ("", "", True),
        ("0.0023", "-0.0023", False),
        ("0.0023", "NaN", False),
        ("0.0023", "true", False),
        ("0.0023", "null", False),
        ("0.0023, 4.096, 1728270.04", "0.0023", False),
        ("0.0023, 4.096, 1728270.04", "0.0023, 4.096", True),
        ('""1-0""', "'1-0'", False),
        ('""0-1"": {', '""0-1"": [{', False),
        ("2,2.5", "-,2.5", True),
        ("2,2.5", "step2,2.5", False),
        ("2,2.5", "1,2.5", True),
        ("1e-05", "", True),
        (",wait_cost", "", False),
        ('""RDMA""', '""SDMA""', True),
        ('"{}","{}"\n', '"{}","{}"', False),
        ("\n", "\r\n", True),
    ],
)
def test_costs_and_links_are_the_same_as_columns_or_travel_as_they_are(
    tmp_path: Path, old: str, new: str, has_columns: bool
) -> None:
    assert has_same_as_columns(tmp_path, "r1_hccl", HCCL.replace(old, new)) == has_columns


@given(text=st.text("0123456789,-\n_a", max_size=80), at=st.integers(0, len(TRACE)))
def test_a_step_trace_comes_back_byte_for_byte(tmp_path: Path, text: str, at: int) -> None:
    content = (TRACE[:at] + text + TRACE[at:]).encode()
    try:
        columns = reduce_r1_trace(content)
    except UnfitError:
        return
    path = tmp_path / "any"
    path.write_bytes(columns)
    assert trace_of(path) == content


@pytest.mark.parametrize("role", FILES)
def test_damaged_columns_cost_their_file(tmp_path: Path, role: str) -> None:
    path = tmp_path / FILES[role]
    path.write_text(TRACE if role == "r1_step_trace" else HCCL)
    content = columns_of_file(path)
    assert content is not None
    assert as_columns(path)
    path.with_name(path.name + SUFFIX).write_bytes(content[:-3])
    problems = read_rank(source_of(tmp_path, 0, "mindspore_r1/text", **{role: path})).problems
    assert path.name in {problem.file for problem in problems}


# What r1.x captures state beside step times: costs of communication, kernels, the input pipeline.
#: Mean communication and waiting, ms, that the r1.x tool's own tests assert.
_ASSERTED = {
    0: (2.268855, 231.599475),
    1: (2.2812566667, 242.08088),
    2: (4.778965, 1005.04606),
    3: (4.78749, 1112.0790999),
}


@pytest.mark.parametrize("rank", sorted(_ASSERTED))
def test_communication_and_waiting_of_r1_are_those_of_its_own_page(rank: int) -> None:
    table = read_r1_costs(real("mindspore-r1-4ranks") / f"hccl_raw_{rank}.csv", rank, unheard)
    assert table is not None
    means = [pc.mean(table[name]).as_py() / 1e3 for name in ("communication_us", "wait_us")]
    assert means == pytest.approx(_ASSERTED[rank])
    assert pc.sum(table["rdma_bytes"]).as_py() is None


def test_costs_that_mindspore_2_wrote_in_us_are_told_from_ms_by_their_size(
    tmp_path: Path,
) -> None:
    links = json.dumps({"0-1": {"SDMA": [26.98758, 57000.0, 2.1]}}).replace('"', '""')
    path = tmp_path / "hccl_raw_0.csv"
    head = "step_num,communication_cost,wait_cost,link_info,communication_operator_cost\n"
    path.write_text(f'{head}1,27026.05,138220.55,"{links}","{{}}"\n')
    table = read_r1_costs(path, 0, unheard)
    assert table is not None
    (row,) = table.to_pylist()
    assert (row["communication_us"], row["wait_us"]) == (27026.05, 138220.55)
    assert (row["sdma_us"], row["sdma_bytes"]) == (pytest.approx(26987.58), 57e6)


def test_kernels_of_r1_have_kinds_and_shapes_from_the_framework_file(tmp_path: Path) -> None:
    (tmp_path / "aicore_intermediate_0_detail.csv").write_text(
        "full_kernel_name,execution_time,execution_frequency\n"
        "Default/net/MatMul-op9,0.25,4\nDefault/net/Cast-op1,0.01,2\n"
    )
    info = json.dumps(
        {"input_0": {"shape": [16, 32]}, "input_1": {"shape": "32,8"}, "output_0": {"shape": [16, 8]}}
    )
    cell = info.replace('"', '""')
    (tmp_path / "framework_raw_0.csv").write_text(
        "task_id,stream_id,block_dim,full_kernel_name,kernel_name,kernel_type,subgraph,op_info\n"
        f'1,2,3,Default/net/MatMul-op9,MatMul-op9,MatMul,Default,"{cell}"\n'
    )
    detail, framework = (
        tmp_path / name for name in ("aicore_intermediate_0_detail.csv", "framework_raw_0.csv")
    )
    table = read_r1_kernels(detail, 0, framework, unheard)
    assert table is not None
    product, cast = table.to_pylist()
    assert (product["op_type"], product["total_us"], product["n_calls"]) == ("MatMul", 1000.0, 4)
    assert (product["input_shapes"], product["flops_count"]) == ("16,32;32,8", 4 * 2 * 16 * 32 * 8)
    assert (cast["op_type"], cast["input_shapes"]) == ("Cast", "")


def test_a_queue_to_the_device_tells_its_mean_times_and_how_often_it_was_empty(tmp_path: Path) -> None:
    path = tmp_path / "device_queue_profiling_0.txt"
    path.write_text("0 1 1 4 10\n0 2 1 4 10\n0 0 1 0 10\n1 64 1 0 10\n1 64 2 3 20\n")
    found = {metric: value for metric, _, value in read_device_queue(path, unheard)}
    assert found["input_queue_push_us"] == 4000.0
    assert (found["input_queue_get_us"], found["input_queue_empty_share"]) == (0.0, 0.5)


def test_fetches_of_the_device_tell_how_often_it_found_no_batch(tmp_path: Path) -> None:
    path = tmp_path / "minddata_aicpu_0.txt"
    path.write_text("GetNext_dequeue_wait 100 110 0\nGetNext_dequeue_wait 200 201 5\nother 1 2 0\n")
    assert read_device_fetches(path, unheard) == [("input_next_empty_share", "", 0.5)]


def test_processors_of_the_host_are_busy_for_what_is_not_idle(tmp_path: Path) -> None:
    path = tmp_path / "minddata_cpu_utilization_0.json"
    path.write_text(json.dumps({"device_info": {"idle_utilization": [10, 30], "user_utilization": [70, 50]}}))
    found = {label: value for _, label, value in read_host_processors(path, unheard)}
    assert found == {"user": pytest.approx(0.6), "all": pytest.approx(0.8)}


def test_stages_and_ranks_are_what_the_parallel_strategy_states(tmp_path: Path) -> None:
    stages = [{"dim": [{"size": "0"}, {"size": "1"}]}, {"dim": [{"size": "2"}, {"size": "3"}]}]
    path = tmp_path / "parallel_strategy_0.json"
    path.write_text(json.dumps({"config": {"rankId": 0, "stageDevices": stages}, "graph": {}}))
    metadata = read_strategy(path, unheard)
    assert (metadata.parallel.pp, metadata.world_size) == (2, 4)
    path.write_text(json.dumps({"config": {"stageDevices": [stages[0], {"dim": []}]}}))
    with pytest.raises(BadFileError):
        read_strategy(path, unheard)


def test_a_queue_file_without_a_step_is_no_such_file(tmp_path: Path) -> None:
    path = tmp_path / "device_queue_profiling_0.txt"
    path.write_text("nothing here\n")
    with pytest.raises(BadFileError):
        read_device_queue(path, unheard)
