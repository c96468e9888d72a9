"""A whole file of the right form that lacks what the rank's other files speak of is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_analysis.sources.rank import read_rank
from cluster_analysis.tables.model import Selection
from cluster_analysis.tables.rank_tables import RankTables
from cluster_run.ids import Step
from tests.analysis.said import reason
from tests.analysis.sources.builders import (
    LINKS,
    OPS,
    OUTPUT,
    STEP_ROW,
    source_of,
    step_csv,
    write_analysis_db,
    write_capture,
    write_info,
)

NO_OPERATOR = "no operator of step 50, which communicated for 106 ms"


def reasons(tables: RankTables) -> list[tuple[str, str]]:
    return [(problem.file, reason(problem)) for problem in tables.problems]


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"step50": {}}',
        '{"step50": {"p2p": {}, "collective": {}}}',
        '{"step50": {"p2p": {}, "collective": {"hcom_allReduce__1_0_0@1": {}}}}',
        '{"step49": {"p2p": {}, "collective": {}}, "Total Op Info": {}}',
    ],
)
def test_a_communication_file_without_operators_is_told_where_the_step_communicated(
    tmp_path: Path, text: str
) -> None:
    capture = write_capture(tmp_path, 0)
    (capture / OUTPUT / "communication.json").write_text(text)
    assert reasons(read_rank(source_of(capture))) == [("communication.json", NO_OPERATOR)]


def test_one_step_without_operators_among_others_is_told(tmp_path: Path) -> None:
    steps = step_csv({"49": STEP_ROW, "50": STEP_ROW, "51": STEP_ROW})
    ops, links = {"step49": OPS, "step51": OPS}, {"step51": LINKS}
    capture = write_capture(tmp_path, 0, steps=steps, ops=ops, links=links)
    tables = read_rank(source_of(capture))
    assert reasons(tables) == [("communication.json", NO_OPERATOR)]
    selected = read_rank(source_of(capture), Selection(steps=frozenset({Step(51)})))
    assert reasons(selected) == [], "the other steps were not asked for"


def test_a_step_that_did_not_communicate_needs_no_operator(tmp_path: Path) -> None:
    silent = (8873.75, 0, 0, 0, 25744.05, 34617.8, 0, 0)
    capture = write_capture(
        tmp_path, 0, steps=step_csv({"49": silent, "50": STEP_ROW}), ops={"step50": OPS, "step49": ()}
    )
    assert reasons(read_rank(source_of(capture))) == []


def test_a_database_without_operators_is_told_where_the_step_communicated(tmp_path: Path) -> None:
    output = tmp_path / "rank0_ascend_pt" / OUTPUT
    output.mkdir(parents=True)
    write_info(output.parent, 0)
    write_analysis_db(output / "analysis.db", {}, {"step50": LINKS}, {"50": STEP_ROW})
    assert reasons(read_rank(source_of(output.parent))) == [("analysis.db", NO_OPERATOR)]


def test_a_matrix_without_links_is_told_where_the_rank_communicated(tmp_path: Path) -> None:
    capture = write_capture(tmp_path, 0)
    (capture / OUTPUT / "communication_matrix.json").write_text("{}")
    assert reasons(read_rank(source_of(capture))) == [
        ("communication_matrix.json", "it holds no link, though the rank communicated")
    ]
