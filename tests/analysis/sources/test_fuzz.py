"""Damage at random places: never an exception, never a number that the undamaged file does not hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_analysis.tables.rank_tables import RankTables
from tests.analysis.one_rank import read_rank
from tests.analysis.said import reason
from tests.analysis.sources.builders import (
    LINKS,
    OPS,
    STEP_ROW,
    communication_json,
    matrix_json,
    source_of,
    step_csv,
)
from tests.analysis.sources.test_r1 import AVERAGE, OPERATORS, STEP_1, STEP_2, hccl, trace

STEPS = {"50": STEP_ROW, "51": STEP_ROW, "52": STEP_ROW}
TEXT: dict[str, tuple[str, bytes]] = {
    "communication": (
        "communication.json",
        json.dumps(communication_json({"step50": OPS, "step51": OPS})).encode(),
    ),
    "matrix": ("communication_matrix.json", json.dumps(matrix_json({"step50": LINKS})).encode()),
    "step_trace": ("step_trace_time.csv", step_csv(STEPS).encode()),
    "op_statistic": (
        "op_statistic.csv",
        b"OP Type,Core Type,Count,Total Time(us),Min Time(us),Avg Time(us),Max Time(us),Ratio(%)\n"
        b"MatMulV2,AI_CORE,8,921.498,16.54,115.187,346.567,10.385\n"
        b"Cast,AI_VECTOR_CORE,3,12.5,1.5,4.1,7.0,0.2\n",
    ),
    "metadata": (
        "profiler_metadata.json",
        b'{"distributed_args": {"world_size": 4}, "parallel_group_info": {"a": {"global_ranks": [0, 1]}}}',
    ),
    "profiler_info": (
        "profiler_info_0.json",
        b'{"config": {"experimental_config": {"_profiler_level": "Level1"}}}',
    ),
}
R1: dict[str, tuple[str, bytes]] = {
    "r1_step_trace": ("step_trace_raw_0_detail_time.csv", trace(STEP_1, STEP_2, AVERAGE).encode()),
    "r1_hccl": ("hccl_raw_0.csv", hccl(("1", OPERATORS), ("2", OPERATORS)).encode()),
    "r1_cluster_analyse": (
        "ascend_cluster_analyse_data-parallel_1_8_0.csv",
        b"computation_time,x\n13.5,6.5\n14.5,7.5\n14,7\n",
    ),
}
ALL = TEXT | R1
TABLES = ("steps", "collectives", "links", "operators", "packets", "iterations")


def read(root: Path, role: str, content: bytes) -> RankTables:
    path = root / ALL[role][0]
    path.write_bytes(content)
    files = {role: path}
    if role == "r1_cluster_analyse":
        files["r1_step_trace"] = root / ALL["r1_step_trace"][0]
        files["r1_step_trace"].write_bytes(ALL["r1_step_trace"][1])
    return read_rank(source_of(root, 0, "mindspore_r1/text" if role in R1 else "ascend_pt/text", **files))


def is_part_of(row: dict[str, object], whole: list[dict[str, object]]) -> bool:
    """Whether the row is one of `whole`, or one of them with numbers missing."""
    return any(all(value is None or value == other[name] for name, value in row.items()) for other in whole)


def of_file(tables: RankTables, role: str) -> list[str]:
    return [reason(problem) for problem in tables.problems if problem.file == ALL[role][0]]


@pytest.mark.parametrize("role", sorted(ALL))
@given(data=st.data())
def test_a_truncated_file_gives_no_row_that_the_whole_file_does_not_hold(
    tmp_path: Path, role: str, data: st.DataObject
) -> None:
    content = ALL[role][1]
    whole = read(tmp_path, role, content)
    cut = content[: data.draw(st.integers(0, len(content) - 1))]
    tables = read(tmp_path, role, cut)
    for name in TABLES:
        expected = getattr(whole, name).to_pylist()
        found = getattr(tables, name).to_pylist()
        assert all(is_part_of(row, expected) for row in found), name
        # A text file may end where a line does, and then nobody can see that there were more.
        is_at_line_end = b"\n" in (cut[-1:], content[len(cut) : len(cut) + 1])
        assert found == expected or of_file(tables, role) or is_at_line_end


# Of the other two test_columns.py says it, and of databases.
@pytest.mark.parametrize("role", sorted(ALL.keys() - {"communication", "matrix"}))
@given(data=st.data())
def test_flipped_bytes_are_never_a_traceback(tmp_path: Path, role: str, data: st.DataObject) -> None:
    content = bytearray(ALL[role][1])
    for position in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=5)):
        content[position] ^= data.draw(st.integers(1, 255))
    tables = read(tmp_path, role, bytes(content))
    assert all(getattr(tables, name).schema is not None for name in TABLES)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def replaced(document: object, path: list[int], value: object) -> object:
    """The document with the value at a path of positions replaced."""
    if not path or not isinstance(document, (dict, list)) or not document:
        return value
    keys = list(document) if isinstance(document, dict) else list(range(len(document)))
    key = keys[path[0] % len(keys)]
    copy = dict(document) if isinstance(document, dict) else list(document)
    copy[key] = replaced(document[key], path[1:], value)  # type: ignore[index, call-overload]
    return copy


@pytest.mark.parametrize("role", ["communication", "matrix", "metadata", "profiler_info"])
@given(path=st.lists(st.integers(0, 20), min_size=1, max_size=7), value=json_values)
def test_wrong_types_anywhere_are_one_problem_at_most(
    tmp_path: Path, role: str, path: list[int], value: object
) -> None:
    document = replaced(json.loads(ALL[role][1]), path, value)
    tables = read(tmp_path, role, json.dumps(document).encode())
    assert len(of_file(tables, role)) <= 1
