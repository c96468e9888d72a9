"""Which runs put their large tables into files."""

from pathlib import Path

import pytest

from cluster_analysis.engine.local import InProcessEngine, ProcessEngine
from cluster_analysis.engine.memory import DEFAULT_LIMIT_BYTES, must_file

_FULL_RANK_BYTES = 2_000_000


@pytest.mark.parametrize(("n_ranks", "in_files"), [(8, False), (64, True)])
def test_one_process_keeps_tables_of_small_runs_in_memory_only(n_ranks: int, in_files: bool) -> None:
    size_bytes = n_ranks * _FULL_RANK_BYTES
    assert must_file(InProcessEngine(), size_bytes, DEFAULT_LIMIT_BYTES) == in_files


def test_a_higher_limit_keeps_tables_of_one_process_in_memory() -> None:
    assert not must_file(InProcessEngine(), 64 * _FULL_RANK_BYTES, 1 << 30)


def test_processes_hand_tables_over_in_files_whatever_their_size(tmp_path: Path) -> None:
    assert must_file(ProcessEngine(2, tmp_path), 1, 1 << 30)
