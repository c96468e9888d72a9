"""Kernels that a host summed are those that the file itself gives, in any order and any blocks."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cluster_analysis.sources.errors import BadFileError, unheard
from cluster_analysis.sources.rank import read_rank
from cluster_analysis.sources.text import kernel_details_csv
from cluster_analysis.sources.text.kernel_details_csv import read_kernel_details, read_kernels
from cluster_analysis.tables.rank_tables import RankTables
from cluster_reduce.form import SUFFIX, Writer
from tests.analysis.sources.builders import source_of
from tests.analysis.sources.twins import as_columns, assert_twins

HEADER = (
    "Step Id,Device_id,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),"
    "Input Shapes,Output Shapes"
)
ROWS = [
    '13,0,MatMul_1,MatMulV3,dynamic,AI_CORE,1764246877073569.640\t,10.5,0.1,"""2,4;4,8""","""2,8"""',
    '13,0,MatMul_1,MatMulV3,dynamic,AI_CORE,1764246877073669.640\t,0.1,0.2,"""2,4;4,8""","""2,8"""',
    '13,0,MatMul_1,MatMulV3,dynamic,AI_CORE,1764246877073769.640\t,0.2,N/A,"""2,4;4,8""","""2,8"""',
    "13,0,Cast_1,Cast,static,AI_VECTOR_CORE,1764246877073869.640\t,1.5,-3.000001,N/A,N/A",
    "13,0,Cast_2,Cast,static,AI_VECTOR_CORE,1764246877073869.640\t,496.8508,,N/A,N/A",
    "13,0,hcom_allReduce__586_0_1,hcom_allReduce_,N/A,HCCL,1764246877074869.5\t,99.25,1,N/A,N/A",
    "14,0,hcom_send__587_12_1,hcom_send_,N/A,COMMUNICATION,1764246877074969.640\t,9.0,1,N/A,N/A",
]
FUZZ = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def write(root: Path, rows: list[str], header: str = HEADER, end: str = "\n") -> Path:
    path = root / "kernel_details.csv"
    path.with_name(path.name + SUFFIX).unlink(missing_ok=True)
    path.write_text("\n".join([header, *rows]) + end)
    return path


def is_same(root: Path, rows: list[str], header: str = HEADER, end: str = "\n") -> bool:
    """Whether a host makes columns of these rows; they must give what the file gives, for all who read it."""
    path = write(root, rows, header, end)
    return assert_twins(source_of(root, 0, "ascend_pt/text", kernel_details=path), "kernel_details")


def tables_of(path: Path) -> RankTables:
    return read_rank(source_of(path.parent, 0, "ascend_pt/text", kernel_details=path))


def test_a_host_sums_kernels_as_the_analysis_does(tmp_path: Path) -> None:
    assert is_same(tmp_path, ROWS)
    found = tables_of(tmp_path / "kernel_details.csv")
    assert found.collectives["elapse_us"].to_pylist() == [99.25, 9.0]
    assert found.operators["total_us"].to_pylist() == [498.351, 10.8]
    assert found.figures["kernels"]["wait_us"].to_pylist() == [None, 0.3, -3.000001]


@pytest.mark.parametrize("column", HEADER.split(","))
def test_a_column_that_is_missing_is_missing_in_both(tmp_path: Path, column: str) -> None:
    place = HEADER.split(",").index(column)
    # Shapes hold commas, so they go first.
    rows = [row.partition(',"')[0] + ",N/A,N/A" * ('"' in row) for row in ROWS]
    cut = [",".join(row.split(",")[:place] + row.split(",")[place + 1 :]) for row in [HEADER, *rows]]
    needed = column in ("Name", "Type", "Accelerator Core", "Duration(us)")
    assert is_same(tmp_path, cut[1:], cut[0]) is not needed


ODD = {
    "a line of fewer cells": "13,0,Cast_1,Cast",
    "a line of more cells": ROWS[3] + ",1",
    "an empty line": "",
    "a text with a line end": ROWS[3].replace("Cast_1", '"Cast\n_1"'),
    "a text that never ends": ROWS[3].replace("Cast_1", '"Cast_1'),
    "a duration below 0": ROWS[3].replace(",1.5,", ",-1.5,"),
    "a duration that is none": ROWS[3].replace(",1.5,", ",soon,"),
    "a duration of ages": ROWS[3].replace(",1.5,", ",1e300,"),
    "an infinite duration": ROWS[3].replace(",1.5,", ",inf,"),
    "a hexadecimal duration": ROWS[3].replace(",1.5,", ",0x15,"),
    "waiting for ages": ROWS[3].replace("-3.000001", "1e17"),
    "a start that is none": ROWS[6].replace("1764246877074969.640", "soon"),
    "a start beyond 64 bits": ROWS[6].replace("1764246877074969.640", "9964246877074969.640"),
}


@pytest.mark.parametrize("row", ODD.values(), ids=ODD.keys())
def test_a_file_with_anything_odd_travels_as_it_is(tmp_path: Path, row: str) -> None:
    assert not is_same(tmp_path, [*ROWS, row, *ROWS])


@pytest.mark.parametrize(
    ("header", "end"),
    [
        (HEADER + ",Name", "\n"),
        ("\ufeff" + HEADER, "\n"),
        (HEADER.replace("Name", '"Name"'), "\n"),
        (HEADER, ""),
    ],
    ids=["a name twice", "a mark of its encoding", "quoted", "cut off"],
)
def test_a_file_with_another_outer_form_travels_as_it_is(tmp_path: Path, header: str, end: str) -> None:
    rows = [row + ",again" for row in ROWS] if header.endswith(",Name") else ROWS
    assert not is_same(tmp_path, rows, header, end)


def test_a_file_that_is_no_utf8_travels_as_it_is(tmp_path: Path) -> None:
    path = write(tmp_path, ROWS)
    path.write_bytes(path.read_bytes().replace(b"Cast_1", b"Cast\xff1"))
    assert not as_columns(path)


CELLS = st.sampled_from(["0", "1.5", "0.1", "496.8508", " 2.25\t", "N/A", "", "7", "1e3", ".5", "12.345678"])


@FUZZ
@given(st.lists(st.tuples(st.sampled_from(range(len(ROWS))), CELLS, CELLS), max_size=30))
def test_whatever_a_host_sums_is_what_the_file_gives(
    tmp_path: Path, rows: list[tuple[int, str, str]]
) -> None:
    made = []
    for place, duration, wait in rows:
        cells = ROWS[place].split(",", 9)
        made.append(",".join([*cells[:7], duration, wait, cells[9]]))
    is_same(tmp_path, made)


@FUZZ
@given(st.permutations([row.replace(",0.1,", f",0.{n}1,") for n in range(5) for row in ROWS]), st.booleans())
def test_sums_do_not_depend_on_the_order_of_rows_or_on_blocks(
    tmp_path: Path, rows: list[str], are_small: bool
) -> None:
    wanted = [read(write(tmp_path, sorted(rows)), 0, unheard) for read in (read_kernels, read_kernel_details)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_details_csv, "_BLOCK_BYTES", 200 if are_small else 1 << 20)
        path = write(tmp_path, rows)
        found = [read(path, 0, unheard) for read in (read_kernels, read_kernel_details)]
    assert found == wanted


def test_times_that_no_sum_holds_are_refused(tmp_path: Path) -> None:
    huge = ROWS[3].replace(",1.5,", ",9000000000,")
    with pytest.raises(BadFileError):
        read_kernels(write(tmp_path, [huge] * 600), 0, unheard)
    assert not as_columns(write(tmp_path, [huge] * 600))


LIES = {
    "fewer sums than kinds": {"ps": [1]},
    "no kernels of a kind": {"n": [0, 1]},
    "a time below 0": {"ps_min": [-1, 1]},
    "waiting of no kind": {"wait.rows": [5]},
    "a wait below the first": {"wait.rows": [-1]},
    "sums beyond 64 bits": {"ps": [1 << 62, 1 << 62]},
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES.keys())
def test_hostile_columns_cost_their_file_only(tmp_path: Path, lie: dict[str, list[int]]) -> None:
    writer = Writer("kernels", 1000)
    for key in ("op_type", "core_type", "name", "input_shapes", "output_shapes", "op_state"):
        add = writer.names if key == "name" else writer.texts
        add(key, ["a", "b"])
    sound = {"n": [1, 1], "ps": [1, 1], "ps_min": [1, 1], "ps_max": [1, 1], "wait.rows": [0], "wait_ps": [1]}
    for name, values in {**sound, **lie}.items():
        writer.ints(name, values)
    path = tmp_path / "kernel_details.csv"
    path.with_name(path.name + SUFFIX).write_bytes(writer.content())
    found = tables_of(path)
    assert found.operators.num_rows == 0
    assert "kernels" not in found.figures
    assert "kernel_details.csv" in {problem.file for problem in found.problems}
