"""Against what the peer's command wrote for a real capture: equal where it is right, different where told."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest

from cluster_analysis.cli import main
from cluster_analysis.insight.naming import TOTAL, op_key
from tests.analysis.runs import digests, file_of, real, write_small_run
from tests.analysis.sources.twins import as_columns


@pytest.fixture(scope="module")
def peer() -> Path:
    return real("peer-output/qwen3-4ranks-pt")


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = real("qwen3-4ranks-pt")
    output = tmp_path_factory.mktemp("ours")
    assert main([str(run), "--output", str(output), "-q", "--no-report"]) == 0
    return output


def _differences(left: Any, right: Any, path: str = "") -> list[str]:
    if isinstance(left, dict) and isinstance(right, dict):
        keys = sorted(left.keys() | right.keys())
        return [
            difference
            for key in keys
            for difference in (
                _differences(left[key], right[key], f"{path}/{key}")
                if key in left and key in right
                else [f"{path}/{key}: only in {'ours' if key in left else 'theirs'}"]
            )
        ]
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        return [
            difference
            for position, (one, other) in enumerate(zip(left, right, strict=True))
            for difference in _differences(one, other, f"{path}[{position}]")
        ]
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return (
            [] if math.isclose(left, right, rel_tol=1e-12, abs_tol=1e-12) else [f"{path}: {left} != {right}"]
        )
    return [] if left == right else [f"{path}: {left!r} != {right!r}"]


def test_the_step_table_is_the_peers_to_the_last_digit_and_sorted(ours: Path, peer: Path) -> None:
    name = "cluster_step_trace_time.csv"
    mine = list(csv.reader((ours / name).read_text().splitlines()))
    theirs = list(csv.reader((peer / name).read_text().splitlines()))
    assert mine[0] == theirs[0]
    assert sorted(mine[1:]) == sorted(theirs[1:])
    assert [row[2] for row in mine[1:]] == ["0", "1", "2", "3", "(0, 1)", "(2, 3)"]


def test_operators_and_totals_have_the_peers_values(ours: Path, peer: Path) -> None:
    name = "cluster_communication.json"
    assert _differences(json.loads((ours / name).read_bytes()), json.loads((peer / name).read_bytes())) == []


def test_links_have_the_peers_values_under_the_operations_own_name(ours: Path, peer: Path) -> None:
    # The peer files reduceScatter under reduce.
    text = (ours / "cluster_communication_matrix.json").read_text()
    assert "reducescatter-total@" in text
    theirs = json.loads((peer / "cluster_communication_matrix.json").read_bytes())
    assert _differences(json.loads(text.replace("reducescatter-", "reduce-")), theirs) == []


def test_groups_are_the_peers_in_the_order_of_their_ranks(ours: Path, peer: Path) -> None:
    name = "communication_group.json"
    mine, theirs = (json.loads((folder / name).read_bytes()) for folder in (ours, peer))
    for key in ("collective", "p2p"):
        assert mine[key] == sorted(theirs[key])
    order = lambda group: (group["type"], group["rank_set"], group["group_name"])  # noqa: E731
    assert mine["comm_group_parallel_info"] == sorted(theirs["comm_group_parallel_info"], key=order)


def test_operators_stand_in_the_order_of_groups_and_ranks(ours: Path) -> None:
    document = json.loads((ours / "cluster_communication.json").read_bytes())
    sets = [tuple(int(rank) for rank in key.strip("()").split(",") if rank.strip()) for key in document]
    assert sets == sorted(sets)
    for by_step in document.values():
        for entries in by_step.values():
            assert all(list(entry) == sorted(entry, key=int) for entry in entries.values())


# What MindStudio Insight gets of ranks that were collected as columns, and what it does not.
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


@pytest.mark.slow
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


def test_only_names_that_insight_refuses_are_changed() -> None:
    pairs = [("hcom_send__1_0_1", "17"), ("a|b", "17"), ("alone", ""), ("x" * 600, "5"), ('say "so"', "é")]
    keys = ["hcom_send__1_0_1@17", "a_b@17", "alone@unknown", f"{'x' * 500}@5", "say _so_@é"]
    assert [op_key(*pair) for pair in pairs] == keys
