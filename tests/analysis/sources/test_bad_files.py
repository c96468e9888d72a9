"""A file that is cut off, empty or no data costs what is bad in it, and is named with its rank."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster_analysis.sources.rank import read_rank
from tests.analysis.said import reason
from tests.analysis.sources.builders import (
    OPS,
    OUTPUT,
    STEP_HEADER,
    STEP_ROW,
    communication_json,
    source_of,
    step_csv,
    write_capture,
)
from tests.analysis.sources.four_ranks import BAD, output_of, own_links, read_all, the_problem


@pytest.mark.parametrize("name", ["communication.json", "communication_matrix.json"])
def test_01_02_a_truncated_json_costs_that_file_of_that_rank(job: dict[int, Path], name: str) -> None:
    path = output_of(job, name)
    path.write_bytes(path.read_bytes()[:300])
    assert the_problem(job) == (BAD, name, "truncated at byte 300")


@pytest.mark.parametrize("name", ["communication.json", "communication_matrix.json"])
@pytest.mark.parametrize("padding", [b"", b"\0" * 50], ids=["cut", "NUL"])
def test_01_02_a_json_that_is_cut_off_keeps_its_whole_steps_and_names_the_first_lost_one(
    tmp_path: Path, name: str, padding: bytes
) -> None:
    steps = ("step50", "step51", "step52")
    links = {step: own_links(0)["step50"] for step in steps}
    capture = write_capture(tmp_path, 0, ops=dict.fromkeys(steps, OPS), links=links)
    path = capture / OUTPUT / name
    whole = read_rank(source_of(capture))
    content = path.read_bytes()
    cut = content.index(b'"step52"') + 100
    path.write_bytes(content[:cut] + padding)
    tables = read_rank(source_of(capture))
    (problem,) = tables.problems
    why = f"filled with NUL from byte {cut} of {cut + 50}" if padding else f"truncated at byte {cut}"
    assert (problem.file, reason(problem)) == (name, f"{why}; it says nothing of step52 and what followed")
    for table, was_cut in (("collectives", "matrix" not in name), ("links", "matrix" in name)):
        expected = [row for row in getattr(whole, table).to_pylist() if not was_cut or row["step"] != 52]
        assert getattr(tables, table).to_pylist() == expected


def test_01_a_json_padded_with_nul_names_where_they_begin(job: dict[int, Path]) -> None:
    path = output_of(job, "communication.json")
    content = path.read_bytes()
    path.write_bytes(content[:300] + b"\0" * 100)
    assert the_problem(job) == (BAD, path.name, "filled with NUL from byte 300 of 400")


def test_03_an_empty_communication_json_is_told(job: dict[int, Path]) -> None:
    output_of(job, "communication.json").write_bytes(b"")
    assert the_problem(job) == (BAD, "communication.json", "empty (0 bytes)")


def test_04_an_empty_step_trace_is_told(job: dict[int, Path]) -> None:
    output_of(job, "step_trace_time.csv").write_bytes(b"")
    assert the_problem(job) == (BAD, "step_trace_time.csv", "empty (0 bytes)")


def test_05_a_step_trace_of_a_header_only_is_told(job: dict[int, Path]) -> None:
    output_of(job, "step_trace_time.csv").write_text(STEP_HEADER + "\n")
    assert the_problem(job) == (BAD, "step_trace_time.csv", "it has a header and no step")


def test_09_a_step_trace_that_is_not_utf_8_is_told(job: dict[int, Path]) -> None:
    output_of(job, "step_trace_time.csv").write_bytes(step_csv({"50": STEP_ROW}).encode("utf-16"))
    rank, file, reason = the_problem(job)
    assert (rank, file) == (BAD, "step_trace_time.csv")
    assert "UTF-8" in reason


@pytest.mark.parametrize("cell", ["much", "nan"])
def test_10_11_a_cell_that_is_no_number_is_null_and_never_zero(job: dict[int, Path], cell: str) -> None:
    path = output_of(job, "step_trace_time.csv")
    path.write_text(path.read_text().replace("8873.75", cell))
    assert the_problem(job)[:2] == (BAD, "step_trace_time.csv")
    _, tables = read_all(job[0].parent)
    assert tables[BAD].steps["computing_us"].to_pylist() == [None]
    assert tables[BAD].steps["free_us"].to_pylist() == [STEP_ROW[4]]


@pytest.mark.slow
def test_19_a_huge_sparse_file_is_refused_by_its_content_not_read_as_empty(job: dict[int, Path]) -> None:
    path = output_of(job, "communication.json")
    length = path.stat().st_size
    with path.open("r+b") as stream:
        stream.truncate(300_000_000)
    assert the_problem(job) == (BAD, path.name, f"filled with NUL from byte {length} of 300000000")


def test_22_nan_in_json_names_the_byte(job: dict[int, Path]) -> None:
    path = output_of(job, "communication.json")
    text = path.read_text().replace("0.25", "NaN", 1)
    path.write_text(text)
    rank, file, reason = the_problem(job)
    assert (rank, file) == (BAD, path.name)
    assert f"not JSON at byte {text.index('NaN')}" in reason


def test_24_broken_metadata_of_one_rank_costs_its_metadata(job: dict[int, Path]) -> None:
    (job[BAD] / "profiler_metadata.json").write_text('{"distributed_args": {')
    assert the_problem(job) == (BAD, "profiler_metadata.json", "truncated at byte 22")


def test_a_wrong_type_costs_that_file_and_names_the_step(job: dict[int, Path]) -> None:
    document = communication_json({"step50": OPS})
    document["step50"]["collective"][OPS[0].name]["Communication Time Info"] = []  # type: ignore[index]
    path = output_of(job, "communication.json")
    path.write_text(json.dumps(document))
    rank, file, reason = the_problem(job)
    assert (rank, file) == (BAD, path.name)
    assert "'step50', which begins at byte 11" in reason
