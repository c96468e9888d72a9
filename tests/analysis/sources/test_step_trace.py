from __future__ import annotations

from pathlib import Path

import pytest

from cluster_analysis.sources.text.step_trace_csv import read_device_of_steps, read_step_trace
from tests.analysis.one_rank import read_rank
from tests.analysis.said import Heard, reason, refused
from tests.analysis.sources.builders import STEP_HEADER, STEP_ROW, source_of, step_csv, write_capture


def read(tmp_path: Path, text: str | bytes) -> tuple[list[dict], list[str]]:
    path = tmp_path / "step_trace_time.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    remarks = Heard()
    return read_step_trace([(str(path), 1)], remarks).to_pylist(), remarks


def test_columns_are_found_by_name_with_and_without_device_and_preparing(tmp_path: Path) -> None:
    old, _ = read(tmp_path, step_csv({"50": STEP_ROW}))
    new, _ = read(tmp_path, step_csv({"4,50": (*STEP_ROW, 17902.5)}, f"Device_id,{STEP_HEADER},Preparing"))
    assert old[0]["preparing_us"] is None
    assert new[0]["preparing_us"] == 17902.5
    assert {**new[0], "preparing_us": None} == old[0]
    assert old[0]["computing_us"] == 8873.75


def test_windows_line_ends_are_read(tmp_path: Path) -> None:
    rows, remarks = read(tmp_path, step_csv({"50": STEP_ROW}).replace("\n", "\r\n"))
    assert rows[0]["communication_not_overlapped_exclude_receive_us"] == 101963.203
    assert not remarks


@pytest.mark.parametrize("cell", ["nan", "inf", "-inf", "much", "12,5".replace(",", ";"), "0x10", "1_000"])
def test_a_cell_that_is_no_number_is_null_and_remarked(tmp_path: Path, cell: str) -> None:
    rows, remarks = read(tmp_path, step_csv({"50": (cell, *STEP_ROW[1:])}))  # type: ignore[dict-item]
    assert rows[0]["computing_us"] is None
    assert rows[0]["free_us"] == 25744.05
    assert remarks == ["left out: 1 cell of column Computing without a number"]


@pytest.mark.parametrize(
    ("step", "n_cells", "why"),
    [
        ("fifty", None, "1 row without a step number ('fifty')"),
        ("50", 4, "1 line with another number of cells than the header"),
    ],
)
def test_a_row_without_a_step_number_or_with_other_cells_is_left_out_and_remarked(
    tmp_path: Path, step: str, n_cells: int | None, why: str
) -> None:
    rows, remarks = read(tmp_path, step_csv({"49": STEP_ROW, step: STEP_ROW[:n_cells], "51": STEP_ROW}))
    assert [row["step"] for row in rows] == [49, 51]
    assert remarks == [f"left out: {why}"]


def test_steps_of_several_devices_in_one_file_are_nobodys_and_told(tmp_path: Path) -> None:
    header = f"Device_id,{STEP_HEADER}"
    other = [2 * one for one in STEP_ROW]
    rows, remarks = read(tmp_path, step_csv({"0,50": STEP_ROW, "1,50": other, "0,51": STEP_ROW}, header))
    assert [row["step"] for row in rows] == [51]
    assert remarks == ["it has 2 rows of one step, from several devices or windows that cannot be told apart"]


def test_a_file_that_was_copied_behind_itself_is_not_told_as_several_devices(tmp_path: Path) -> None:
    text = step_csv({"50": STEP_ROW})
    rows, remarks = read(tmp_path, text + text.splitlines(keepends=True)[1])
    assert (rows, remarks) == ([], ["left out: 2 rows of steps that it has more than once"])


@pytest.mark.parametrize(("communicates", "steps"), [(3.0, [50, 51]), (0.0, [51])])
def test_a_device_that_a_process_touches_beside_its_own_counts_for_nothing(
    tmp_path: Path, communicates: float, steps: list[int]
) -> None:
    header = "Device_id,Step,Computing,Communication(Not Overlapped),Communication,Free"
    touched, own = "0,50,0.5,0.0,0.0,8.0", f"2,50,5.5,3.0,{communicates},1.0"
    rows, remarks = read(tmp_path, "\n".join([header, touched, own, "2,51,5.5,0.0,0.0,1.0", ""]))
    assert [(row["step"], row["computing_us"]) for row in rows] == [(step, 5.5) for step in steps]
    assert len(remarks) == 2 - len(steps)


@pytest.mark.parametrize(
    ("lines", "device"),
    [
        (["device id,Step,Computing", "3,1,2.5", "3,2,2.5"], 3),
        (['"Device_id","Step"', '" 3","1"'], 3),
        (["Step,Device_id", "1,3", "2,3,", "3,3,,"], 3),
        (["Step,Device_id", "1,3", "2,3,9", "3"], 3),
        (["Step,Device_id", "1,3", "2,4"], None),
        (["Step,Device_id", "1,npu"], None),
        (["Step,Device_id", "1,"], None),
        (["Step,Device_id"], None),
        (["Step,Computing", "1,2.5"], None),
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_file_is_of_the_device_that_all_of_its_whole_lines_name(
    tmp_path: Path, lines: list[str], device: int | None, line_end: str
) -> None:
    path = tmp_path / "step_trace_time.csv"
    path.write_bytes(line_end.join([*lines, ""]).encode())
    assert read_device_of_steps(path) == device


DOUBT = (
    "the last line has no end: its last cell (Communication(Not Overlapped and Exclude Receive)) "
    "may be cut off, and was left out; lines after it may be missing"
)


@pytest.mark.parametrize("n_before", [1, 1500])
def test_a_last_line_without_its_end_counts_where_it_has_all_its_cells(tmp_path: Path, n_before: int) -> None:
    text = step_csv(dict.fromkeys(map(str, range(n_before + 1)), STEP_ROW))
    for n_bytes_cut in range(1, len(str(STEP_ROW[-1])) + 2):
        rows, remarks = read(tmp_path, text[:-n_bytes_cut])
        assert ([row["step"] for row in rows], remarks) == ([*range(n_before + 1)], [DOUBT])
        assert rows[-1]["stage_us"] == STEP_ROW[5]
        assert rows[-1]["communication_not_overlapped_exclude_receive_us"] is None


def test_a_last_line_that_lacks_cells_was_cut_off_and_is_left_out(tmp_path: Path) -> None:
    whole = step_csv({"50": STEP_ROW})
    line = step_csv({"51": STEP_ROW}).splitlines()[1]
    for n_bytes in range(1, line.rindex(",") + 1):
        text = whole + line[:n_bytes]
        rows, remarks = read(tmp_path, text)
        assert [row["step"] for row in rows] == [50]
        assert remarks == [f"truncated at byte {len(text)}: the last line has no end, and was left out"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (STEP_HEADER.encode() + b"\n", "a header and no step"),
        (b"a,b\n1,2\n", "none of the expected columns"),
        (step_csv({"50": STEP_ROW}).encode().replace(b",", b";"), "not separated by commas"),
        (b"Step,Free\n1,2\n", "no column Computing"),
        (b"Step Number,Computing\n1,2\n2,2\n", "no column Step"),
        (step_csv({"50": STEP_ROW}).encode().replace(b"50,", b"\xff\xfe,"), "UTF"),
        (b"\0" * 400, "no end"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path: Path, content: bytes, words: str) -> None:
    with refused(words):
        read(tmp_path, content)


@pytest.mark.parametrize("n_steps", [3, 1500])
def test_commas_at_the_end_of_a_row_are_no_cells(tmp_path: Path, n_steps: int) -> None:
    lines = step_csv({str(step): STEP_ROW for step in range(n_steps)}).splitlines()
    path = tmp_path / "step_trace_time.csv"
    path.write_text("\n".join([lines[0], *(f"{line},,\t" for line in lines[1:-1]), f"{lines[-1]},7"]) + "\n")
    remarks = Heard()
    steps = read_step_trace([(str(path), 3)], remarks)
    assert steps["step"].to_pylist() == list(range(n_steps - 1))
    assert set(steps["computing_us"].to_pylist()) == {STEP_ROW[0]}
    assert remarks == ["left out: 1 line with another number of cells than the header"]


def test_a_single_step_that_lacks_cells_says_why_there_is_no_step(tmp_path: Path) -> None:
    text = step_csv({"50": STEP_ROW}).rpartition(",")[0]
    capture = write_capture(tmp_path, 0, steps=text)
    (problem,) = read_rank(source_of(capture)).problems
    assert reason(problem) == (
        f"it has a header and no step; truncated at byte {len(text)}: "
        "the last line has no end, and was left out"
    )


@pytest.mark.parametrize("other", ["Computing", "computing", "Com puting"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_file_with_two_columns_of_one_name_is_nobodys_and_told(
    tmp_path: Path, other: str, *, is_first: bool
) -> None:
    header, row = step_csv({"50": STEP_ROW}).splitlines()
    pairs = ((other, header), ("1.0", row))
    text = "".join(f"{','.join(one if is_first else reversed(one))}\n" for one in pairs)
    with refused("it has two columns of one name"):
        read(tmp_path, text)


def test_two_columns_of_one_name_that_nothing_reads_cost_nothing(tmp_path: Path) -> None:
    header, row = step_csv({"50": STEP_ROW}).splitlines()
    rows, remarks = read(tmp_path, f"{header},Other,Other\n{row},1,2\n")
    assert (rows[0]["computing_us"], remarks) == (8873.75, [])
