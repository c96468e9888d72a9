"""Host calls, kernels and figures of a capture as a whole, each from its file."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from cluster_analysis.sources.counters import read_module_memory
from cluster_analysis.tables.rank_tables import RankTables
from tests.analysis.one_rank import read_rank
from tests.analysis.said import refused
from tests.analysis.sources.builders import OUTPUT, source_of, write_capture
from tests.analysis.sources.hand_made_databases import BEGIN, NS, database_capture, profiler_db
from tests.analysis.sources.test_r1 import STEP_1, trace
from tests.analysis.sources.test_r1 import read as read_r1

KERNELS = (
    "Step Id,Device_id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Input Shapes\n"
    '13,0,MatMul_1,MatMulV3,AI_CORE,1764246877073569.640\t,10.5,"""1,2"""\n'
    '13,0,MatMul_2,MatMulV3,AI_CORE,1764246877073669.640\t,20.25,"""1,2;3,4"""\n'
    "13,0,Cast_1,Cast,AI_VECTOR_CORE,1764246877073869.640\t,1.5,N/A\n"
    "13,0,hcom_allReduce__1_0,hcom_allReduce_,HCCL,1764246877074869.640\t,99.0,N/A\n"
)


def read(tmp_path: Path, **files: str) -> RankTables:
    capture = write_capture(tmp_path, 0)
    for stem, text in files.items():
        (capture / OUTPUT / f"{stem}.csv").write_text(text)
    return read_rank(source_of(capture))


def counters(tables: RankTables) -> dict[tuple[str, str], float]:
    return {(row["metric"], row["label"]): row["value"] for row in tables.figures["counters"].to_pylist()}


def test_kernels_are_summed_from_their_details_where_the_statistic_is_missing(tmp_path: Path) -> None:
    matmul, cast = read(tmp_path, kernel_details=KERNELS).operators.to_pylist()
    assert (matmul["op_type"], matmul["core_type"], matmul["n_calls"]) == ("MatMulV3", "AI_CORE", 2)
    assert (matmul["total_us"], matmul["min_us"], matmul["avg_us"], matmul["max_us"]) == (
        30.75,
        10.5,
        15.375,
        20.25,
    )
    assert cast["op_type"] == "Cast"


def test_the_statistic_goes_before_the_details(tmp_path: Path) -> None:
    statistic = (
        "Device_id,OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)\n"
        "0,Add,AI_VECTOR_CORE,3,9.5,1.5,3.167,5.5,100\n"
    )
    (row,) = read(tmp_path, op_statistic=statistic, kernel_details=KERNELS).operators.to_pylist()
    assert (row["op_type"], row["n_calls"], row["total_us"]) == ("Add", 3, 9.5)


@pytest.mark.parametrize("device", ["Device_id,", ""])
def test_host_calls_are_read_with_and_without_a_device_column(tmp_path: Path, device: str) -> None:
    text = f"{device}Level,API Name,Time(us),Count,Avg(us),Min(us),Max(us),Variance\n"
    text += f"{'host,' if device else ''}acl,aclnnAdd,666.25,114,5.845,0.25,29.17,34.995\n"
    (row,) = read(tmp_path, api_statistic=text).figures["apis"].to_pylist()
    assert (row["level"], row["api"], row["n_calls"], row["total_us"]) == ("acl", "aclnnAdd", 114, 666.25)


def test_peaks_of_memory_are_bytes_by_component(tmp_path: Path) -> None:
    record = (
        "Component,Timestamp(us),Total Allocated(MB),Total Reserved(MB),Device Type\r\n"
        "APP,1695115378653323.5,,11224.5,NPU:0\r\nPTA,1695115378653324.5,1.5,3.0,NPU:0\r\n"
        "PTA,1695115378653325.5,0.5,4.0,NPU:0\r\n"
    )
    modules = (
        "Device_id,Component,Timestamp(us),Total Reserved(MB),Device\n"
        "0,HCCL,1764246877076535.790\t,2.5,NPU:0\n"
    )
    operators = "Name,Size(KB),Allocation Time(us),Device Type\naten::add,0.5,1,NPU:0\naten::add,2,1,NPU:0\n"
    found = counters(read(tmp_path, memory_record=record, npu_module_mem=modules, operator_memory=operators))
    assert found == {
        ("memory_peak_allocated_bytes", "PTA"): 1.5 * 2**20,
        ("memory_peak_reserved_bytes", "APP"): 11224.5 * 2**20,
        ("memory_peak_reserved_bytes", "PTA"): 4.0 * 2**20,
        ("module_peak_reserved_bytes", "HCCL"): 2.5 * 2**20,
        ("operator_memory_largest_bytes", "aten::add"): 2048.0,
    }


def test_operations_of_the_input_pipeline_are_read(tmp_path: Path) -> None:
    dataset = "Operation,Stage,Occurrences,Avg. time (us),Custom Info\nBatch,push,12,34.5,\n"
    queues = (
        "op_id,op_type,num_workers,output_queue_size,output_queue_average_size,output_queue_length,"
        "output_queue_usage_rate,sample_interval,parent_id,children_id\n"
        '0,Batch,4,,,,,10,,[1]\n1,TFReader,4,"[10, 20, 20]",10.0,64,0.3125,10,0,\n'
    )
    found = counters(read(tmp_path, dataset=dataset, minddata_pipeline_raw_0=queues))
    assert found == {
        ("input_operation_avg_us", "Batch push"): 34.5,
        ("input_operation_count", "Batch push"): 12.0,
        ("input_queue_usage_share", "1 TFReader"): 0.3125,
    }


def test_clock_and_repeated_operators_come_from_the_database(tmp_path: Path) -> None:
    output = database_capture(tmp_path)
    path = output / "ascend_pytorch_profiler_0.db"
    profiler_db(path)
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE AICORE_FREQ (deviceId INTEGER, timestampNs NUMERIC, freq INTEGER)")
        base.executemany("INSERT INTO AICORE_FREQ VALUES (0, ?, ?)", [(BEGIN, 1800), (BEGIN + 10 * NS, 1200)])
        base.execute("ALTER TABLE COMMUNICATION_OP ADD COLUMN retry INTEGER DEFAULT 0")
        base.execute("UPDATE COMMUNICATION_OP SET retry = 3 WHERE opName = 1")
    base.close()
    found = counters(read_rank(source_of(output.parent)))
    assert found == {
        ("aicore_frequency_mhz", "min"): 1200.0,
        # 10 µs at 1800, then 30 µs to the end of the last task.
        ("aicore_frequency_mhz", "mean"): 1350.0,
        ("aicore_frequency_mhz", "max"): 1800.0,
        ("retry_operators_count", ""): 1.0,
    }


def test_flops_of_r1_are_flop_and_flop_per_second_and_a_share(tmp_path: Path) -> None:
    text = json.dumps({"FLOPs": 107146.763, "FLOPS": 5385.552, "FLOPS_Utilization": 0.23})
    found = counters(read_r1(tmp_path, trace(STEP_1), r1_flops=text))
    assert found == {
        ("flops_count", ""): pytest.approx(107146.763e6),
        ("flops_per_s", ""): pytest.approx(5385.552e9),
        ("flops_utilization_share", ""): pytest.approx(0.0023),
    }


def test_flops_of_cube_and_vector_units_are_added(tmp_path: Path) -> None:
    text = json.dumps({"cube_FLOPs": 10.0, "vec_FLOPs": 2.0, "cube_FLOPS": 4.0, "vec_FLOPS": 1.0})
    found = counters(read_r1(tmp_path, trace(STEP_1), r1_flops=text))
    assert found == {("flops_count", ""): 12e6, ("flops_per_s", ""): 5e9}


@pytest.mark.parametrize(
    "header",
    [
        "op_type,execution_time,execution_frequency,percent",
        "kernel_type,total_time,execution_frequency,percent",
        "kernel_type,task_time,execution_frequency,percent",
    ],
)
def test_all_headers_of_aicore_intermediate_are_read_in_ms_and_percent_is_not(
    tmp_path: Path, header: str
) -> None:
    (row,) = read_r1(
        tmp_path, trace(STEP_1), r1_aicore=f"{header}\nMatMul,2.5,25,57.6\n"
    ).operators.to_pylist()
    assert (row["op_type"], row["n_calls"], row["total_us"], row["avg_us"]) == ("MatMul", 25, 2500.0, 100.0)


@pytest.mark.parametrize(
    "stem", ["kernel_details", "api_statistic", "memory_record", "npu_module_mem", "dataset"]
)
def test_a_file_of_another_kind_under_the_name_is_one_problem(tmp_path: Path, stem: str) -> None:
    tables = read(tmp_path, **{stem: "a,b\n1,2\n"})
    assert [problem.file for problem in tables.problems] == [f"{stem}.csv"]
    assert tables.collectives.num_rows == 3


def test_module_memory_is_read_in_either_unit(tmp_path: Path) -> None:
    found = []
    for unit, value in (("MB", "0.5"), ("KB", "512")):
        path = tmp_path / f"{unit}.csv"
        path.write_text(f"Component,Timestamp(us),Total Reserved({unit}),Device\nSLOG,1\t,{value},NPU:0\n")
        found.append(read_module_memory(path, pytest.fail))
    assert found[0] == found[1] == [("module_peak_reserved_bytes", "SLOG", 524288.0)]


def test_memory_in_a_unit_that_is_not_known_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "npu_module_mem.csv"
    path.write_text("Component,Total Reserved(TB)\nSLOG,1\n")
    with refused("it has none of the columns Total Reserved"):
        read_module_memory(path, print)


def test_the_summary_of_the_input_pipeline_stands_in_for_its_raw_file(tmp_path: Path) -> None:
    capture = write_capture(tmp_path, 0)
    summary = capture / OUTPUT / "minddata_pipeline_summary_0.csv"
    summary.write_text("op_ids,op_names,pipeline_ops,queue_utilization_pct\n0,Queue,x,\n1,Batch,x,75.0\n")
    shares = read_rank(source_of(capture)).figures["counters"].to_pylist()
    assert [(row["metric"], row["label"], row["value"]) for row in shares] == [
        ("input_queue_usage_share", "1 Batch", 0.75)
    ]
