"""What r1.x captures state besides step times: costs of communication, kernels, the input pipeline."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.compute as pc
import pytest

from cluster_analysis.sources.errors import BadFileError, unheard
from cluster_analysis.sources.r1.hccl import read_r1_costs
from cluster_analysis.sources.r1.input_pipeline import (
    read_device_fetches,
    read_device_queue,
    read_host_processors,
)
from cluster_analysis.sources.r1.kernels import read_r1_kernels
from cluster_analysis.sources.r1.strategy import read_strategy
from tests.analysis.runs import real

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


def test_costs_that_mindspore_2_wrote_in_us_are_told_from_ms_by_their_size(tmp_path: Path) -> None:
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
