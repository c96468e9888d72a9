"""Inputs rebuilt from public bug reports, which lie beside the repository, and what is said of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster_analysis.api import Run, analyse

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"
needs_cases = pytest.mark.skipif(not CASES.is_dir(), reason=f"the rebuilt inputs are not at {CASES}")


def said_of(case: str, part: str | None = None) -> Run:
    """What the analysis says of a case, by its folder and the path in it."""
    return analyse(CASES / case, capture=part, scheduler="threads", workers=1)


def alarms(run: Run) -> list[tuple[str, tuple[int, ...], tuple[str, ...]]]:
    """Kind, ranks and hosts of what is told as a fault."""
    return [
        (one.kind, tuple(one.ranks), tuple(one.hosts))
        for one in run.document.findings
        if one.severity != "info"
    ]


def notes(run: Run) -> set[str]:
    """Kinds of what is to be known beside findings."""
    return {one.kind for one in run.document.notes}
