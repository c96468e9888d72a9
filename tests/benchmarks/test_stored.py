"""A job that is judged from the store gets the findings that it got when it was read."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.detection.__main__ import judge_job
from benchmarks.detection.no_matrix import SUFFIX
from benchmarks.detection.stored import judge_stored

#: Whole analyses of whole jobs: half a second to four each.
pytestmark = pytest.mark.slow


def test_a_stored_job_is_judged_as_when_it_was_read(tmp_path: Path) -> None:
    work = ("simulator", "plain", 1_002, "slow_rank:1.2")
    at_first, from_store = judge_stored(tmp_path, work), judge_stored(tmp_path, work)
    assert at_first == from_store
    whole = judge_job(work)
    assert (whole.n_found, whole.cost_error_shares) == (at_first[0].n_found, at_first[0].cost_error_shares)
    assert "slow_rank" in at_first[1]


def test_the_store_has_one_file_a_job(tmp_path: Path) -> None:
    for seed in (1_002, 1_003):
        judge_stored(tmp_path, ("simulator", "plain", seed, None))
    assert len(list(tmp_path.iterdir())) == 2


def test_a_mode_without_matrix_has_the_same_job_and_no_links(tmp_path: Path) -> None:
    for source, fault_class in (("simulator", "slow_nic:10"), ("paths", "network card")):
        whole, bare = (
            judge_stored(tmp_path, (source, f"plain{suffix}", 1_000, fault_class)) for suffix in ("", SUFFIX)
        )
        assert bare[0].n_material == whole[0].n_material
        assert "no_communication_matrix" in bare[1]
        assert "no_communication_matrix" not in whole[1]
