"""Which runs put their large tables into files."""

from pathlib import Path

import pytest

from cluster_analysis.engine.local import InProcessEngine, ProcessEngine
from cluster_analysis.engine.memory import DEFAULT_LIMIT_BYTES, must_file, parse_size
from cluster_run.errors import UsageError

_FULL_RANK_BYTES = 2_000_000


@pytest.mark.parametrize(("n_ranks", "in_files"), [(8, False), (64, True)])
def test_one_process_keeps_tables_of_small_runs_in_memory_only(n_ranks: int, in_files: bool) -> None:
    size_bytes = n_ranks * _FULL_RANK_BYTES
    assert must_file(InProcessEngine(), size_bytes, DEFAULT_LIMIT_BYTES) == in_files


def test_a_higher_limit_keeps_tables_of_one_process_in_memory() -> None:
    assert not must_file(InProcessEngine(), 64 * _FULL_RANK_BYTES, 1 << 30)


def test_processes_hand_tables_over_in_files_whatever_their_size(tmp_path: Path) -> None:
    assert must_file(ProcessEngine(2, tmp_path), 1, 1 << 30)


@pytest.mark.parametrize(
    ("text", "size_bytes"), [("512M", 512_000_000), ("1.5GB", 1_500_000_000), ("2GiB", 1 << 31), ("100", 100)]
)
def test_a_limit_is_written_as_people_write_sizes(text: str, size_bytes: int) -> None:
    assert parse_size(text) == size_bytes


@pytest.mark.parametrize("text", ["0", "-5", "much", "1e400"])
def test_what_is_no_size_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="not a size"):
        parse_size(text)
