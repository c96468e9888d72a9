"""The same input gives the same bytes, whatever order Python's sets have."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.analysis.runs import digests, real, write_small_run

#: Two analyses: three seconds alone.
pytestmark = pytest.mark.timeout(300)


def _written(run: Path, output: Path, hash_seed: str) -> dict[str, str]:
    """Analyse a run in a process of its own; digests of all tables and of findings.json."""
    command = [sys.executable, "-m", "cluster_analysis", str(run), f"--output={output}", "--no-report", "-q"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    subprocess.run(command, env=environment, capture_output=True, timeout=280, check=True)
    return digests(output)


@pytest.mark.parametrize("name", ["simulated", "qwen3-4ranks-pt"])
def test_tables_and_findings_are_the_same_bytes_for_every_hash_seed(tmp_path: Path, name: str) -> None:
    # One step: dictionaries of several are joined, which drops values that stand twice.
    run = write_small_run(tmp_path / "run", steps=1) if name == "simulated" else real(name)
    first, second = (_written(run, tmp_path / seed, seed) for seed in ("1", "2"))
    assert {"findings.json", "tables/matched.parquet", "tables/steps.parquet"} <= set(first)
    assert first == second
