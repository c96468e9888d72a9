"""Where the files of a rank lie."""

from __future__ import annotations

from pathlib import Path

from cluster_analysis.sources.columns.place import columns_of


def test_what_may_not_be_looked_for_is_not_there(tmp_path: Path) -> None:
    # A name that is too long fails as a directory without the right to enter does, and for root, too.
    assert columns_of(tmp_path / ("x" * 250)) is None
