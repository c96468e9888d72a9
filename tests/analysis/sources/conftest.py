"""The job whose captures tests of bad input spoil."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.analysis.sources.builders import write_capture
from tests.analysis.sources.four_ranks import RANKS, own_links


@pytest.fixture
def job(tmp_path: Path) -> dict[int, Path]:
    """Four captures of one job by rank."""
    return {rank: write_capture(tmp_path / "job", rank, links=own_links(rank)) for rank in range(RANKS)}
