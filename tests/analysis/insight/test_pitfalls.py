"""What makes MindStudio Insight lose rows, pages or whole files: a test for each, on real output."""

from __future__ import annotations

import csv
import io
import json
import re
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest

from cluster_analysis.cli import main
from cluster_analysis.insight.group_file import group_json, group_rows
from cluster_analysis.insight.naming import op_key, rank_set, safe
from cluster_analysis.insight.step_table import StepRow, csv_text
from cluster_analysis.output_folder import INSIGHT_TEXT_NAMES
from cluster_analysis.tables.schema import COLLECTIVES
from tests.analysis.runs import captures, write_small_run

#: Insight takes files of these names for the data of a rank.
RANK_DATA = re.compile(
    r"^(trace|trace_view)\.json|^msprof.*\.json|^kernel_details|^op_summary|^memory_record"
    r"|^msprof_\d+\.db|^ascend_.*_profiler.*\.db"
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_run(tmp_path_factory.mktemp("insight") / "run")


@pytest.fixture(scope="module")
def output(run: Path) -> Path:
    assert main([str(run), "-q"]) == 0
    return run / "cluster_analysis_output"


@pytest.fixture(scope="module")
def database_output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = write_small_run(tmp_path_factory.mktemp("insight-db") / "run", form="db")
    assert main([str(run), "-q"]) == 0
    return run / "cluster_analysis_output"


@pytest.fixture(scope="module")
def communication(output: Path) -> dict[str, Any]:
    return _strict_json(output / "cluster_communication.json")


@pytest.fixture(scope="module")
def matrix(output: Path) -> dict[str, Any]:
    return _strict_json(output / "cluster_communication_matrix.json")


@pytest.fixture(scope="module")
def steps(output: Path) -> list[dict[str, str]]:
    text = (output / "cluster_step_trace_time.csv").read_text()
    return list(csv.DictReader(io.StringIO(text)))


def _strict_json(path: Path) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{path.name} holds {constant}")

    document: dict[str, Any] = json.loads(path.read_bytes(), parse_constant=refuse)
    return document


def _operators(document: dict[str, Any]) -> list[tuple[str, str, str, dict[str, Any]]]:
    return [
        (group, step, key, entry)
        for group, by_step in document.items()
        for step, entries in by_step.items()
        for key, entry in entries.items()
    ]


def test_01_no_row_has_an_empty_cell_or_one_too_few(output: Path) -> None:
    rows = list(csv.reader(io.StringIO((output / "cluster_step_trace_time.csv").read_text())))
    assert {len(row) for row in rows} == {len(rows[0])}
    assert all(cell for row in rows for cell in row)


def test_01_a_missing_value_is_written_out_even_in_the_last_column() -> None:
    known = StepRow(1, "rank", (0,), (1.0,) * 9, None)
    unknown = StepRow(1, "rank", (1,), (*(1.0,) * 8, None), None)
    assert csv_text([known, unknown]).splitlines()[-1].endswith(",1.0,NA")


def test_02_the_ranks_of_a_stage_stand_in_double_quotes(output: Path) -> None:
    lines = [
        line for line in (output / "cluster_step_trace_time.csv").read_text().splitlines() if "stage" in line
    ]
    assert lines[0].startswith('10,stage,"(0, 1, 2, 3)",')
    assert len(lines) == 2 * 3


def test_03_steps_have_a_prefix_everywhere_but_in_the_step_table(
    steps: list[dict[str, str]], communication: dict[str, Any], matrix: dict[str, Any]
) -> None:
    assert {row["Step"] for row in steps} == {"10", "11", "12"}
    for document in (communication, matrix):
        assert {step for by_step in document.values() for step in by_step} == {"step10", "step11", "step12"}


def test_04_every_operator_names_its_group(
    communication: dict[str, Any], matrix: dict[str, Any], output: Path
) -> None:
    groups = _strict_json(output / "communication_group.json")["comm_group_parallel_info"]
    known = {group["group_name"] for group in groups}
    for document in (communication, matrix):
        assert {key.rpartition("@")[2] for _, _, key, _ in _operators(document)} == known


def test_04_an_operator_without_a_group_gets_one() -> None:
    assert op_key("hcom_allReduce__1_2_3", "") == "hcom_allReduce__1_2_3@unknown"


def test_05_every_group_and_rank_has_a_total(communication: dict[str, Any]) -> None:
    totals, ranks = {}, {}
    for group, step, key, entry in _operators(communication):
        name, _, group_hash = key.rpartition("@")
        place = (group, step, group_hash)
        if name == "Total Op Info":
            totals[place] = set(entry)
        else:
            ranks.setdefault(place, set()).update(entry)
    assert totals == ranks
    assert totals


def test_06_every_rank_of_an_operator_has_transports(communication: dict[str, Any]) -> None:
    for _, _, key, entry in _operators(communication):
        for rank, values in entry.items():
            bands = values["Communication Bandwidth Info"]
            assert {"RDMA", "HCCS", "PCIE", "SDMA", "SIO"} <= set(bands), (key, rank)


def test_07_steps_and_indices_of_the_database_are_text(database_output: Path) -> None:
    with sqlite3.connect(database_output / "cluster_analysis.db") as connection:
        info = connection.execute("PRAGMA table_info(ClusterStepTraceTime)").fetchall()
        columns = {name: kind for _, name, kind, *_ in info}
        kinds = set(
            connection.execute('SELECT typeof(step), typeof(type), typeof("index") FROM ClusterStepTraceTime')
        )
        steps = set(connection.execute("SELECT DISTINCT step FROM ClusterStepTraceTime"))
        prefixed = set(connection.execute("SELECT DISTINCT step FROM ClusterCommunicationTime"))
    connection.close()
    assert (columns["step"], columns["type"], columns["index"]) == ("TEXT", "TEXT", "TEXT")
    assert kinds == {("text", "text", "text")}
    assert steps == {("10",), ("11",), ("12",)}
    assert prefixed == {("step10",), ("step11",), ("step12",)}


def test_08_what_insight_cached_of_an_older_output_is_removed(run: Path, tmp_path: Path) -> None:
    for name in ("cluster.db", "cluster.db-shm", "cluster.db-wal"):
        (tmp_path / name).write_text("stale")
    assert main([str(run), "--output", str(tmp_path), "-q", "--no-report"]) == 0
    assert not list(tmp_path.glob("cluster.db*"))


def test_09_text_and_database_are_never_there_together(output: Path, database_output: Path) -> None:
    assert not (output / "cluster_analysis.db").exists()
    assert {path.name for path in output.iterdir()} >= set(INSIGHT_TEXT_NAMES)
    assert (database_output / "cluster_analysis.db").exists()
    assert {path.name for path in database_output.iterdir()}.isdisjoint(INSIGHT_TEXT_NAMES)


def test_10_all_files_lie_in_one_directory_that_can_be_opened_alone(output: Path) -> None:
    assert all((output / name).is_file() for name in INSIGHT_TEXT_NAMES)
    assert "cluster_analysis_output" in str(output)


def test_11_the_output_lies_in_no_rank_directory(run: Path, output: Path) -> None:
    assert not any(capture in output.parents for capture in captures(run))
    assert not (output.parent / "ASCEND_PROFILER_OUTPUT").exists()


def test_12_files_are_plain_and_writable_by_their_owner_only(output: Path) -> None:
    for path in output.rglob("*"):
        mode = path.lstat().st_mode
        assert not stat.S_ISLNK(mode), path
        assert mode & stat.S_IWUSR, path
        assert not mode & (stat.S_IWOTH | stat.S_IWGRP), path


def test_13_no_file_is_named_like_the_data_of_a_rank(output: Path, database_output: Path) -> None:
    names = [path.name for folder in (output, database_output) for path in folder.rglob("*")]
    assert [name for name in names if RANK_DATA.search(name)] == []


def test_14_names_hold_nothing_that_insight_refuses() -> None:
    assert safe('a|b;c&d$e>f<g`h\\i!j\nk"l') == "a_b_c_d_e_f_g_h_i_j_k_l"
    assert len(safe("x" * 1000)) == 500
    assert safe("hcom_allReduce__586_0_1") == "hcom_allReduce__586_0_1"


def test_15_links_of_the_matrix_join_global_ranks(matrix: dict[str, Any]) -> None:
    for group, _, key, links in _operators(matrix):
        members = {int(rank) for rank in re.findall(r"\d+", group)}
        ends = {int(end) for link in links for end in link.split("-")}
        assert ends <= members, (group, key)
    assert any("6-7" in links for group, _, _, links in _operators(matrix) if group == "(6, 7)"), (
        "the second half of the job has links of its own"
    )


def test_16_numbers_are_finite_even_when_an_input_holds_nan(tmp_path: Path) -> None:
    run = write_small_run(tmp_path / "run")
    for path in (captures(run)[1] / "ASCEND_PROFILER_OUTPUT").glob("communication*.json"):
        path.write_text(re.sub(r'("Transit Time\(ms\)": )[\d.e-]+', r"\1NaN", path.read_text(), count=1))
    assert main([str(run), "-q", "--no-report"]) == 3
    for name in INSIGHT_TEXT_NAMES[1:]:
        _strict_json(run / "cluster_analysis_output" / name)
    assert "nan" not in (run / "cluster_analysis_output" / INSIGHT_TEXT_NAMES[0]).read_text().lower()


def test_17_only_the_jobs_own_names_mark_a_group_as_tp_or_pp(output: Path) -> None:
    groups = _strict_json(output / "communication_group.json")["comm_group_parallel_info"]
    assert {group["pg_name"] for group in groups} >= {"tp", "pp"}


def test_17_a_group_without_a_declared_name_gets_none(topology_of_nobody: Any) -> None:
    uses, topology = topology_of_nobody
    info = json.loads(group_json(group_rows(uses, topology, {})))["comm_group_parallel_info"]
    assert [group["pg_name"] for group in info] == [""]


def test_18_the_steps_of_table_and_operators_are_the_same_when_some_are_selected(
    run: Path, tmp_path: Path
) -> None:
    assert main([str(run), "--output", str(tmp_path), "--steps", "11", "-q", "--no-report"]) == 0
    text = (tmp_path / "cluster_step_trace_time.csv").read_text()
    assert {row["Step"] for row in csv.DictReader(io.StringIO(text))} == {"11"}
    for name in INSIGHT_TEXT_NAMES[1:3]:
        document = _strict_json(tmp_path / name)
        assert {step for by_step in document.values() for step in by_step} == {"step11"}


def test_rank_sets_are_sorted_tuples() -> None:
    assert rank_set((10, 9)) == "(9, 10)"
    assert rank_set((2,)) == "(2,)"
    assert rank_set((1, 0), ",") == "(0,1)"


@pytest.fixture
def topology_of_nobody() -> Any:
    from cluster_analysis.tables.model import Group, Topology  # noqa: PLC0415
    from cluster_analysis.topology.groups import GROUP_USE  # noqa: PLC0415
    from cluster_run.ids import (  # noqa: PLC0415
        ParallelSizes,
        Rank,
    )

    assert "group" in COLLECTIVES.names
    row = dict.fromkeys(GROUP_USE.names) | {"rank": 0, "group": "42", "is_p2p": False}
    uses = GROUP_USE.empty_table().from_pylist([row], schema=GROUP_USE)
    group = Group("42", "tp", (Rank(0), Rank(1)))
    return uses, Topology((Rank(0), Rank(1)), {}, {}, {"42": group}, ParallelSizes(), {})
