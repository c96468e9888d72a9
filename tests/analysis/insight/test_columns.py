"""What MindStudio Insight gets of ranks that were collected as columns, and what it does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cluster_analysis.cli import main
from cluster_analysis.insight.naming import TOTAL
from tests.analysis.runs import digests, file_of, write_small_run
from tests.analysis.sources.twins import as_columns

OPERATORS = "cluster_communication.json"


def ranks_in(folder: Path) -> tuple[set[int], set[int]]:
    """The ranks of which the communication file has single operators, and totals."""
    single: set[int] = set()
    total: set[int] = set()
    document: dict[str, Any] = json.loads((folder / OPERATORS).read_text())
    for steps in document.values():
        for operators in steps.values():
            for name, ranks in operators.items():
                (total if name.startswith(TOTAL) else single).update(map(int, ranks))
    return single, total


def test_ranks_that_came_as_columns_lack_their_single_operators_alone_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, everyone = write_small_run(tmp_path / "run", steps=2), set(range(8))
    arguments = [str(run), "--no-report", "--scheduler", "threads"]
    assert main([*arguments, "--output", str(tmp_path / "raw")]) == 0
    assert "no single operators" not in capsys.readouterr().err
    for rank in range(6):
        for name in ("communication.json", "communication_matrix.json"):
            assert as_columns(file_of(run, rank, name))
    assert main([*arguments, "--output", str(tmp_path / "mixed")]) == 0
    said = capsys.readouterr().err
    assert "no single operators of ranks 0-5, which were collected as columns" in said
    assert f"cluster-collect --like {run} --ranks 0-5\n" in said
    assert ranks_in(tmp_path / "raw") == (everyone, everyone)
    assert ranks_in(tmp_path / "mixed") == ({6, 7}, everyone)
    raw, mixed = (
        digests(tmp_path / name, lambda path: path.name not in (OPERATORS, "findings.json"))
        for name in ("raw", "mixed")
    )
    assert raw == mixed, "links, groups, steps and tables are the same"
