"""What is measured where records are lost: by how much a quoted saving moves."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path

import pytest

from benchmarks.detection.lost_records import dearest, moved, without_records
from benchmarks.models.paths import model as paths
from benchmarks.models.streams import model
from tests.analysis.runs import simulated

#: Whole analyses of whole jobs: half a second to four each.
pytestmark = pytest.mark.slow


def _operators(run: Path) -> list[dict[str, object]]:
    return [
        operators
        for path in sorted(run.rglob("communication.json"))
        for kinds in json.loads(path.read_text()).values()
        for operators in kinds.values()
    ]


def test_a_share_of_the_records_is_gone_and_the_rest_is_as_it_was(tmp_path: Path) -> None:
    whole = simulated(tmp_path / "whole", tp=2, dp=2, steps=3)
    n_lost = without_records(whole, tmp_path / "lossy", 0.1, seed=1)
    before, after = _operators(whole), _operators(tmp_path / "lossy")
    n_before, n_after = (sum(map(len, one)) for one in (before, after))
    assert n_before - n_after == n_lost
    assert n_lost == pytest.approx(0.1 * n_before, rel=0.3)
    assert all(own.items() <= whole.items() for own, whole in zip(after, before, strict=True))


def _names(run: Path) -> dict[Path, set[str]]:
    """The operators that each database names, by rank's folder and file."""
    asked = {
        "communication_analyzer.db": "SELECT hccl_op_name FROM CommAnalyzerTime",
        "*_profiler_*.db": "SELECT value FROM COMMUNICATION_OP JOIN STRING_IDS ON id = opName",
    }
    found: dict[Path, set[str]] = {}
    for pattern, question in asked.items():
        for path in sorted(run.rglob(pattern)):
            with contextlib.closing(sqlite3.connect(path)) as database:
                found[path.relative_to(run)] = {name for (name,) in database.execute(question)}
    return found


def test_what_is_gone_is_gone_from_all_databases_of_a_rank(tmp_path: Path) -> None:
    paths.make("plain", 250_303, "rank, unseen wait", tmp_path / "whole")  # a job that writes databases
    n_lost = without_records(tmp_path / "whole", tmp_path / "lossy", 0.02, seed=1)
    before, after = _names(tmp_path / "whole"), _names(tmp_path / "lossy")
    gone = {path: names - after[path] for path, names in before.items()}
    by_rank: dict[Path, set[frozenset[str]]] = {}
    for path, names in gone.items():
        by_rank.setdefault(path.parent, set()).add(frozenset(names))
    assert all(len(one) == 1 for one in by_rank.values())
    assert sum(len(names) for one in by_rank.values() for names in one) == n_lost > 0


@pytest.mark.parametrize(
    ("seed", "fault_class", "trials"),
    [(76_027, "host is a stage", [1]), (1_007, "two ranks", [0, 1])],  # these exchange in batches
)
def test_one_record_in_fifty_moves_what_the_costliest_costs_by_a_twentieth_at_most(
    seed: int, fault_class: str, trials: list[int], tmp_path: Path
) -> None:
    model.make("plain", seed, fault_class, tmp_path / "whole")
    said = dearest(tmp_path / "whole")
    assert said is not None
    for trial in trials:
        assert abs(moved(tmp_path / "whole", *said, 0.02, seed=trial)) <= 0.05


def test_a_saving_that_is_no_longer_quoted_has_moved_by_all_of_it(tmp_path: Path) -> None:
    run = simulated(tmp_path / "whole", tp=1, pp=1, dp=2, steps=2)
    assert moved(run, "slow_rank-99", 10.0, 0.0, seed=1) == -1.0
