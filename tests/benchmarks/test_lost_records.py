"""What is measured where records are lost: by how much a quoted saving moves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.detection.lost_records import dearest, moved, without_records
from benchmarks.models.streams import model

SEED, FAULT = 76_027, "host is a stage"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    model.make("plain", SEED, FAULT, folder)
    return folder


def _operators(run: Path) -> list[dict[str, object]]:
    return [
        operators
        for path in sorted(run.rglob("communication.json"))
        for kinds in json.loads(path.read_text()).values()
        for operators in kinds.values()
    ]


def test_a_share_of_the_records_is_gone_and_the_rest_is_as_it_was(run: Path, tmp_path: Path) -> None:
    n_lost = without_records(run, tmp_path / "lossy", 0.02, seed=1)
    before, after = _operators(run), _operators(tmp_path / "lossy")
    n_before, n_after = (sum(map(len, one)) for one in (before, after))
    assert n_before - n_after == n_lost
    assert n_lost == pytest.approx(0.02 * n_before, rel=0.3)
    assert all(own.items() <= whole.items() for own, whole in zip(after, before, strict=True))


def test_one_record_in_fifty_moves_what_a_stage_costs_by_a_twentieth_at_most(run: Path) -> None:
    said = dearest(run)
    assert said is not None
    assert abs(moved(run, *said, 0.02, seed=1)) <= 0.05


def test_a_saving_that_is_no_longer_quoted_has_moved_by_all_of_it(run: Path) -> None:
    assert moved(run, "slow_rank-99", 10.0, 0.0, seed=1) == -1.0
