from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from cluster_analysis.sources.kernel_groups import KEYS, MAX_ROWS, KernelSums, matrix_flops
from cluster_analysis.sources.text import kernel_details_csv
from tests.analysis.said import Heard


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
    head = "Step Id,Name,Type,Accelerator Core,Duration(us),Wait Time(us),Input Shapes,Output Shapes\n"
    line = '1,k{},Add,AI_CORE,\t2.5,1.0,"""4,{}""","""4,4"""\n'
    path = tmp_path / "kernel_details.csv"
    path.write_text(head + "".join(line.format(i % 3, i % 3) for i in range(300)))
    table = kernel_details_csv.read_kernels(path, 0, lambda _: None)
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
    head = f"Step Id,Name,Type,Accelerator Core,{','.join(columns)}\n"
    line = f"1,k,Add,AI_CORE,{','.join(cells[name] for name in columns)}"
    path = tmp_path / "kernel_details.csv"
    last_cell = len(line) - len(cells[columns[-1]])
    for n_bytes in range(1, len(line) + 1):
        path.write_text(f"{head}{line}\n{line[:n_bytes]}")
        remarks = Heard()
        table = kernel_details_csv.read_kernels(path, 0, remarks)
        assert table is not None
        is_whole = n_bytes >= last_cell
        assert sum(table["n_calls"].to_pylist()) == 1 + is_whole, line[:n_bytes]
        assert set(table["input_shapes"].to_pylist()) <= {"4,4", ""}
        said = "may be cut off" if is_whole else "truncated at byte"
        assert [said in remark for remark in remarks] == [True]
