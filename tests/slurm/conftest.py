"""One Slurm cluster for all tests of this directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm.lab import SlurmLab, missing_programs, start_lab

REPOSITORY = Path(__file__).parents[2]
N_NODES = 4


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmLab]:
    missing = missing_programs()
    if missing:
        pytest.skip(
            f"Slurm is not installed here: {', '.join(missing)} missing (tools/system_packages.sh slurm)"
        )
    root = tmp_path_factory.mktemp("slurm")
    cluster = start_lab(root, REPOSITORY / "deploy" / "slurm" / "epilog_slurmctld.sh", N_NODES)
    try:
        yield cluster
    finally:
        cluster.stop()
