"""What the peer gets wrong, and what is the same from text and from databases."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cluster_analysis.cli import main
from cluster_analysis.engine.step_files import StepTables
from cluster_analysis.insight.communication import OpenFiles
from cluster_analysis.insight.matrix import matrix_of_step
from cluster_analysis.tables.model import Group, Topology
from cluster_analysis.tables.schema import COLLECTIVES, LINKS
from cluster_run.errors import InputError
from cluster_run.ids import ParallelSizes, Rank, Step
from tests.analysis.runs import captures, file_of, write_small_run

PAIR = Group("7", "pp", (Rank(4), Rank(9)))
TOPOLOGY = Topology((Rank(4), Rank(9)), {}, {}, {"7": PAIR}, ParallelSizes(), {})


def _link(**values: Any) -> dict[str, Any]:
    plain = {"rank": 4, "step": 1, "group": "7", "is_p2p": True, "op_type": "send", "variant": "total"}
    ends = {"src_local": 0, "dst_local": 1, "transport": "RDMA", "size_bytes": 84e6, "time_us": 4e3}
    return dict.fromkeys(LINKS.names) | plain | ends | values


def _matrix(*links: dict[str, Any]) -> list[dict[str, Any]]:
    tables = StepTables(COLLECTIVES.empty_table(), pa.Table.from_pylist(list(links), schema=LINKS))
    rows: list[dict[str, Any]] = matrix_of_step(Step(1), TOPOLOGY, [tables]).to_pylist()
    return rows


def test_a_message_that_both_ends_report_counts_once_in_the_total() -> None:
    rows = _matrix(_link(), _link(rank=9, op_type="receive"))
    (total,) = [row for row in rows if row["label"] == "Total Op Info"]
    assert (total["src_rank"], total["dst_rank"], total["size_mb"]) == (4, 9, 84.0)


def test_a_message_that_only_the_receiver_reports_counts_too() -> None:
    rows = _matrix(_link(rank=9, op_type="receive"))
    assert [row["size_mb"] for row in rows if row["label"] == "Total Op Info"] == [84.0]


def test_samples_of_links_are_not_added_to_the_total() -> None:
    rows = _matrix(_link(), _link(variant="top1", op_name="hcom_send__1_0_1", size_bytes=42e6))
    assert [row["size_mb"] for row in rows if row["label"] == "Total Op Info"] == [84.0]
    assert [row["label"] for row in rows] == ["send-top1", "send-total", "Total Op Info"]


def test_a_link_without_time_has_no_infinite_bandwidth() -> None:
    assert {row["bandwidth_gbps"] for row in _matrix(_link(time_us=0.0))} == {0.0}


def test_a_link_of_a_missing_rank_is_kept_when_the_metadata_knows_the_rank() -> None:
    rows = _matrix(_link(rank=4))
    assert {(row["src_rank"], row["dst_rank"]) for row in rows} == {(4, 9)}


def test_group_keys_name_all_members_though_one_rank_is_missing(tmp_path: Path) -> None:
    run = write_small_run(tmp_path / "run")
    (run / "manifest.json").unlink()
    for path in captures(run)[1].rglob("*"):
        if path.is_file():
            path.unlink()
    assert main([str(run), "-q", "--no-report"]) == 3
    folder = run / "cluster_analysis_output"
    keys = set(json.loads((folder / "cluster_communication.json").read_bytes()))
    listed = json.loads((folder / "communication_group.json").read_bytes())["collective"]
    assert "(0, 1)" in keys
    assert {f"({', '.join(map(str, ranks))})" for ranks in listed} <= keys


@pytest.mark.slow
def test_a_corrupt_file_costs_its_rank_only(tmp_path: Path) -> None:
    run = write_small_run(tmp_path / "run")
    path = file_of(run, 1, "communication.json")
    path.write_bytes(path.read_bytes()[:1000])
    assert main([str(run), "-q", "--no-report"]) == 3
    document = json.loads((run / "cluster_analysis_output" / "cluster_communication.json").read_bytes())
    ranks = {
        rank
        for by_step in document.values()
        for ops in by_step.values()
        for op in ops.values()
        for rank in op
    }
    assert ranks == set("0234567")


def test_a_file_that_was_cut_off_costs_the_steps_after_the_cut(tmp_path: Path) -> None:
    run = write_small_run(tmp_path / "run")
    path = file_of(run, 1, "communication.json")
    path.write_bytes(path.read_bytes()[:-100])
    assert main([str(run), "-q", "--no-report"]) == 3
    document = json.loads((run / "cluster_analysis_output" / "cluster_communication.json").read_bytes())
    steps: dict[str, set[str]] = {}
    for by_step in document.values():
        for step, ops in by_step.items():
            for op in ops.values():
                for rank in op:
                    steps.setdefault(rank, set()).add(step)
    assert steps["1"] == steps["0"] - {max(steps["0"])}


def test_a_file_that_became_shorter_is_an_error_and_no_wrong_output(tmp_path: Path) -> None:
    path = tmp_path / "communication.json"
    path.write_bytes(b"0123456789")
    with OpenFiles({3: str(path)}) as files:
        assert files.read(3, 4, 2) == b"2345"
        path.write_bytes(b"01234")
        with pytest.raises(InputError, match="became shorter while it was read"):
            files.read(3, 4, 2)


@pytest.mark.slow
def test_totals_of_the_database_are_those_of_the_text_files(tmp_path: Path) -> None:
    for form in ("text", "db"):
        assert main([str(write_small_run(tmp_path / form, form=form)), "-q", "--no-report"]) == 0
    document = json.loads(
        (tmp_path / "text" / "cluster_analysis_output" / "cluster_communication.json").read_bytes()
    )
    expected = {
        (step, int(rank), key.rpartition("@")[2]): values["Communication Time Info"]["Elapse Time(ms)"]
        for by_step in document.values()
        for step, entries in by_step.items()
        for key, entry in entries.items()
        if key.startswith("Total Op Info@")
        for rank, values in entry.items()
    }
    connection = sqlite3.connect(tmp_path / "db" / "cluster_analysis_output" / "cluster_analysis.db")
    try:
        rows = connection.execute(
            "SELECT step, rank_id, group_name, elapsed_time FROM ClusterCommunicationTime "
            "WHERE hccl_op_name = 'Total Op Info'"
        ).fetchall()
        sums = connection.execute(
            "SELECT step, rank_id, group_name, SUM(elapsed_time) FROM ClusterCommunicationTime "
            "WHERE hccl_op_name != 'Total Op Info' GROUP BY 1, 2, 3"
        ).fetchall()
    finally:
        connection.close()
    found = {tuple(row[:3]): row[3] for row in rows}
    assert found == pytest.approx(expected, rel=1e-9)
    assert {tuple(row[:3]): row[3] for row in sums} == pytest.approx(expected, rel=1e-9)
