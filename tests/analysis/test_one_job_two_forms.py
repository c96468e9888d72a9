"""The simulator writes one job as text and as databases: reading gives equal tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_analysis.discover import discover
from cluster_analysis.model import RankTables
from cluster_analysis.simulation.cli import main
from cluster_analysis.sources.rank import read_rank

TABLES = ("steps", "collectives", "links", "operators", "packets")


def simulate(out: Path, framework: str, form: str) -> dict[int, RankTables]:
    sizes = ["--tp", "2", "--pp", "2", "--dp", "2", "--steps", "2", "--ranks-per-host", "4"]
    assert main([str(out), "--framework", framework, "--form", form, "--quiet", *sizes]) == 0
    capture = discover(out)
    assert capture.problems == ()
    tables = {source.rank: read_rank(source) for source in capture.sources}
    assert all(one.problems == () for one in tables.values())
    assert len(tables) == 8
    return tables


def rows(tables: RankTables, name: str) -> list[dict[str, object]]:
    return sorted(getattr(tables, name).to_pylist(), key=lambda row: [str(value) for value in row.values()])


def test_a_pytorch_job_gives_equal_tables_from_text_and_from_databases(tmp_path: Path) -> None:
    text = simulate(tmp_path / "text", "pt", "text")
    database = simulate(tmp_path / "db", "pt", "db")
    for rank in text:
        for name in TABLES:
            assert rows(text[rank], name) == rows(database[rank], name), (rank, name)
            assert getattr(text[rank], name).num_rows > 0


def test_a_pytorch_job_has_one_metadata_in_both_forms(tmp_path: Path) -> None:
    text = simulate(tmp_path / "text", "pt", "text")
    database = simulate(tmp_path / "db", "pt", "db")
    for rank in text:
        assert text[rank].metadata.parallel == database[rank].metadata.parallel
        assert set(text[rank].metadata.groups) == set(database[rank].metadata.groups)


@pytest.mark.parametrize("name", ["collectives", "packets", "operators"])
def test_a_mindspore_job_gives_equal_tables_but_for_links_and_steps(tmp_path: Path, name: str) -> None:
    # MindSpore's database has the links of each operator and no step times; the text has samples and both.
    text = simulate(tmp_path / "text", "ms", "text")
    database = simulate(tmp_path / "db", "ms", "db")
    for rank in text:
        assert rows(text[rank], name) == rows(database[rank], name), rank
