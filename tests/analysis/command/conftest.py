"""The jobs that tests of the command share: simulated once, analysed once. Nobody writes into them."""

from __future__ import annotations

from pathlib import Path

import pytest

import cluster_analysis as ca
from cluster_analysis.cli import main
from tests.analysis.runs import write_small_run


@pytest.fixture(scope="session")
def slow_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight ranks on two hosts; rank 3 computes slowly."""
    return write_small_run(tmp_path_factory.mktemp("slow") / "run1")


@pytest.fixture(scope="session")
def healthy_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same job without the fault."""
    return write_small_run(tmp_path_factory.mktemp("healthy") / "run0", faults=(), seed=6)


def _output(run: Path, *more: str) -> Path:
    path = run.parent / "kept"
    assert main([str(run), "--output", str(path), "--no-insight", "-q", *more]) == 0
    return path


@pytest.fixture(scope="session")
def slow_output(slow_run: Path) -> Path:
    """What the command wrote of the slow run, its timeline too."""
    return _output(slow_run, "--timeline")


@pytest.fixture(scope="session")
def healthy_output(healthy_run: Path) -> Path:
    """What the command wrote of the healthy run."""
    return _output(healthy_run)


@pytest.fixture(scope="session")
def analysed(slow_run: Path) -> ca.Run:
    """The slow run as Python has it."""
    return ca.analyse(slow_run)
