"""What models wrote, as the analysis reads it and byte by byte."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cluster_analysis import judging, pipeline
from cluster_analysis.options import AnalyseOptions


def read(run: Path) -> Any:
    """The document of a run that a model wrote."""
    options = AnalyseOptions(run=run, scheduler="threads", n_workers=1, write_report=False)
    with pipeline.examined(options) as examined:
        return judging.judged(examined).document


def assert_read_as_made(run: Path, known: Any, source: str, lacks: tuple[str, ...] = ()) -> None:
    """All ranks are read from files of that kind, and the step is what was run.

    The only problem of each is that its files lack some columns, if the model writes none of these.
    """
    document = read(run)
    found = {tuple(one.why.values) for one in document.problems}
    assert found == ({(("columns", lacks),)} if lacks else set())
    assert document.run.sources == (source,)
    assert document.run.ranks == document.run.expected_ranks == known.n_ranks
    assert document.run.step_ms == pytest.approx(known.step_ms, rel=0.01)


def assert_written_alike(write: Callable[[Path], object], directory: Path) -> None:
    """Two calls write the same bytes."""
    both = []
    for root in (directory / "one", directory / "two"):
        write(root)
        files = sorted(path for path in root.rglob("*") if path.is_file())
        both.append([(path.relative_to(root), path.read_bytes()) for path in files])
    assert both[0]
    assert both[0] == both[1]
