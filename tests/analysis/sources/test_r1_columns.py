"""Columns of r1.x files give the tables and problems of the files themselves, whatever is in them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster_analysis.sources.columns.r1_trace import trace_of
from cluster_analysis.sources.rank import read_rank
from cluster_reduce.form import SUFFIX, UnfitError
from cluster_reduce.r1_trace import reduce_r1_trace
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


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
