"""`cluster_analysis.tables.columns`: what editors complete and type checkers check is what a run has."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from mypy import api as mypy

import cluster_analysis as ca
from cluster_analysis.tables import columns
from cluster_analysis.tables.written import WRITTEN
from cluster_simulate.cli import main as simulate
from tools.renew_columns import ROOT, made


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ca.Run:
    path = tmp_path_factory.mktemp("columns") / "run1"
    assert simulate([str(path), "--tp", "2", "--pp", "1", "--dp", "2", "--steps", "3", "-q"]) == 0
    return ca.analyse(path)


def test_the_names_are_made_from_the_schemas() -> None:
    texts = made()
    assert {path: path.read_text("utf-8") for path in texts} == texts, "make gold renews them"


def test_a_run_has_the_tables_of_the_list_with_their_schemas(run: ca.Run) -> None:
    assert set(run.tables) == set(WRITTEN) == set(get_args(columns.TableName))
    differ = [name for name, one in WRITTEN.items() if not run.tables[name].schema.equals(one)]
    assert differ == []


def test_the_names_of_columns_are_those_of_the_frames(run: ca.Run) -> None:
    for name, frame in (("Findings", run.findings), *((one.title(), run.frame(one)) for one in run.tables)):
        known = {one for one in vars(getattr(columns, name.replace("_", ""))) if not one.startswith("_")}
        assert known == set(frame.columns), name


def test_a_type_checker_refuses_a_table_or_column_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, text in made().items():
        module = tmp_path / path.relative_to(ROOT)
        module.parent.mkdir(parents=True, exist_ok=True)
        module.write_text(text, encoding="utf-8")
    for package in ("cluster_analysis", "cluster_analysis/tables"):
        (tmp_path / package / "__init__.py").touch()
    monkeypatch.chdir(tmp_path)
    user = tmp_path / "user.py"
    user.write_text(
        "from cluster_analysis.tables.columns import Steps, TableName\n"
        "good: TableName = 'steps'\n"
        "bad: TableName = 'stepss'\n"
        "print(Steps.computing_us, Steps.computng_us)\n"
    )
    found, _, _ = mypy.run(["--cache-dir", "/dev/null", "--config-file", "", str(user)])
    assert [line.split(":")[1] for line in found.splitlines() if ": error:" in line] == ["3", "4"], found
