"""Kernels that a host summed are those that the file itself gives, in any order and any blocks."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_analysis.sources.errors import BadFileError, unheard
from cluster_analysis.sources.kernel_groups import KEYS, MAX_ROWS, KernelSums, matrix_flops
from cluster_analysis.sources.text import kernel_details_csv
from cluster_analysis.sources.text.kernel_details_csv import read_kernels
from cluster_analysis.tables.rank_tables import RankTables
from cluster_reduce.form import SUFFIX, Writer
from tests.analysis.one_rank import read_rank
from tests.analysis.said import Heard
from tests.analysis.sources.builders import OUTPUT, source_of
from tests.analysis.sources.hand_made_databases import profiled, read
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


def test_two_columns_of_kernels_with_one_name_that_nothing_reads_cost_nothing(tmp_path: Path) -> None:
    """As where a spreadsheet ends each line in commas."""
    plain = tables_of(write(tmp_path, ROWS))
    assert tables_of(write(tmp_path, [f"{row},," for row in ROWS], f"{HEADER},,")) == plain
    assert len(plain.operators) == 2


@pytest.mark.parametrize("cells", ["矩阵", "矩阵,,"])
def test_kernels_that_are_not_utf8_are_refused_with_the_place(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], cells: str
) -> None:
    path = write(tmp_path, ROWS)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"Cast_2", cells.encode("gbk")))
    (told,) = (one for one in tables_of(path).problems if one.file == path.name)
    assert (told.kind, dict(told.why.values)) == ("not_utf8", {"byte": content.index(b"Cast_2")})
    assert capfd.readouterr().err == ""


def test_files_below_a_folder_whose_name_is_not_utf8_are_read(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + "训练".encode("gbk")))
    folder.mkdir()
    assert tables_of(write(folder, ROWS)) == tables_of(write(tmp_path, ROWS))
    for root in (folder, tmp_path):
        profiled(root)
    assert read(folder / "rank0_ascend_pt" / OUTPUT) == read(tmp_path / "rank0_ascend_pt" / OUTPUT)


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
    needed = column in ("Name", "Type", "Accelerator Core", "Start Time(us)", "Duration(us)")
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


@given(st.lists(st.tuples(st.sampled_from(range(len(ROWS))), CELLS, CELLS), max_size=30))
def test_whatever_a_host_sums_is_what_the_file_gives(
    tmp_path: Path, rows: list[tuple[int, str, str]]
) -> None:
    made = []
    for place, duration, wait in rows:
        cells = ROWS[place].split(",", 9)
        made.append(",".join([*cells[:7], duration, wait, cells[9]]))
    is_same(tmp_path, made)


@pytest.mark.slow
@given(st.permutations([row.replace(",0.1,", f",0.{n}1,") for n in range(5) for row in ROWS]), st.booleans())
def test_sums_do_not_depend_on_the_order_of_rows_or_on_blocks(
    tmp_path: Path, rows: list[str], are_small: bool
) -> None:
    wanted = read_kernels(write(tmp_path, sorted(rows)), unheard).sums
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_details_csv, "_BLOCK_BYTES", 200 if are_small else 1 << 20)
        path = write(tmp_path, rows)
        found = read_kernels(path, unheard).sums
    assert (found.table(0), found.operators(0)) == (wanted.table(0), wanted.operators(0))


def test_times_that_no_sum_holds_are_refused(tmp_path: Path) -> None:
    huge = ROWS[3].replace(",1.5,", ",9000000000,")
    with pytest.raises(BadFileError):
        read_kernels(write(tmp_path, [huge] * 600), unheard)
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


@pytest.mark.parametrize(
    ("op_type", "inputs", "outputs", "flops"),
    [
        ("MatMulV2", "32,9216;4096,9216;4096", "32,4096", 2.0 * 32 * 4096 * 9216),
        ("MatMulV3", "64,32;64,128", "32,128", 2.0 * 32 * 128 * 64),
        ("BatchMatMul", "8,16,32;8,32,64", "8,16,64", 2.0 * 8 * 16 * 64 * 32),
        ("BatchMatMulV2", "8,16,32;32,64", "8,16,64", 2.0 * 8 * 16 * 64 * 32),
        ("MatMulV2", "2,4,16,16;4,2,16,16", "2,2,16,16", None),
        ("MatMulV2", "32,64", "32,64", None),
        ("Add", "32,64;32,64", "32,64", None),
    ],
)
def test_a_matrix_product_has_two_operations_for_each_multiplication(
    op_type: str, inputs: str, outputs: str, flops: float | None
) -> None:
    assert matrix_flops(op_type, inputs, outputs) == (None if flops is None else pytest.approx(flops))


def test_kinds_beyond_the_limit_are_summed_and_lose_no_time() -> None:
    n = MAX_ROWS + 50
    block = {name: pa.array(["x"] * n) for name in KEYS} | {"name": pa.array([f"k{i}" for i in range(n)])}
    sums = KernelSums()
    for _ in range(2):
        sums.add(
            pa.table(
                {**block, "ps": pa.array([(1 + i) * 10**6 for i in range(n)]), "wait_ps": pa.array([0] * n)}
            )
        )
    table = sums.table(3)
    assert table is not None
    assert table.num_rows == MAX_ROWS + 1
    assert sum(table["n_calls"].to_pylist()) == 2 * n
    assert sum(table["total_us"].to_pylist()) == pytest.approx(2 * sum(1.0 + i for i in range(n)))


def test_a_long_file_is_read_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_details_csv, "_BLOCK_BYTES", 512)
    times = "Start Time(us),Duration(us),Wait Time(us)"
    head = f"Step Id,Name,Type,Accelerator Core,{times},Input Shapes,Output Shapes\n"
    line = '1,k{},Add,AI_CORE,7.5,\t2.5,1.0,"""4,{}""","""4,4"""\n'
    path = tmp_path / "kernel_details.csv"
    path.write_text(head + "".join(line.format(i % 3, i % 3) for i in range(300)))
    table = read_kernels(path, unheard).sums.table(0)
    assert table is not None
    assert table["n_calls"].to_pylist() == [100, 100, 100]
    assert table["total_us"].to_pylist() == [250.0, 250.0, 250.0]
    assert sorted(table["input_shapes"].to_pylist()) == ["4,0", "4,1", "4,2"]


@pytest.mark.parametrize(
    "columns",
    [("Duration(us)", "Input Shapes", "Block Num"), ("Duration(us)", "Block Num", "Input Shapes")],
    ids=["the last column is not read", "it is"],
)
def test_a_last_kernel_without_the_end_of_its_line_counts_where_it_has_all_its_cells(
    tmp_path: Path, columns: tuple[str, ...]
) -> None:
    cells = {"Duration(us)": "\t2.5", "Input Shapes": '"""4,4"""', "Block Num": "24"}
    head = f"Step Id,Name,Type,Accelerator Core,Start Time(us),{','.join(columns)}\n"
    line = f"1,k,Add,AI_CORE,7.5,{','.join(cells[name] for name in columns)}"
    path = tmp_path / "kernel_details.csv"
    last_cell = len(line) - len(cells[columns[-1]])
    for n_bytes in range(1, len(line) + 1):
        path.write_text(f"{head}{line}\n{line[:n_bytes]}")
        remarks = Heard()
        table = read_kernels(path, remarks).sums.table(0)
        assert table is not None
        is_whole = n_bytes >= last_cell
        assert sum(table["n_calls"].to_pylist()) == 1 + is_whole, line[:n_bytes]
        assert set(table["input_shapes"].to_pylist()) <= {"4,4", ""}
        said = "may be cut off" if is_whole else "truncated at byte"
        assert [said in remark for remark in remarks] == [True]
