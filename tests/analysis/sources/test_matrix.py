from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster_analysis.sources.text.matrix_json import read_matrix
from tests.analysis.said import Heard
from tests.analysis.sources.builders import GROUP, LINKS, LinkRow, matrix_json


def read(tmp_path: Path, document: object) -> tuple[list[dict], list[str]]:
    path = tmp_path / "communication_matrix.json"
    path.write_text(json.dumps(document))
    remarks = Heard()
    return read_matrix(path, 5, None, remarks).to_pylist(), remarks


def test_a_link_has_local_ends_bytes_and_microseconds(tmp_path: Path) -> None:
    rows, _ = read(tmp_path, matrix_json({"step50": LINKS}))
    link = next(row for row in rows if row["dst_local"] == 1 and row["variant"] == "top1")
    assert (link["src_local"], link["dst_local"], link["src_rank"], link["dst_rank"]) == (0, 1, None, None)
    assert link["size_bytes"] == pytest.approx(37781504)
    assert link["time_us"] == 2125.0
    assert (link["group"], link["transport"], link["rank"], link["step"]) == (GROUP, "HCCS", 5, 50)


def test_both_frameworks_spellings_of_the_operator_name_are_read(tmp_path: Path) -> None:
    pytorch, _ = read(tmp_path, matrix_json({"step50": LINKS}, "Op Name"))
    mindspore, _ = read(tmp_path, matrix_json({"step50": LINKS}, "op_name"))
    assert pytorch == mindspore
    assert pytorch[0]["op_name"] == "hcom_allReduce__210_2_1"


def test_reduce_scatter_filed_under_reduce_is_told_by_its_operator_and_so_is_its_total(
    tmp_path: Path,
) -> None:
    name = "hcom_reduceScatter__691_4_1"
    links = [
        LinkRow(f"reduce-top1@{GROUP}", 0, 1, op_name=name),
        LinkRow(f"reduce-total@{GROUP}", 0, 1, op_name=None),
    ]
    rows, _ = read(tmp_path, matrix_json({"step50": links}))
    assert [(row["variant"], row["op_type"]) for row in rows] == [
        ("top1", "reducescatter"),
        ("total", "reducescatter"),
    ]


def test_a_total_of_reduce_and_reduce_scatter_together_stays_reduce(tmp_path: Path) -> None:
    links = [
        LinkRow(f"reduce-top1@{GROUP}", 0, 1, op_name="hcom_reduceScatter__691_4_1"),
        LinkRow(f"reduce-bottom1@{GROUP}", 0, 1, op_name="hcom_reduce__691_5_1"),
        LinkRow(f"reduce-total@{GROUP}", 0, 1, op_name=None),
    ]
    rows, _ = read(tmp_path, matrix_json({"step50": links}))
    assert [row["op_type"] for row in rows] == ["reducescatter", "reduce", "reduce"]


def test_older_files_have_one_entry_an_operator(tmp_path: Path) -> None:
    links = [LinkRow(f"hcom_broadcast__483_1@{GROUP}", 1, 0, op_name=None)]
    document = matrix_json({"step2": links})
    document["step2"]["collective"]["Total Op Info"] = {"1-0": {"Transport Type": "HCCS"}}  # type: ignore[index]
    rows, _ = read(tmp_path, document)
    assert [(row["variant"], row["op_type"], row["op_name"]) for row in rows] == [
        ("op", "broadcast", "hcom_broadcast__483_1")
    ]


def test_send_filed_under_collective_is_point_to_point(tmp_path: Path) -> None:
    rows, _ = read(
        tmp_path, matrix_json({"step0": [LinkRow(f"send-top1@{GROUP}", 0, 1, op_name="hcom_send__1_0")]})
    )
    assert rows[0]["is_p2p"]


def test_prof_files_without_step_and_level_are_step_0(tmp_path: Path) -> None:
    entry = {"0-1": {"Transport Type": "HCCS", "Transit Size(MB)": 1, "Transit Time(ms)": 1}}
    rows, _ = read(tmp_path, {f"hcom_allReduce__210_0_1@{GROUP}": entry, "Total Op Info": entry})
    assert [(row["step"], row["variant"]) for row in rows] == [(0, "op")]


def test_a_link_whose_ends_are_not_named_is_remarked(tmp_path: Path) -> None:
    document = matrix_json({"step50": LINKS})
    document["step50"]["collective"][LINKS[0].key]["zero-one"] = {}  # type: ignore[index]
    rows, remarks = read(tmp_path, document)
    assert len(rows) == 3
    assert remarks == ["left out: 1 link of step 50 not named source-destination"]


def test_a_total_whose_operator_is_an_empty_text_names_none(tmp_path: Path) -> None:
    links = [
        LinkRow(f"reduce-top1@{GROUP}", 0, 1, op_name="hcom_reduceScatter__691_4_1"),
        LinkRow(f"reduce-total@{GROUP}", 0, 1, op_name=""),
    ]
    rows, _ = read(tmp_path, matrix_json({"step50": links}, "op_name"))
    assert [(row["op_type"], row["op_name"]) for row in rows] == [
        ("reducescatter", "hcom_reduceScatter__691_4_1"),
        ("reducescatter", None),
    ]


def test_a_damaged_local_rank_is_told_and_makes_no_group_of_that_size(tmp_path: Path) -> None:
    links = [LinkRow(f"allreduce-top1@{GROUP}", 0, 99999999), LinkRow(f"allreduce-top1@{GROUP}", 0, 1)]
    rows, remarks = read(tmp_path, matrix_json({"step50": links}))
    assert [(row["src_local"], row["dst_local"]) for row in rows] == [(0, 1)]
    assert remarks == ["left out: 1 link of step 50 not named source-destination"]
